"""What a pod's spec leaves out, filled in; the same for a pod and for the template of one.

A template is filled in less: what only makes sense for a pod that exists is in `complete_pod`.
"""

from collections.abc import Iterator
from typing import Any

from tessera.embedded.documents import Document, Frozen
from tessera.embedded.resources.parts import each, inside, set_defaults
from tessera.embedded.resources.quantities import canonical_of, canonicalise

CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
FILE_MODE = 0o644
TOKEN_LIFETIME_S = 3600
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_MODED_VOLUMES = ("configMap", "secret", "downwardAPI", "projected")
_BRIEFLY_TOLERATED = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_TOLERATED_S = 300


def fill_in_spec(spec: Document, kind: str) -> None:
    """`kind` is that of the whole object, for the sentence about a quantity that is none."""
    set_defaults(
        spec,
        restartPolicy="Always",
        terminationGracePeriodSeconds=30,
        dnsPolicy="ClusterFirst",
        schedulerName="default-scheduler",
    )
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    if spec.get("serviceAccountName") and not spec.get("serviceAccount"):
        spec["serviceAccount"] = spec["serviceAccountName"]  # the name it had once is kept beside it
    elif spec.get("serviceAccount") and not spec.get("serviceAccountName"):
        spec["serviceAccountName"] = spec["serviceAccount"]
    for volume in each(spec, "volumes"):
        _fill_in_volume(volume, kind)
    for container in containers_of(spec):
        _fill_in_container(container, kind)
    canonicalise(spec.get("overhead"), kind)


def complete_pod(spec: Document) -> None:
    """What a pod has beyond its template: requests that follow from limits, ports of the host, patience with nodes."""
    set_defaults(spec, enableServiceLinks=True)
    for container in containers_of(spec):
        _request_what_is_limited(container)
        if spec.get("hostNetwork"):
            for port in each(container, "ports"):
                set_defaults(port, hostPort=port.get("containerPort"))
    _tolerate_briefly(spec)


def containers_of(spec: Frozen) -> Iterator[Document]:
    """Every container of a pod, in the order in which they start."""
    for field in CONTAINERS:
        yield from spec.get(field) or ()


def pull_policy(image: str) -> str:
    """Always where the tag may move: there is none, or it is `latest`."""
    reference = image.rpartition("/")[2]
    if "@" in reference:
        return "IfNotPresent"
    return "Always" if reference.partition(":")[2] in ("", "latest") else "IfNotPresent"


def _fill_in_container(container: Document, kind: str) -> None:
    set_defaults(container, terminationMessagePath="/dev/termination-log", terminationMessagePolicy="File")
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = pull_policy(container.get("image") or "")
    set_defaults(container, resources={})
    resources: Document = container["resources"]
    canonicalise(resources.get("limits"), kind)
    canonicalise(resources.get("requests"), kind)
    for port in each(container, "ports"):
        set_defaults(port, protocol="TCP")
    for variable in each(container, "env"):
        _fill_in_source(variable.get("valueFrom"), kind)
    for name in _PROBES:
        if container.get(name):
            _fill_in_probe(container[name])
    lifecycle: Frozen = inside(container, "lifecycle")
    for hook in lifecycle.values():
        _fill_in_http(hook)


def _fill_in_source(source: Any, kind: str) -> None:
    if not source:
        return
    if source.get("fieldRef"):
        set_defaults(source["fieldRef"], apiVersion="v1")
    if source.get("resourceFieldRef"):
        reference: Document = source["resourceFieldRef"]
        reference["divisor"] = canonical_of(reference.get("divisor"), kind)


def _fill_in_probe(probe: Document) -> None:
    for name, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)):
        if not probe.get(name):  # zero means the default as well
            probe[name] = value
    _fill_in_http(probe)
    if probe.get("grpc"):
        set_defaults(probe["grpc"], service="")


def _fill_in_http(handler: Frozen | None) -> None:
    if handler and handler.get("httpGet"):
        set_defaults(handler["httpGet"], path="/", scheme="HTTP")


def _fill_in_volume(volume: Document, kind: str) -> None:
    if not any(value is not None for field, value in volume.items() if field != "name"):
        volume["emptyDir"] = {}
    for field in _MODED_VOLUMES:
        if volume.get(field) is not None:
            set_defaults(volume[field], defaultMode=FILE_MODE)
    if volume.get("hostPath"):
        set_defaults(volume["hostPath"], type="")
    if (empty := volume.get("emptyDir")) and empty.get("sizeLimit") is not None:
        empty["sizeLimit"] = canonical_of(empty["sizeLimit"], kind)
    _fill_in_items(volume.get("downwardAPI"), kind)
    for source in inside(volume, "projected").get("sources") or ():
        if source.get("serviceAccountToken"):
            set_defaults(source["serviceAccountToken"], expirationSeconds=TOKEN_LIFETIME_S)
        _fill_in_items(source.get("downwardAPI"), kind)


def _fill_in_items(downward: Frozen | None, kind: str) -> None:
    for item in (downward or {}).get("items") or ():
        _fill_in_source(item, kind)


def _request_what_is_limited(container: Document) -> None:
    limits = container["resources"].get("limits")
    if limits:
        requests = dict(inside(container["resources"], "requests"))
        container["resources"]["requests"] = requests | {name: limits[name] for name in limits if name not in requests}


def _tolerate_briefly(spec: Document) -> None:
    """A pod stays for five minutes on a node that falls silent, unless it says how long."""
    tolerations: list[Document] = spec.get("tolerations") or []
    for key in _BRIEFLY_TOLERATED:
        if not any(_covers(toleration, key) for toleration in tolerations):
            added = {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATED_S}
            tolerations = [*tolerations, added]
    spec["tolerations"] = tolerations


def _covers(toleration: Frozen, key: str) -> bool:
    return toleration.get("key") in (key, None, "") and toleration.get("effect") in ("NoExecute", None, "")
