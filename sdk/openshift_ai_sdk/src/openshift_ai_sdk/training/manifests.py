"""Documents of MPIJobs: new ones as the operator likes them, and foreign ones of which nothing is lost."""

import copy
from collections.abc import Mapping
from typing import Any

from .documents import API_VERSION, KIND, Document, mapping_at, mappings_at, text_at, without_server_parts
from .settings import CONTAINER_NAMES, HOSTFILE_OF_OPEN_MPI_5, LAUNCHER, SETTINGS, WORKER

Values = dict[str, Any]
"""A value for each of SETTINGS."""


def new_document(values: Mapping[str, Any]) -> Document:
    """Each retry of the launcher gets a pod of its own (`Never`), so that the logs of those before it remain."""
    document: Document = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": values["name"], "namespace": values["namespace"]},
        "spec": {
            "slotsPerWorker": values["slots_per_worker"],
            "runPolicy": {},
            "mpiReplicaSpecs": {LAUNCHER: _replicas(LAUNCHER, 1), WORKER: _replicas(WORKER, values["workers"])},
        },
    }
    for name, setting in SETTINGS.items():
        setting.write(document, values[name])
    _tell_hosts_to_open_mpi_5(document["spec"]["mpiReplicaSpecs"][LAUNCHER]["template"]["spec"]["containers"][0])
    return document


def changed_document(document: Document, before: Mapping[str, Any], now: Mapping[str, Any]) -> Document:
    """The foreign document, with what was set since it was read and with nothing else touched."""
    changed = without_server_parts(document)
    for name in changes(before, now):
        SETTINGS[name].write(changed, now[name])
    return changed


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> Values:
    return {name: now[name] for name in SETTINGS if now[name] != before[name]}


def read_settings(document: Document) -> Values:
    return {name: copy.deepcopy(setting.read(document)) for name, setting in SETTINGS.items()}


def is_suspended(document: Document) -> bool:
    return mapping_at(document, "spec", "runPolicy").get("suspend") is True


def check_kind(document: Mapping[str, Any]) -> None:
    """Raises ValueError for what is no MPIJob of the version that this SDK speaks."""
    kind, version = document.get("kind"), document.get("apiVersion")
    if kind != KIND:
        raise ValueError(f"kind is {kind!r}, expected {KIND!r}")
    if version != API_VERSION:
        raise ValueError(
            f"apiVersion is {version!r}, expected {API_VERSION!r}; v1 belongs to the older training operator, whose "
            "launcher and workers are described alike: change apiVersion, and cleanPodPolicy moves below runPolicy"
        )
    if not isinstance(document.get("spec"), dict):
        raise ValueError("the MPIJob has no spec, expected one with mpiReplicaSpecs")
    if not (text_at(document, "metadata", "name") or text_at(document, "metadata", "generateName")):
        raise ValueError("the MPIJob has no metadata.name, expected one")


def _tell_hosts_to_open_mpi_5(launcher: Document) -> None:
    own = mappings_at(launcher, "env")
    if all(variable.get("name") != HOSTFILE_OF_OPEN_MPI_5["name"] for variable in own):
        launcher["env"] = [*own, dict(HOSTFILE_OF_OPEN_MPI_5)]


def _replicas(role: str, count: int) -> Document:
    container = {"name": CONTAINER_NAMES[role]}
    return {"replicas": count, "restartPolicy": "Never", "template": {"spec": {"containers": [container]}}}
