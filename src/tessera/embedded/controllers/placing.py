"""Which nodes a pod of a template may be on, and which of their taints it bears: as the scheduler judges it."""

from collections.abc import Iterable, Sequence

import msgspec

from tessera.embedded.controllers.objects import Node
from tessera.engine.hosting import refuse_host
from tessera.kube.objects import Document
from tessera.model.devices import Host, Taint
from tessera.model.pod_documents import Spec
from tessera.model.pod_hosts import read_host_request
from tessera.model.requests import HostRequest, Toleration

NO_EXECUTE = "NoExecute"


def may_be_on(spec: Document, node: Node, *, effects: Sequence[str] = ("NoSchedule", NO_EXECUTE)) -> bool:
    """By selectors, node affinity and taints of these effects. What is free there does not count."""
    request = read_host_request(msgspec.convert({"containers": [], **_rules(spec)}, Spec))
    labels = tuple((node.metadata.labels or {}).items())
    host = _host([taint for taint in node.spec.taints or () if taint.get("effect") in effects], labels)
    return refuse_host(request, host, node.metadata.name) is None


def bears(toleration: Document, taint: Document) -> bool:
    told = {name: toleration.get(name) or "" for name in ("key", "value", "effect")}
    request = HostRequest(tolerations=(Toleration(operator=toleration.get("operator") or "Equal", **told),))
    return refuse_host(request, _host([taint]), "") is None


def _host(taints: Iterable[Document], labels: tuple[tuple[str, str], ...] = ()) -> Host:
    read = tuple(Taint(one["key"], one.get("value") or "", one.get("effect") or "") for one in taints)
    return Host(cpu_milli=0, memory_bytes=0, labels=labels, taints=read)


def _rules(spec: Document) -> Document:
    return {name: spec[name] for name in ("nodeSelector", "affinity", "tolerations") if name in spec}
