"""Claims, gangs and the pods that name them, in a world without an API server."""

from typing import Any

import msgspec

from tessera.kube.caching import Change
from tessera.kube.objects import ObjectKey
from tessera.kube.pods import Pod
from tessera.model.pods import read_pod_ref
from tessera.scheduler.claims import GpuClaim, claim_of
from tessera.scheduler.gang_members import gang_said_by
from tessera.scheduler.gang_sizes import GangObject
from tessera.scheduler.phases import Phases
from tessera.scheduler.world import World
from tests.unit.scheduler.cluster import a_world


class Claimants:
    """A world and its phases, with the pods that its informer would know."""

    def __init__(self, **cards: str) -> None:
        self.world: World = a_world(**cards)
        self.phases = Phases(self.world)
        self.pods: dict[ObjectKey, Pod] = {}
        self.world.naming = lambda key: [pod for pod in self.pods.values() if str(key) in claim_of(pod)]
        self.phases.gangs.members.saying = lambda key: [
            pod for pod in self.pods.values() if str(key) in gang_said_by(pod)
        ]

    def claim(self, name: str, count: int = 1, *, namespace: str = "default", gang: str = "", **devices: Any) -> None:
        spec = {"devices": {"count": count, **devices}, **({"gangRef": gang} if gang else {})}
        self.claim_as(name, spec, namespace=namespace)

    def claim_as(self, name: str, spec: dict[str, Any], *, namespace: str = "default") -> None:
        document = {"metadata": {"name": name, "namespace": namespace, "uid": f"claim-{name}"}, "spec": spec}
        key = ObjectKey(namespace, name)
        self.world.claim_changed(Change(key, None, msgspec.convert(document, GpuClaim)))

    def drop_claim(self, name: str) -> None:
        document = {"metadata": {"name": name, "namespace": "default"}}
        self.world.claim_changed(Change(ObjectKey("default", name), msgspec.convert(document, GpuClaim), None))

    def gang(self, name: str, size: int) -> None:
        document = {"metadata": {"name": name, "namespace": "default"}, "spec": {"minMember": size}}
        self.phases.gangs.gang_changed(Change(ObjectKey("default", name), None, msgspec.convert(document, GangObject)))

    def see(self, pod: dict[str, Any]) -> dict[str, Any]:
        """The pod is in the API as it stands."""
        key = ObjectKey(pod["metadata"]["namespace"], pod["metadata"]["name"])
        before, after = self.pods.get(key), msgspec.convert(pod, Pod)
        self.pods[key] = after
        self._tell(Change(key, before, after))
        return pod

    def lose(self, pod: dict[str, Any]) -> None:
        key = ObjectKey(pod["metadata"]["namespace"], pod["metadata"]["name"])
        self._tell(Change(key, self.pods.pop(key), None))

    def _tell(self, change: Change[Pod]) -> None:
        self.world.pod_changed(change)
        self.phases.gangs.pod_changed(change)

    def filter(self, pod: dict[str, Any], now_s: float = 0.0) -> str:
        """The nodes that pass, or why none does."""
        verdict = self.phases.filter(pod, sorted(self.world.ledger.fleet.row_of), now_s)
        if verdict.passed:
            return ",".join(verdict.passed)
        (sentence,) = {*verdict.failed.values(), *verdict.hopeless.values()}
        return sentence

    def hold(self, pod: dict[str, Any], node: str = "a") -> tuple[int, ...]:
        """Reserve for good what the pod would get on a node, as a bind does, and say which cards these are."""
        world, uid = self.world, pod["metadata"]["uid"]
        request = world.request_of(pod)
        allocation = world.decider.allocate(request, world.ledger.fleet.row_of[node])
        assert allocation is not None
        world.ledger.reserve(read_pod_ref(pod), request, allocation, expires_at=float("inf"))
        world.ledger.commit(uid)
        return tuple(card.id for card in world.cards_of(allocation))


def a_claimant(
    name: str, claim: str = "", *, uid: str = "", gang: str = "", size: str = "", **said: str
) -> dict[str, Any]:
    """A pod that names a claim, or whatever annotations are said."""
    named = {"gpu.scheduling/claim": claim, "gpu.scheduling/gang": gang, "gpu.scheduling/gang-size": size}
    annotations = {key: value for key, value in named.items() if value} | said
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": uid or f"uid-{name}",
            "annotations": annotations,
        },
        "spec": {"containers": [{"name": "main", "resources": {"limits": {"gpu.scheduling/claim": "1"}}}]},
    }
