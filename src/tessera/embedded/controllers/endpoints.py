"""EndpointSlices: where the pods are that a Service selects, and which of them are ready.

Pods that resolve the Service's ports to the same numbers share a slice. A slice's name follows from its Service and its
number, so that the same slice is never made twice.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from tessera.embedded.controllers.objects import SERVICES, SLICES, EndpointSlice, Service, refer
from tessera.embedded.controllers.pods import ENDED, Pod
from tessera.embedded.controllers.writes import Create, Write, change, delete
from tessera.kube.objects import Document, ObjectKey

SERVICE_NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
CONTROLLER = "endpointslice-controller.k8s.io"
HEADLESS = "service.kubernetes.io/headless"
MOST_ENDPOINTS = 1000

Ports = tuple[tuple[str, int, str], ...]
"""Name, number and protocol of each, in the order of the Service."""


def plan(service: Service, pods: Iterable[Pod], slices: Sequence[EndpointSlice]) -> list[Write]:
    """From the pods that it selects, and its slices so far."""
    wanted = _wanted(service, pods)
    there = {one.metadata.name: one for one in slices}
    writes: list[Write] = [_make(service, name, *content) for name, content in wanted.items() if name not in there]
    for name, one in there.items():
        if name not in wanted:
            writes.append(delete(SLICES, one.metadata))
        else:
            writes += _update(one, *wanted[name])
    return writes


def selects(service: Service) -> bool:
    """Whether it has pods to look for. One without a selector is looked after by whoever made it."""
    return bool(service.spec.selector) and service.spec.type != "ExternalName" and not service.metadata.is_going


def _wanted(service: Service, pods: Iterable[Pod]) -> dict[str, tuple[Ports, list[Document]]]:
    """By the slice's name, its ports and endpoints. There is one slice at least."""
    groups: dict[Ports, list[Pod]] = {}
    for pod in pods:
        if pod.status.pod_ip and pod.status.phase not in ENDED:
            groups.setdefault(_ports(service, pod), []).append(pod)
    contents: list[tuple[Ports, list[Document]]] = []
    for ports in sorted(groups):
        endpoints = [_endpoint(service, pod) for pod in sorted(groups[ports], key=lambda pod: pod.metadata.name)]
        contents += [(ports, endpoints[at : at + MOST_ENDPOINTS]) for at in range(0, len(endpoints), MOST_ENDPOINTS)]
    return {_name(service, number): content for number, content in enumerate(contents or [((), [])])}


def _ports(service: Service, pod: Pod) -> Ports:
    """A port whose name the pod does not know is left out."""
    found: list[tuple[str, int, str]] = []
    for port in service.spec.ports or ():
        protocol = port.get("protocol", "TCP")
        number = _port_number(port.get("targetPort") or port["port"], protocol, pod)
        if number is not None:
            found.append((port.get("name", ""), number, protocol))
    return tuple(found)


def _port_number(target: int | str, protocol: str, pod: Pod) -> int | None:
    if isinstance(target, int):
        return target
    named = [port for container in pod.spec.containers for port in container.ports or () if port.name == target]
    return next((port.container_port for port in named if port.protocol == protocol), None)


def _endpoint(service: Service, pod: Pod) -> Document:
    serving, is_going = pod.is_ready, pod.metadata.is_going
    ready = service.spec.publish_not_ready_addresses or (serving and not is_going)
    endpoint: Document = {
        "addresses": [pod.status.pod_ip],
        "conditions": {"ready": ready, "serving": serving, "terminating": is_going},
        "targetRef": {
            "kind": "Pod",
            "namespace": pod.metadata.namespace,
            "name": pod.metadata.name,
            "uid": pod.metadata.uid,
        },
    }
    if pod.spec.node_name:
        endpoint["nodeName"] = pod.spec.node_name
    if pod.spec.hostname and pod.spec.subdomain == service.metadata.name:
        endpoint["hostname"] = pod.spec.hostname
    return endpoint


def _make(service: Service, name: str, ports: Ports, endpoints: list[Document]) -> Create:
    labels = {**(service.metadata.labels or {}), SERVICE_NAME: service.metadata.name, MANAGED_BY: CONTROLLER}
    if service.spec.cluster_ip == "None":
        labels[HEADLESS] = ""
    body: Document = {
        "metadata": {
            "name": name,
            "generateName": f"{service.metadata.name}-",
            "namespace": service.metadata.namespace,
            "labels": labels,
            "ownerReferences": [refer(SERVICES, service.metadata)],
        },
        "addressType": "IPv4",
        **_content(ports, endpoints),
    }
    return Create(SLICES, ObjectKey(service.metadata.namespace, name), body)


def _update(one: EndpointSlice, ports: Ports, endpoints: list[Document]) -> list[Write]:
    content = _content(ports, endpoints)
    if (list(one.ports or ()), list(one.endpoints or ())) == (content["ports"], content["endpoints"]):
        return []
    return [change(SLICES, one.metadata, **content)]


def _content(ports: Ports, endpoints: list[Document]) -> dict[str, Any]:
    told = [{"name": name, "port": number, "protocol": protocol} for name, number, protocol in ports]
    return {"ports": told, "endpoints": endpoints}


def _name(service: Service, number: int) -> str:
    """Unlike that of any other Service: one may be called as another's slice would be."""
    digest = hashlib.sha256(f"{service.metadata.uid}/{number}".encode()).hexdigest()
    return f"{service.metadata.name}-{digest[:8]}"
