"""The runtime as a node of the cluster: pods come from the API, what becomes of them goes back.

Level-based as every component: a pod that changed, in the API or here, is looked at, and whatever is not yet so is made
so. A pod that is going is stopped, its last status written, and only then is it deleted for good.
"""

from collections.abc import Collection

from tessera.embedded.documents import Document, Frozen
from tessera.embedded.runtime.parts import part
from tessera.embedded.runtime.runtime import Runtime
from tessera.embedded.runtime.sources import Event
from tessera.embedded.runtime.status import ENDED
from tessera.errors import NotFound
from tessera.kube.caching import Change
from tessera.kube.client import Client, Deletion, PatchType
from tessera.kube.event_series import ObjectReference
from tessera.kube.events import Recorder
from tessera.kube.informer import Informer
from tessera.kube.kinds import CONFIG_MAPS, PODS, SECRETS, SERVICE_ACCOUNTS, Kind
from tessera.kube.objects import ObjectKey
from tessera.kube.reconciler import Reconciler


class NodeLoop:
    """`nodes` are those that this machine stands for. The informer is the caller's, and runs beside this."""

    def __init__(
        self, client: Client, informer: Informer[Document], recorder: Recorder, nodes: Collection[str]
    ) -> None:
        self._client = client
        self._informer = informer
        self._recorder = recorder
        self._nodes = frozenset(nodes)
        self._runtime: Runtime | None = None
        self._keys: dict[str, ObjectKey] = {}
        self._written: dict[str, Document] = {}
        self._reconciler: Reconciler[ObjectKey] = Reconciler("pods of this machine", self._reconcile)

    async def run(self, runtime: Runtime) -> None:
        """Until it is cancelled. The runtime tells this loop of its changes and events."""
        self._runtime = runtime
        await self._informer.synced()
        self._informer.subscribe(self._notice)
        await self._reconciler.run()

    def changed(self, uid: str) -> None:
        if key := self._keys.get(uid):
            self._reconciler.mark(key)

    def hear(self, pod: Frozen, event: Event) -> None:
        metadata: Frozen = pod["metadata"]
        about = ObjectReference(kind="Pod", name=metadata["name"], namespace=metadata["namespace"], uid=metadata["uid"])
        tell = self._recorder.warning if event.level == "Warning" else self._recorder.normal
        tell(about, event.reason, event.message)

    def _notice(self, change: Change[Document]) -> None:
        known = change.after or change.before
        if known is not None and self._is_ours(known):
            self._reconciler.mark(change.key)

    def _is_ours(self, pod: Document) -> bool:
        return pod["spec"].get("nodeName") in self._nodes

    async def _reconcile(self, key: ObjectKey) -> None:
        runtime, pod = self._runtime, self._informer.get(key)
        assert runtime is not None
        uid = pod["metadata"]["uid"] if pod else ""
        for former in [one for one, held in self._keys.items() if held == key and one != uid]:
            await self._forget(runtime, former)
        if pod is None or not self._is_ours(pod):  # a new pod of that name, which has no node yet
            return
        self._keys[uid] = key
        is_going = "deletionTimestamp" in pod["metadata"]
        had_ended = part(pod, "status").get("phase") in ENDED
        if not (is_going and runtime.status(uid) is None):
            runtime.start(pod)
        if is_going and not runtime.is_over(uid):
            runtime.stop(uid, pod["metadata"].get("deletionGracePeriodSeconds") or 0)
        if not had_ended:
            await self._write_status(runtime, uid, key)
        if is_going and runtime.is_over(uid):
            await self._delete(uid, key)

    async def _forget(self, runtime: Runtime, uid: str) -> None:
        await runtime.remove(uid)
        del self._keys[uid]
        self._written.pop(uid, None)

    async def _write_status(self, runtime: Runtime, uid: str, key: ObjectKey) -> None:
        status = runtime.status(uid)
        if status is None or self._written.get(uid) == status:
            return
        patch: Document = {"metadata": {"uid": uid}, "status": status}
        try:
            await self._client.patch(
                PODS,
                key.name,
                patch,
                namespace=key.namespace,
                patch_type=PatchType.STRATEGIC,
                subresource="status",
            )
        except NotFound:
            return
        self._written[uid] = status

    async def _delete(self, uid: str, key: ObjectKey) -> None:
        """For good: nothing of it runs any more."""
        try:
            await self._client.delete(PODS, key.name, namespace=key.namespace, how=Deletion(uid=uid, grace_s=0))
        except NotFound:
            return


class KubeSources:
    """What pods need, from the API."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def config_map(self, namespace: str, name: str) -> Frozen | None:
        return await self._find(CONFIG_MAPS, namespace, name)

    async def secret(self, namespace: str, name: str) -> Frozen | None:
        return await self._find(SECRETS, namespace, name)

    async def token(self, pod: Frozen, audience: str, expires_s: int) -> str:
        metadata: Frozen = pod["metadata"]
        account = pod["spec"].get("serviceAccountName") or "default"
        bound = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
        spec: Document = {"expirationSeconds": expires_s, "boundObjectRef": bound}
        if audience:
            spec["audiences"] = [audience]
        request: Document = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        namespace: str = metadata["namespace"]
        answer = await self._client.create_under(SERVICE_ACCOUNTS, account, "token", request, namespace=namespace)
        return answer["status"]["token"]

    async def _find(self, kind: Kind[Document], namespace: str, name: str) -> Frozen | None:
        try:
            return await self._client.get(kind, name, namespace=namespace)
        except NotFound:
            return None
