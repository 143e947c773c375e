"""The engine's own parts, shown as the pods that they would be in a cluster.

People look for them in kube-system and read their logs there. Nothing is started for such a pod: what it stands for is
in this process. Whoever deletes one ends nothing, and another takes its place.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from tessera import __version__
from tessera.apps.embedded_logs import AGENTS, COMPONENTS, ENGINE, OPERATOR, SCHEDULER, ComponentLogs
from tessera.apps.working import Work
from tessera.embedded.documents import Frozen
from tessera.embedded.runtime.addresses import NODE_ADDRESS
from tessera.embedded.runtime.parts import part
from tessera.errors import AlreadyExists, NotFound
from tessera.kube.caching import Change
from tessera.kube.client import Client, Deletion, PatchType
from tessera.kube.informer import Informer
from tessera.kube.kinds import DEPLOYMENTS, PODS, Selection
from tessera.kube.objects import Document, ObjectKey
from tessera.kube.reconciler import Reconciler

NAMESPACE = "kube-system"
LABEL, RELEASE = "tessera.io/component", "app.kubernetes.io/version"
PODS_OF_COMPONENTS = Selection(namespace=NAMESPACE, labels=LABEL)
NOT_COMPONENTS = Selection(labels=f"!{LABEL}")
IMAGE = "tessera.local/tessera"
MANAGER = "tessera-up"
AGENT_PORT = 9394
"""Where a node shows its figures, as an agent does in a cluster."""


class Components:
    """`works` belong in a TaskGroup of the caller. What a node has of us is at an address of its own."""

    def __init__(
        self, client: Client, logs: ComponentLogs, nodes: Sequence[str], address_of_agent: Callable[[str], str]
    ) -> None:
        self._client = client
        self._logs = logs
        self._address_of_agent = address_of_agent
        pods = (*(_pod(AGENTS, node) for node in nodes), _pod(ENGINE, nodes[0]))
        self._wanted = {ObjectKey(NAMESPACE, pod["metadata"]["name"]): pod for pod in pods}
        self._pods = Informer(client, PODS, PODS_OF_COMPONENTS)
        self._reconciler: Reconciler[ObjectKey] = Reconciler("pods of components", self._reconcile)
        self._pods.subscribe(self._notice)

    async def show(self) -> None:
        for name in (SCHEDULER, OPERATOR):
            deployment = deployment_of(name)
            await self._client.apply(DEPLOYMENTS, name, deployment, manager=MANAGER, namespace=NAMESPACE, force=True)
        for pod in self._wanted.values():
            await self._make(pod)

    def works(self) -> list[Work]:
        return [self._pods.run(), self._reconciler.run()]

    def log_of(self, pod: Frozen) -> Path | None:
        """Where lies what the component says; None for a pod that is none."""
        component: str = part(pod, "metadata", "labels").get(LABEL, "")
        is_one = pod["metadata"]["namespace"] == NAMESPACE and component in COMPONENTS
        return self._logs.path(component) if is_one else None

    async def _make(self, pod: Document) -> None:
        with suppress(AlreadyExists):
            await self._client.create(PODS, pod, namespace=NAMESPACE)

    def _notice(self, change: Change[Document]) -> None:
        self._reconciler.mark(change.key)

    async def _reconcile(self, key: ObjectKey) -> None:
        pod = self._pods.get(key)
        if pod is None:
            if wanted := self._wanted.get(key):
                await self._make(wanted)
        elif pod["spec"].get("nodeName"):
            with suppress(NotFound):
                await self._attend(key, pod)

    async def _attend(self, key: ObjectKey, pod: Document) -> None:
        uid: str = pod["metadata"]["uid"]
        if "deletionTimestamp" in pod["metadata"] or self._is_outdated(key, pod):
            await self._client.delete(PODS, key.name, namespace=key.namespace, how=Deletion(uid=uid, grace_s=0))
        elif part(pod, "status").get("phase") != "Running":
            status = running_status(pod, self._address_of(pod), datetime.now(UTC))
            change: Document = {"metadata": {"uid": uid}, "status": status}
            await self._client.patch(
                PODS, key.name, change, namespace=key.namespace, patch_type=PatchType.STRATEGIC, subresource="status"
            )

    def _is_outdated(self, key: ObjectKey, pod: Document) -> bool:
        """An engine of another release may have made it, or one with other addresses."""
        address = part(pod, "status").get("podIP")
        is_ours = part(pod, "metadata", "labels").get(RELEASE) == __version__
        return key in self._wanted and (not is_ours or address not in (None, self._address_of(pod)))

    def _address_of(self, pod: Document) -> str:
        is_agent = part(pod, "metadata", "labels")[LABEL] == AGENTS
        return self._address_of_agent(pod["spec"]["nodeName"]) if is_agent else NODE_ADDRESS


def running_status(pod: Frozen, address: str, now: datetime) -> Document:
    at = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")
    return {
        "phase": "Running",
        "conditions": [{"type": kind, "status": "True", "lastTransitionTime": at} for kind in kinds],
        "hostIP": NODE_ADDRESS,
        "hostIPs": [{"ip": NODE_ADDRESS}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": at,
        "containerStatuses": [
            {
                "name": container["name"],
                "image": container["image"],
                "imageID": "",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": at}},
            }
            for container in pod["spec"]["containers"]
        ],
    }


def deployment_of(component: str) -> Document:
    labels = _labels(component)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": component, "labels": labels},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {LABEL: component}},
            "template": {"metadata": {"labels": labels}, "spec": _spec(component)},
        },
    }


def _pod(component: str, node: str) -> Document:
    metadata = {"name": f"{component}-{node}", "labels": _labels(component)}
    return {"metadata": metadata, "spec": {**_spec(component), "nodeName": node}}


def _labels(component: str) -> Mapping[str, str]:
    return {"app.kubernetes.io/name": component, RELEASE: __version__, LABEL: component}


def _spec(component: str) -> Document:
    everything = [{"operator": "Exists"}]
    container: Document = {"name": component, "image": IMAGE, "imagePullPolicy": "Never"}
    spec: Document = {
        "containers": [container],
        "tolerations": everything,
        "priorityClassName": "system-node-critical",
        "automountServiceAccountToken": False,
    }
    if component == AGENTS:
        container["ports"] = [{"name": "metrics", "containerPort": AGENT_PORT, "protocol": "TCP"}]
    else:
        spec["hostNetwork"] = True
    return spec
