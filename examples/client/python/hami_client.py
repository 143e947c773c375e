"""A client for accelerators that are shared as HAMi shares them, on the official Kubernetes client and nothing else.

There is no API beside that of Kubernetes: what a node has and what a pod was given stands in annotations. This file
reads them, makes pods that ask for parts of cards, waits for the scheduler's decision, and tells in a sentence what is
wrong when there is none. It is made to be copied.

    hami = HAMiClient()
    hami.create_gpu_pod("train", "default", "ubuntu:24.04", gpu_count=1, gpu_memory_mb=4000, command=["nvidia-smi"])
    print(hami.get_pod_scheduling_info("train", "default"))

`python hami_client.py` shows a cluster, places a small pod on it and removes it again.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
import textwrap
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, TypedDict, TypeVar, cast

from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

GPU_NODES = "gpu=on"
FRESH = timedelta(minutes=5)
"""A device plugin reports more often than this; one that does not is not well."""

Document = dict[str, Any]
"""A node or a pod as the API has it, for instance from `kubectl get -o json`."""

# What a client is given ----------------------------------------------------------------------------------------------


class Device(TypedDict):
    """One card of a node; up to `split` containers share it, `cores` are percent."""

    vendor: str
    uuid: str
    index: int
    type: str
    memory_mb: int
    cores: int
    split: int
    numa: int
    mode: str
    healthy: bool


class Handshake(TypedDict):
    """What a device plugin and its scheduler last said to each other: Reported, Requesting or Deleted, and when."""

    state: str
    at: datetime | None


class NodeInfo(TypedDict):
    """A node, its cards, the handshake of each vendor, and a sentence for everything that looks wrong."""

    name: str
    devices: list[Device]
    handshakes: dict[str, Handshake]
    problems: list[str]


class AllocatedDevice(TypedDict):
    """A part of a card that a container holds; containers are counted from 0, init containers first."""

    container: int
    uuid: str
    type: str
    memory_mb: int
    cores: int


class PodInfo(TypedDict):
    name: str
    namespace: str
    uid: str
    phase: str


class SchedulingInfo(TypedDict):
    """Where a pod is and what it holds. Without a node, `problem` says why."""

    name: str
    namespace: str
    phase: str
    node: str | None
    scheduled_at: datetime | None
    allocated_devices: list[AllocatedDevice]
    problem: str | None


class ResourceNames(NamedTuple):
    """What a vendor calls the number of cards, their memory in MB and their cores in percent."""

    cards: str
    memory: str
    cores: str


NVIDIA = ResourceNames("nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores")
HYGON = ResourceNames("hygon.com/dcunum", "hygon.com/dcumem", "hygon.com/dcucores")
AMD = ResourceNames("amd.com/gpu", "amd.com/gpumem", "amd.com/gpucores")


class HAMiError(Exception):
    """Something failed; the message is one sentence that says what, where, and what to do."""


class AuthenticationError(HAMiError):
    """The cluster does not know us, does not let us, or is not found."""


class NotScheduled(HAMiError):
    """The pod has no node."""


class MalformedAnnotation(HAMiError):
    """An annotation says something that none of its known forms can mean."""


# Annotations of nodes -------------------------------------------------------------------------------------------------

_REGISTER_KEY = re.compile(r"hami\.io/node-(?:(?P<before>.+)-register|register-(?P<after>.+))")
_REGISTER_FIELDS = ("id", "count", "devmem", "devcore", "type", "numa", "health", "index", "mode")
_HANDSHAKE_KEY = "hami.io/node-handshake"
_TIME = re.compile(
    r"(\d{4})[-.](\d\d)[-.](\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,]\d+)?\s?(Z|[+-]\d\d:?\d\d)?", re.ASCII | re.IGNORECASE
)


def parse_register(text: str, vendor: str = "nvidia") -> list[Device]:
    """The cards of a node's register in any of its forms: seven fields, nine fields, or JSON."""
    return [_read_card(entry, position, vendor) for position, entry in enumerate(_entries(text))]


def parse_handshake(text: str) -> Handshake:
    """In every spelling that has been seen; a time that names no zone is UTC, one that cannot be read is None."""
    state = next((word for word in ("Requesting", "Deleted") if word in text), "Reported")
    return {"state": state, "at": _find_time(text)}


def read_registers(annotations: Mapping[str, str]) -> tuple[list[Device], list[str]]:
    """The cards of all vendors, and a sentence for what cannot be read; a broken card hides no other."""
    devices, problems = list[Device](), list[str]()
    for vendor, key in _registers(annotations):
        try:
            entries = _entries(annotations[key])
        except MalformedAnnotation as error:
            problems.append(f"{key}: {error}")
            continue
        for position, entry in enumerate(entries):
            try:
                devices.append(_read_card(entry, position, vendor))
            except MalformedAnnotation as error:
                problems.append(f"{key}: {error}")
    return devices, problems


def read_handshakes(annotations: Mapping[str, str]) -> dict[str, Handshake]:
    """The handshake of each vendor that has one; HAMi's own plugin for NVIDIA uses a key without a vendor."""
    found = dict[str, Handshake]()
    for vendor, _ in _registers(annotations):
        keys = [f"{_HANDSHAKE_KEY}-{vendor}", *[_HANDSHAKE_KEY] * (vendor == "nvidia")]
        said = [parse_handshake(annotations[key]) for key in keys if key in annotations]
        if said:
            found[vendor] = max(said, key=lambda handshake: handshake["at"] or datetime.min.replace(tzinfo=UTC))
    return found


def _registers(annotations: Mapping[str, str]) -> list[tuple[str, str]]:
    matches = [match for key in sorted(annotations) if (match := _REGISTER_KEY.fullmatch(key))]
    return [(match["before"] or match["after"], match.string) for match in matches]


def _entries(text: str) -> list[Any]:
    """One for each card: a text, or what JSON has in its place."""
    text = text.strip()
    if not text.startswith("[") and text != "null":
        return [entry for entry in text.split(":") if entry.strip()]
    try:
        return json.loads(text) or []
    except ValueError:
        raise MalformedAnnotation(f'"{_shorten(text)}" is no JSON, expected a list of cards') from None


def _read_card(entry: Any, position: int, vendor: str) -> Device:
    """HAMi leaves zeros out of JSON, and with them `health` where it is false."""
    fields = _name_fields(entry, position) if isinstance(entry, str) else entry
    if not isinstance(fields, dict) or not fields.get("id"):
        raise MalformedAnnotation(f'card "{_shorten(entry)}" has no id')
    try:
        return {
            "vendor": vendor,
            "uuid": str(fields["id"]),
            "index": int(fields.get("index", 0)),
            "type": str(fields.get("type", "")),
            "memory_mb": int(fields.get("devmem", 0)),
            "cores": int(fields.get("devcore", 0)),
            "split": int(fields.get("count", 0)),
            "numa": int(fields.get("numa", 0)),
            "mode": str(fields.get("mode", "hami-core")),
            "healthy": str(fields.get("health", False)).lower() in ("true", "t", "1"),
        }
    except (TypeError, ValueError, OverflowError):
        raise MalformedAnnotation(f'card "{_shorten(entry)}" has a figure that is no whole number') from None


def _name_fields(entry: str, position: int) -> dict[str, Any]:
    values = [value.strip() for value in entry.split(",")]
    if len(values) not in (7, 9):
        raise MalformedAnnotation(f'card "{_shorten(entry)}" has {len(values)} fields, expected 7 or 9')
    return {"index": position, **dict(zip(_REGISTER_FIELDS, values, strict=False))}


def _find_time(text: str) -> datetime | None:
    if not (match := _TIME.search(text)):
        return None
    year, month, day, clock, zone = match.groups(default="Z")
    try:
        return datetime.fromisoformat(f"{year}-{month}-{day}T{clock}{zone.upper()}").astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _read_unix_time(text: str) -> datetime | None:
    try:
        return datetime.fromtimestamp(int(text), UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _shorten(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


# Annotations of pods --------------------------------------------------------------------------------------------------

_ALLOCATION_KEY = re.compile(
    r"hami\.io/(?!device-allocated$)(?:(?P<vendor>.+?)-)??(?:devices-)?(?P<state>allocated|to-allocate)"
)


def parse_allocation(text: str) -> list[AllocatedDevice]:
    """The parts of cards in a device list, with a `;` after each container or, as the flat list has it, without."""
    return [
        _allocated(card, container)
        for container, cards in enumerate(text.split(";"))
        for card in cards.split(":")
        if "," in card and card.strip() != ",,0,0"  # how old releases spell a container without cards
    ]


def read_allocations(annotations: Mapping[str, str]) -> list[AllocatedDevice]:
    """What a pod holds: each vendor's list, the lasting one first; only without any the flat list of all vendors."""
    lists = dict[str, dict[str, str]]()
    for key in sorted(annotations):
        if match := _ALLOCATION_KEY.fullmatch(key):
            lists.setdefault(match["vendor"] or "", {})[match["state"]] = annotations[key]
    flat = lists.pop("", {})
    return [held for vendor in lists.values() for held in _lasting(vendor)] or _lasting(flat)


def _lasting(states: Mapping[str, str]) -> list[AllocatedDevice]:
    """A device plugin empties `to-allocate` while it serves containers; `allocated` stays."""
    return parse_allocation(states.get("allocated", "")) or parse_allocation(states.get("to-allocate", ""))


def _allocated(card: str, container: int) -> AllocatedDevice:
    try:
        name, kind, memory_mb, cores = (field.strip() for field in card.split(",")[:4])
        without_slice = name.partition("[")[0]  # HAMi up to 2.9 writes a MIG slice as GPU-uuid[profile-slot]
        return {
            "container": container,
            "uuid": without_slice,
            "type": kind,
            "memory_mb": int(memory_mb),
            "cores": int(cores),
        }
    except ValueError:
        raise MalformedAnnotation(f'card "{_shorten(card)}" is not UUID,type,memory,cores') from None


# What can be wrong ----------------------------------------------------------------------------------------------------

_READ_LOGS = "read its logs: kubectl logs -n kube-system DEVICE-PLUGIN-POD"


def read_node(node: Document, now: datetime) -> NodeInfo:
    name, annotations = node["metadata"]["name"], node["metadata"].get("annotations", {})
    devices, unreadable = read_registers(annotations)
    handshakes = read_handshakes(annotations)
    problems = [*unreadable, *_missing(devices, unreadable), *_silent(handshakes, now)]
    return {
        "name": name,
        "devices": devices,
        "handshakes": handshakes,
        "problems": [f"{name}: {problem}" for problem in problems],
    }


def _missing(devices: Sequence[Device], unreadable: Sequence[str]) -> list[str]:
    if devices or unreadable:
        return []
    return [
        "no device is registered, expected an annotation such as hami.io/node-nvidia-register; see that a device plugin"
        " runs there: kubectl get pods -n kube-system -o wide | grep device-plugin"
    ]


def _silent(handshakes: Mapping[str, Handshake], now: datetime) -> list[str]:
    problems = list[str]()
    for vendor, handshake in handshakes.items():
        if handshake["state"] == "Deleted":
            problems.append(f"the scheduler has given the {vendor} device plugin up; {_READ_LOGS}")
        elif handshake["at"] is None:
            problems.append(f"the handshake of the {vendor} device plugin has no time that can be read; {_READ_LOGS}")
        elif now - handshake["at"] > FRESH:
            what = "was asked for a report" if handshake["state"] == "Requesting" else "last reported"
            age = _tell_age(now - handshake["at"])
            problems.append(f"the {vendor} device plugin {what} {age}, expected within 5 minutes; {_READ_LOGS}")
    return problems


def read_pod(pod: Document) -> SchedulingInfo:
    metadata = pod["metadata"]
    annotations = metadata.get("annotations", {})
    node = pod["spec"].get("nodeName") or annotations.get("hami.io/vgpu-node")
    held, unreadable = _held(pod)
    return {
        "name": metadata["name"],
        "namespace": metadata["namespace"],
        "phase": pod["status"]["phase"],
        "node": node,
        "scheduled_at": _read_unix_time(annotations.get("hami.io/vgpu-time", "")),
        "allocated_devices": held,
        "problem": unreadable if node else _why_no_node(pod),
    }


def _held(pod: Document) -> tuple[list[AllocatedDevice], str | None]:
    """What the pod holds, or what is wrong with the annotation that should say so."""
    metadata = pod["metadata"]
    try:
        return read_allocations(metadata.get("annotations", {})), None
    except MalformedAnnotation as error:
        return [], f"{metadata['namespace']}/{metadata['name']}: {error}"


def _why_no_node(pod: Document) -> str:
    who = f"{pod['metadata']['namespace']}/{pod['metadata']['name']} is {pod['status']['phase'].lower()}"
    if reason := _refusal(pod):
        return f"{who}: {reason}; ask for less, or see what is free on the nodes with the label {GPU_NODES}"
    logs = "kubectl logs -n kube-system deployment/hami-scheduler"
    return f"{who}: no scheduler has decided about it yet; if that lasts, read what it does: {logs}"


def _refusal(pod: Document) -> str:
    """Why the scheduler found no node, without what it adds about preemption; empty while it has not said anything."""
    conditions = {condition["type"]: condition for condition in pod["status"].get("conditions", ())}
    said = conditions.get("PodScheduled", {})
    return said.get("message", "").partition(". ")[0].rstrip(".") if said.get("status") == "False" else ""


def _is_decided(pod: Document) -> bool:
    return bool(read_pod(pod)["node"] or _refusal(pod))


def _asks_for_devices(pod: Document) -> bool:
    """Resources of devices have a domain, those of Kubernetes itself have none."""
    containers = [*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]]
    names = [name for container in containers for name in container.get("resources", {}).get("limits", ())]
    return any("/" in name for name in names) or bool(read_pod(pod)["allocated_devices"])


def _tell_age(age: timedelta) -> str:
    seconds = max(0, round(age.total_seconds()))
    return f"{seconds} seconds ago" if seconds < 120 else f"{seconds // 60} minutes ago"


# Requests -------------------------------------------------------------------------------------------------------------

Answer = TypeVar("Answer")
PAUSES_S = (0.2, 0.5, 1.0, 2.0)
"""Between one try and the next. The API server may ask for longer ones."""


def call(doing: str, server: str, request: Callable[[], Answer], pause: Callable[[float], None] = time.sleep) -> Answer:
    """Ask until there is an answer, as long as another try can help; then say in a sentence why there is none."""
    pauses_s = iter(PAUSES_S)
    while True:
        try:
            return request()
        except (ApiException, HTTPError) as failure:
            pause_s = next(pauses_s, None)
            if pause_s is None or not _may_pass(failure):
                raise _explain(doing, server, failure) from None
            pause_s = max(pause_s * random.uniform(0.8, 1.2), _asked_pause_s(failure))
        pause(pause_s)


def _may_pass(failure: ApiException | HTTPError) -> bool:
    """A conflict passes, for instance of two pods counted against one quota; a name that is taken stays so."""
    if isinstance(failure, HTTPError) or not failure.status:
        return True
    if failure.status == 409:
        return _status_of(failure).get("reason") == "Conflict"
    return failure.status == 429 or failure.status >= 500


def _asked_pause_s(failure: ApiException | HTTPError) -> float:
    headers = failure.headers if isinstance(failure, ApiException) else None
    asked = (headers or {}).get("Retry-After", "")
    return min(float(asked), 10.0) if asked.isdecimal() else 0.0


def _explain(doing: str, server: str, failure: ApiException | HTTPError) -> HAMiError:
    if isinstance(failure, HTTPError) or not failure.status:
        return AuthenticationError(
            f"{doing} failed: {server} cannot be reached ({_plain(failure)}); see that the cluster runs and that the"
            " kubeconfig is the right one: kubectl cluster-info"
        )
    said = _status_of(failure).get("message") or str(failure.reason)
    if failure.status == 401:
        return AuthenticationError(
            f"{doing} failed: {server} does not accept our credentials (401 {said}); test them: kubectl cluster-info"
        )
    if failure.status == 403 and 'User "' in said:
        return AuthenticationError(f"{doing} failed: {said}; give that user or service account the right by RBAC")
    return HAMiError(f"{doing} failed: {said} ({failure.status})")


def _plain(failure: ApiException | HTTPError) -> str:
    """Without the names and addresses of Python objects that urllib3 puts before what it has to say."""
    said = str(failure.reason if isinstance(failure, ApiException) else failure)
    return re.sub(r"^\w*Connection(?:Pool)?\([^)]*\):\s*", "", said).splitlines()[-1]


def _status_of(failure: ApiException) -> Mapping[str, Any]:
    try:
        said = json.loads(failure.body or "")
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def connect(kubeconfig: str | None = None, context: str | None = None) -> client.Configuration:
    """A service account where we run in a pod, else a kubeconfig as kubectl finds it. One that is named wins."""
    found = client.Configuration()
    kubeconfig = kubeconfig or os.environ.get("KUBECONFIG")  # the library looks at the variable only once
    is_named = kubeconfig or context
    try:
        if os.environ.get("KUBERNETES_SERVICE_HOST") and not is_named:
            config.load_incluster_config(client_configuration=found)
        else:
            config.load_kube_config(kubeconfig, context, client_configuration=found)
    except Exception as broken:  # a kubeconfig can be wrong in as many ways as YAML can
        file = kubeconfig or "~/.kube/config"
        why = str(broken).splitlines()[0].rstrip(".")
        raise AuthenticationError(
            f"{file} is no kubeconfig that can be used ({why}); test it: kubectl cluster-info, or name another"
        ) from None
    return found


# The client -----------------------------------------------------------------------------------------------------------

TIMEOUT_S = 30.0
POLL_S = 0.25
_REQUEST = "hami-client/request"


class HAMiClient:
    """Without arguments it finds its cluster by itself; `configuration` is for credentials of any other kind."""

    def __init__(
        self,
        kubeconfig: str | None = None,
        context: str | None = None,
        *,
        configuration: client.Configuration | None = None,
    ) -> None:
        found = configuration or connect(kubeconfig, context)
        found.retries = False  # type: ignore[assignment] # urllib3's word for none: `call` knows what can help
        self.server = str(found.host)
        self._api = client.ApiClient(found)
        self._core = client.CoreV1Api(self._api)

    def list_gpu_nodes(self, label_selector: str = GPU_NODES) -> list[NodeInfo]:
        nodes = self._call("listing nodes", self._core.list_node, label_selector=label_selector)
        return [read_node(node, datetime.now(UTC)) for node in nodes["items"]]

    def list_gpu_pods(self, namespace: str | None = None) -> list[SchedulingInfo]:
        """Pods that ask for a device or hold one; of all namespaces, unless one is named."""
        if namespace:
            pods = self._call(f"listing pods of {namespace}", self._core.list_namespaced_pod, namespace)
        else:
            pods = self._call("listing pods", self._core.list_pod_for_all_namespaces)
        return [read_pod(pod) for pod in pods["items"] if _asks_for_devices(pod)]

    def create_gpu_pod(
        self,
        pod_name: str,
        namespace: str,
        image: str,
        gpu_count: int = 1,
        gpu_memory_mb: int | None = None,
        gpu_cores: int | None = None,
        command: Sequence[str] | None = None,
        *,
        annotations: Mapping[str, str] | None = None,
        resources: ResourceNames = NVIDIA,
    ) -> PodInfo:
        """Memory and cores are of each card; without them a container gets its cards whole."""
        limits = _limits(resources, gpu_count, gpu_memory_mb, gpu_cores)
        request = uuid.uuid4().hex
        pod = _pod(pod_name, image, limits, command, {**(annotations or {}), _REQUEST: request})
        try:
            created = self._call(
                f"creating pod {namespace}/{pod_name}", self._core.create_namespaced_pod, namespace, pod
            )
        except HAMiError:
            created = self._find_created(request, pod_name, namespace)
            if not created:
                raise
        metadata = created["metadata"]
        return {"name": pod_name, "namespace": namespace, "uid": metadata["uid"], "phase": created["status"]["phase"]}

    def get_pod_scheduling_info(self, pod_name: str, namespace: str = "default", wait_s: float = 30) -> SchedulingInfo:
        """Where the pod is and what it holds, or why it has no node. A scheduler that has not decided is waited for."""
        return read_pod(self._wait_for(_is_decided, pod_name, namespace, wait_s))

    def wait_until_scheduled(self, pod_name: str, namespace: str = "default", wait_s: float = 120) -> SchedulingInfo:
        """As above, but a refusal is not the end: what does not fit may fit later. Raises `NotScheduled`."""
        info = read_pod(self._wait_for(lambda pod: bool(read_pod(pod)["node"]), pod_name, namespace, wait_s))
        if info["problem"]:
            raise NotScheduled(info["problem"])
        return info

    def delete_pod(self, pod_name: str, namespace: str = "default", grace_period_s: int | None = None) -> None:
        doing = f"deleting pod {namespace}/{pod_name}"
        delete = self._core.delete_namespaced_pod
        self._call(doing, delete, pod_name, namespace, grace_period_seconds=grace_period_s)

    def find_problems(self, label_selector: str = GPU_NODES) -> list[str]:
        """A sentence for each node that does not report and each pod that waits; none where all is well."""
        nodes = self.list_gpu_nodes(label_selector)
        if not nodes:
            return [f"no node has the label {label_selector}; give it to one: kubectl label node NODE {label_selector}"]
        waiting = [pod["problem"] for pod in self.list_gpu_pods() if pod["problem"] and pod["phase"] == "Pending"]
        return [*(problem for node in nodes for problem in node["problems"]), *waiting]

    def _wait_for(self, is_so: Callable[[Document], bool], pod_name: str, namespace: str, wait_s: float) -> Document:
        """The pod as it is when something is so, or when the time is over."""
        until_s = time.monotonic() + wait_s
        pod = self._read(pod_name, namespace)
        while not is_so(pod) and time.monotonic() < until_s:
            time.sleep(POLL_S)
            pod = self._read(pod_name, namespace)
        return pod

    def _find_created(self, request: str, pod_name: str, namespace: str) -> Document | None:
        """The pod, if a try of ours has made it although its answer was lost."""
        try:
            pod = self._read(pod_name, namespace)
        except HAMiError:
            return None
        return pod if pod["metadata"].get("annotations", {}).get(_REQUEST) == request else None

    def _read(self, pod_name: str, namespace: str) -> Document:
        return self._call(f"reading pod {namespace}/{pod_name}", self._core.read_namespaced_pod, pod_name, namespace)

    def _call(self, doing: str, verb: Callable[..., Any], *arguments: Any, **options: Any) -> Document:
        answer = call(doing, self.server, lambda: verb(*arguments, **options, _request_timeout=TIMEOUT_S))
        return cast(Document, self._api.sanitize_for_serialization(answer))


def _limits(names: ResourceNames, count: int, memory_mb: int | None, cores: int | None) -> dict[str, str]:
    figures = {names.cards: count, names.memory: memory_mb, names.cores: cores}
    return {name: str(figure) for name, figure in figures.items() if figure is not None}


def _pod(
    name: str, image: str, limits: dict[str, str], command: Sequence[str] | None, annotations: dict[str, str]
) -> client.V1Pod:
    """No scheduler is named: the webhook sends whoever asks for a device to the right one."""
    container = client.V1Container(
        name="main",
        image=image,
        command=list(command) if command else None,
        resources=client.V1ResourceRequirements(limits=limits),
    )
    return client.V1Pod(
        metadata=client.V1ObjectMeta(name=name, annotations=annotations),
        spec=client.V1PodSpec(containers=[container], restart_policy="Never"),
    )


# The tour -------------------------------------------------------------------------------------------------------------


def show_tour(hami: HAMiClient, selector: str, namespace: str, image: str, is_read_only: bool) -> None:
    print(f"Cluster {hami.server}\n\nNodes with the label {selector}")
    nodes = hami.list_gpu_nodes(selector)
    in_use_mb = _memory_in_use(hami.list_gpu_pods())
    _show(_node_row(node, in_use_mb) for node in nodes)
    if nodes and not is_read_only:
        _place_a_pod(hami, namespace, image)
    print("\nPods that ask for devices")
    _show(row for pod in hami.list_gpu_pods() for row in _pod_rows(pod))
    print("\nWhat looks wrong")
    _show([problem] for problem in hami.find_problems(selector))


def _place_a_pod(hami: HAMiClient, namespace: str, image: str) -> None:
    name = f"hami-tour-{uuid.uuid4().hex[:6]}"
    print(f"\nA pod of ours asks for 1000 MB and 10 % of one card, and is deleted again: {namespace}/{name}")
    hami.create_gpu_pod(name, namespace, image, 1, 1000, 10, ["sleep", "60"])
    try:
        info = hami.get_pod_scheduling_info(name, namespace)
        _show([[info["problem"]]] if info["problem"] else _pod_rows(info))
    finally:
        hami.delete_pod(name, namespace, grace_period_s=0)


def _memory_in_use(pods: Iterable[SchedulingInfo]) -> Counter[str]:
    in_use_mb = Counter[str]()
    for pod in pods:
        if pod["phase"] not in ("Succeeded", "Failed"):
            for part in pod["allocated_devices"]:
                in_use_mb[part["uuid"]] += part["memory_mb"]
    return in_use_mb


def _node_row(node: NodeInfo, in_use_mb: Mapping[str, int]) -> list[str]:
    devices = node["devices"]
    models = Counter(device["type"] for device in devices)
    used_mb = sum(in_use_mb.get(device["uuid"], 0) for device in devices)
    ill = sum(not device["healthy"] for device in devices)
    ages = [_tell_age(datetime.now(UTC) - said["at"]) for said in node["handshakes"].values() if said["at"]]
    return [
        node["name"],
        ", ".join(f"{count} × {model}" for model, count in models.items()) or "no devices",
        f"{used_mb} of {sum(device['memory_mb'] for device in devices)} MB in use",
        f"{ill} ill" if ill else "all healthy",
        f"reported {ages[0]}" if ages else "",
    ]


def _pod_rows(pod: SchedulingInfo) -> list[list[str]]:
    """One row for each part of a card; what is the same stands in the first alone."""
    parts = [f"{part['memory_mb']} MB, {part['cores']} % of {part['uuid']}" for part in pod["allocated_devices"]]
    first, *rest = parts or [""]
    return [
        [f"{pod['namespace']}/{pod['name']}", pod["phase"], pod["node"] or "no node yet", first],
        *(["", "", "", part] for part in rest),
    ]


def _show(rows: Iterable[Sequence[str]]) -> None:
    """In columns; a sentence is one column, and folded."""
    rows = list(rows) or [["nothing"]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        print(_fold(line) if len(row) == 1 else f"  {line}")


def _fold(sentence: str) -> str:
    return textwrap.fill(sentence, 110, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)


def main() -> int:
    parser = argparse.ArgumentParser(description="Show the accelerators of a cluster, and place a small pod on one.")
    parser.add_argument("--kubeconfig", help="without it, as kubectl finds it")
    parser.add_argument("--context", help="of the kubeconfig")
    parser.add_argument("--selector", default=GPU_NODES, help="which nodes have accelerators (default: %(default)s)")
    parser.add_argument("--namespace", default="default", help="where the pod goes (default: %(default)s)")
    parser.add_argument("--image", default="busybox:latest", help="of that pod (default: %(default)s)")
    parser.add_argument("--read-only", action="store_true", help="place no pod")
    given = parser.parse_args()
    try:
        hami = HAMiClient(given.kubeconfig, given.context)
        show_tour(hami, given.selector, given.namespace, given.image, given.read_only)
    except HAMiError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
