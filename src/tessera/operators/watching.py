"""What operators know of the cluster, and whose status is to be looked at when something changes."""

from collections.abc import Callable, Iterable
from typing import Any

from tessera.kube.caching import Change
from tessera.kube.client import Client
from tessera.kube.informer import Informer
from tessera.kube.informer_group import InformerGroup
from tessera.kube.kinds import LEASES
from tessera.kube.objects import Document, ObjectKey
from tessera.kube.pods import CACHED_PODS, Pod
from tessera.model.card_leases import holders_in
from tessera.operators.objects import CLAIMS, GANGS, Claim, Gang, card_leases_in
from tessera.operators.pods import claim_of, gang_named_by, uid_of

Mark = Callable[[ObjectKey], None]
BY_CLAIM, BY_GANG, BY_UID, BY_HOLDER, BY_POD = "claim", "gang", "uid", "holder", "pod"


class Watched(InformerGroup):
    """Claims, gangs, pods and leases of cards. `mark_claim` and `mark_gang` are told whose status may have changed."""

    def __init__(self, client: Client, lease_namespace: str, mark_claim: Mark, mark_gang: Mark) -> None:
        pods_by = {BY_CLAIM: _claims_of, BY_GANG: _gangs_of, BY_UID: _uids_of}
        self.claims = Informer(client, CLAIMS, indexes={BY_GANG: _gangs_of_claim, BY_POD: _pods_of})
        self.gangs = Informer(client, GANGS)
        self.pods = Informer(client, CACHED_PODS, indexes=pods_by)
        self.leases = Informer(client, LEASES, card_leases_in(lease_namespace), indexes={BY_HOLDER: _holders_of})
        super().__init__(self.claims, self.gangs, self.pods, self.leases)
        self._mark_claim, self._mark_gang = mark_claim, mark_gang
        self.claims.subscribe(self._claim_changed)
        self.gangs.subscribe(self._gang_changed)
        self.pods.subscribe(self._pod_changed)
        self.leases.subscribe(self._lease_changed)

    def mark_all(self) -> None:
        for claim in self.claims:
            self._mark_claim(claim.key)
        for gang in self.gangs:
            self._mark_gang(gang.key)

    def pods_of_claim(self, key: ObjectKey) -> list[Pod]:
        return self.pods.find(BY_CLAIM, str(key))

    def leases_of(self, uids: Iterable[str]) -> list[Document]:
        """Those that any of these pods hold, each once."""
        found = [lease for uid in uids for lease in self.leases.find(BY_HOLDER, uid)]
        return list({lease["metadata"]["name"]: lease for lease in found}.values())

    def pods_of_gang(self, key: ObjectKey) -> list[Pod]:
        """Those that name it, and those of claims that name it, unless they name another."""
        claims = self.claims.find(BY_GANG, str(key))
        by_claim = [pod for claim in claims for pod in self.pods_of_claim(claim.key) if not gang_named_by(pod)]
        return [*self.pods.find(BY_GANG, str(key)), *by_claim]

    def _claim_changed(self, change: Change[Claim]) -> None:
        self._mark_claim(change.key)
        for claim in _both(change):
            self._mark_gangs(_gangs_of_claim(claim))

    def _gang_changed(self, change: Change[Gang]) -> None:
        self._mark_gang(change.key)

    def _pod_changed(self, change: Change[Pod]) -> None:
        for pod in _both(change):
            self._mark_gangs(_gangs_of(pod))
            for named in _claims_of(pod):
                key = _read_key(named)
                self._mark_claim(key)
                claim = self.claims.get(key)
                self._mark_gangs(_gangs_of_claim(claim) if claim else ())

    def _lease_changed(self, change: Change[Document]) -> None:
        for lease in _both(change):
            for uid in _holders_of(lease):
                for claim in self.claims.find(BY_POD, uid):
                    self._mark_claim(claim.key)
                for pod in self.pods.find(BY_UID, uid):
                    for named in _claims_of(pod):
                        self._mark_claim(_read_key(named))

    def _mark_gangs(self, named: Iterable[str]) -> None:
        for name in named:
            self._mark_gang(_read_key(name))


def _both(change: Change[Any]) -> list[Any]:
    return [thing for thing in (change.before, change.after) if thing is not None]


def _read_key(text: str) -> ObjectKey:
    namespace, _, name = text.partition("/")
    return ObjectKey(namespace, name)


def _uids_of(pod: Pod) -> tuple[str, ...]:
    return (uid_of(pod),)


def _holders_of(lease: Document) -> tuple[str, ...]:
    return tuple(pod.uid for pod in holders_in(lease))


def _claims_of(pod: Pod) -> tuple[str, ...]:
    return _in_namespace(pod.metadata.namespace, claim_of(pod))


def _gangs_of(pod: Pod) -> tuple[str, ...]:
    return _in_namespace(pod.metadata.namespace, gang_named_by(pod))


def _gangs_of_claim(claim: Claim) -> tuple[str, ...]:
    return _in_namespace(claim.metadata.namespace, claim.gang)


def _pods_of(claim: Claim) -> tuple[str, ...]:
    return (claim.status.pod_uid,) if claim.status.pod_uid else ()


def _in_namespace(namespace: str | None, name: str) -> tuple[str, ...]:
    return (str(ObjectKey(namespace or "", name)),) if name else ()
