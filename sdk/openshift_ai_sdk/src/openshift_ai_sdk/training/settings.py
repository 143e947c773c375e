"""What a user sets on an MPIJob, and where in its document each setting stands.

One table serves three ends: a new document is written setting by setting; a foreign one is read by the same table; and
of a foreign one that was changed only the changed settings are written. So whatever the table does not know survives.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Callable, Optional, cast

from .documents import (
    RAN_ON,
    Document,
    int_at,
    list_at,
    mapping_at,
    mappings_at,
    put,
    section,
    text_at,
    value_at,
)
from .resources import ResourceRequirements, read_resources, replaced

LAUNCHER, WORKER = "Launcher", "Worker"
CONTAINER_NAMES = {LAUNCHER: "mpi-launcher", WORKER: "mpi-worker"}
REPLICAS = ("spec", "mpiReplicaSpecs")
HOSTFILE_OF_OPEN_MPI_5 = {"name": "PRTE_MCA_prte_default_hostfile", "value": "/etc/mpi/hostfile"}
"""Open MPI 5 reads none of the variables that the operator sets, and would run all ranks in the launcher."""
GANG, GANG_SIZE = "gpu.scheduling/gang", "gpu.scheduling/gang-size"


@dataclass(frozen=True)
class Setting:
    read: Callable[[Document], Any]
    write: Callable[[Document, Any], None]


def pod_template(document: Document, role: str) -> Mapping[str, Any]:
    return mapping_at(document, *REPLICAS, role, "template")


def first_container(document: Document, role: str) -> Mapping[str, Any]:
    """The one that runs MPI: the operator gives what it adds to the first container, and to no other."""
    containers = mappings_at(pod_template(document, role), "spec", "containers")
    return containers[0] if containers else {}


def _value(*path: str, usual: object = None) -> Setting:
    """At one place. Where there is nothing, the value is the usual one."""
    *above, key = path

    def read(document: Document) -> object:
        found = value_at(document, *path)
        return usual if found is None else found

    return Setting(read, lambda document, value: put(section(document, *above), key, value))


def _number(*path: str, usual: Optional[int] = None) -> Setting:
    def read(document: Document) -> Optional[int]:
        found = int_at(document, *path)
        return usual if found is None else found

    return Setting(read, _value(*path).write)


def _text(*path: str, usual: str = "") -> Setting:
    return Setting(lambda document: text_at(document, *path) or usual, _value(*path).write)


def _pairs(*path: str) -> Setting:
    return Setting(lambda document: dict(mapping_at(document, *path)) or None, _value(*path).write)


def _read_annotations(document: Document) -> Optional[dict[str, Any]]:
    noted = mapping_at(document, "metadata", "annotations")
    return {key: value for key, value in noted.items() if key != RAN_ON} or None


def _both_pods(key: str) -> Setting:
    """Of the pod specs. The workers' is read; a job without workers has the launcher's."""

    def read(document: Document) -> object:
        return value_at(pod_template(document, _spoken_for(document)), "spec", key) or None

    def write(document: Document, value: object) -> None:
        for role in _roles(document):
            put(section(document, *REPLICAS, role, "template", "spec"), key, value)

    return Setting(read, write)


def _both_containers(key: str) -> Setting:
    def read(document: Document) -> object:
        return value_at(first_container(document, _spoken_for(document)), key) or None

    def write(document: Document, value: object) -> None:
        for role in _roles(document):
            put(_container(document, role), key, value)

    return Setting(read, write)


def _launcher_container(key: str) -> Setting:
    return Setting(
        lambda document: list_at(first_container(document, LAUNCHER), key) or None,
        lambda document, value: put(_container(document, LAUNCHER), key, value),
    )


def _read_image(document: Document) -> Optional[str]:
    images = (text_at(first_container(document, role), "image") for role in (LAUNCHER, WORKER))
    return next((image for image in images if image), None)


def _read_env(document: Document) -> Optional[dict[str, str]]:
    """Plain values; what comes from elsewhere (`valueFrom`) stays as it is and is not shown."""
    variables = mappings_at(first_container(document, _spoken_for(document)), "env")
    plain = [one for one in variables if "valueFrom" not in one and dict(one) != HOSTFILE_OF_OPEN_MPI_5]
    return {text_at(one, "name"): _as_text(one.get("value", "")) for one in plain} or None


def _as_text(value: object) -> str:
    """A truth or a number that nobody put in quotes, as YAML would have it."""
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _write_env(document: Document, env: Optional[Mapping[str, str]]) -> None:
    """What was set or removed, in both roles; variables that one of them has for itself stay."""
    before, wanted = _read_env(document) or {}, env or {}
    removed = before.keys() - wanted.keys()
    changed = {name: value for name, value in wanted.items() if before.get(name) != value}
    for role in _roles(document):
        container = _container(document, role)
        own = [one for one in mappings_at(container, "env") if "valueFrom" in one or one.get("name") not in removed]
        there = {text_at(one, "name") for one in own}
        kept = [_variable(name, changed[name]) if (name := text_at(one, "name")) in changed else one for one in own]
        put(container, "env", [*kept, *(_variable(name, changed[name]) for name in changed if name not in there)])


def _variable(name: str, value: str) -> Document:
    return {"name": name, "value": value}


def _write_name(document: Document, name: str) -> None:
    """A gang that bears the job's name goes with it: two jobs in one gang would wait for each other's workers."""
    before = text_at(document, "metadata", "name")
    put(section(document, "metadata"), "name", name)
    if before and mapping_at(pod_template(document, WORKER), "metadata", "annotations").get(GANG) == before:
        section(document, *REPLICAS, WORKER, "template", "metadata", "annotations")[GANG] = name


def _read_workers(document: Document) -> int:
    return int_at(document, *REPLICAS, WORKER, "replicas") or 0


def _write_workers(document: Document, workers: int) -> None:
    section(document, *REPLICAS, WORKER)["replicas"] = workers
    annotations = mapping_at(pod_template(document, WORKER), "metadata", "annotations")
    if GANG_SIZE in annotations:
        _mark_gang(document)


def _read_resources(document: Document) -> Optional[ResourceRequirements]:
    return read_resources(first_container(document, _spoken_for(document)))


def _write_resources(document: Document, resources: Optional[ResourceRequirements]) -> None:
    """Of a launcher that is alone all is the launcher's."""
    ranks_are_in = _spoken_for(document)
    for role in _roles(document):
        container = _container(document, role)
        own = resources and (resources.for_worker() if role == ranks_are_in else resources.for_launcher())
        put(container, "resources", replaced(mapping_at(container, "resources"), own or {}))
    if resources is not None and resources.gpu and ranks_are_in == WORKER:
        _mark_gang(document)


def _mark_gang(document: Document) -> None:
    """Where Tessera schedules, workers with GPUs start together or not at all. Elsewhere nobody reads these.

    A job that the API server will name has no name for its gang yet.
    """
    given = text_at(pod_template(document, WORKER), "metadata", "annotations", GANG)
    gang = given or text_at(document, "metadata", "name")
    if not gang:
        return
    annotations = section(document, *REPLICAS, WORKER, "template", "metadata", "annotations")
    annotations[GANG] = gang
    annotations[GANG_SIZE] = str(_read_workers(document))


def _roles(document: Document) -> list[str]:
    """A foreign job may be a launcher alone."""
    return [role for role in (LAUNCHER, WORKER) if isinstance(value_at(document, *REPLICAS, role), dict)]


def _spoken_for(document: Document) -> str:
    return WORKER if first_container(document, WORKER) else LAUNCHER


def _container(document: Document, role: str) -> Document:
    """To be written to."""
    spec = section(document, *REPLICAS, role, "template", "spec")
    containers = spec.get("containers")
    if not isinstance(containers, list) or not containers or not isinstance(containers[0], dict):
        containers = spec["containers"] = [{"name": CONTAINER_NAMES[role]}]
    return cast(Document, containers[0])


SETTINGS: dict[str, Setting] = {
    "name": Setting(_text("metadata", "name").read, _write_name),
    "namespace": _text("metadata", "namespace", usual="default"),
    "labels": _pairs("metadata", "labels"),
    "annotations": Setting(_read_annotations, _value("metadata", "annotations").write),
    "workers": Setting(_read_workers, _write_workers),
    "image": Setting(_read_image, _both_containers("image").write),
    "command": _launcher_container("command"),
    "args": _launcher_container("args"),
    "resources": Setting(_read_resources, _write_resources),
    "volume_mounts": _both_containers("volumeMounts"),
    "volumes": _both_pods("volumes"),
    "env": Setting(_read_env, _write_env),
    "node_selector": _both_pods("nodeSelector"),
    "affinity": _both_pods("affinity"),
    "tolerations": _both_pods("tolerations"),
    "slots_per_worker": _number("spec", "slotsPerWorker", usual=1),
    "clean_pod_policy": _text("spec", "runPolicy", "cleanPodPolicy", usual="None"),
    "active_deadline_seconds": _number("spec", "runPolicy", "activeDeadlineSeconds"),
    "backoff_limit": _number("spec", "runPolicy", "backoffLimit", usual=6),
    "ttl_seconds_after_finished": _number("spec", "runPolicy", "ttlSecondsAfterFinished"),
}
