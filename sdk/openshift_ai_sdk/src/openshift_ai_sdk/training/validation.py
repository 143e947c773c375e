"""What an MPIJob may be: said in one sentence each, before a cluster has to say it, or does not.

Two strengths. `check_values` is for whoever describes a job, and is as strict as the constructor promises.
`check_creatable` is for whoever creates one, also a foreign one, and refuses what the operator would refuse: it tells
that by an event at best, and the job would wait for ever.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Optional, cast

from .documents import Document, int_at, mapping_at, mappings_at, text_at, value_at
from .resources import ResourceRequirements, is_whole_number
from .settings import LAUNCHER, REPLICAS, SETTINGS, WORKER, first_container, pod_template

CLEAN_POD_POLICIES = ("Running", "All", "None")
WORKERS, SLOTS = (2, 100), (1, 8)
LONGEST_LABEL, LONGEST_NAME = 63, 63
RESERVED_VOLUMES = frozenset({"ssh-auth", "mpi-job-config"})
"""The operator mounts its keys and its hostfile by these names."""
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_FOR_DNS = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_WINDOW = re.compile(r"[1-9][0-9]*(?:ms|s|m|h|d|w)")
_UNOBJECTIONABLE: Mapping[str, Any] = {
    **dict.fromkeys(SETTINGS),
    "name": "job",
    "namespace": "default",
    "workers": WORKERS[0],
    "slots_per_worker": SLOTS[0],
    "backoff_limit": 0,
    "clean_pod_policy": CLEAN_POD_POLICIES[0],
}
_VARIABLE = re.compile(r"[^=\x00]+")


def check_values(values: Mapping[str, Any]) -> None:
    """Raises ValueError for the first setting that is not as the constructor says."""
    for problem in _problems(values):
        raise ValueError(problem)


def check_changes(changes: Mapping[str, Any]) -> None:
    """The same for what was set on a job that somebody else made: the rest of it may be as odd as it is."""
    check_values({**_UNOBJECTIONABLE, **changes})


def check_name(name: object) -> None:
    if not isinstance(name, str) or len(name) > LONGEST_NAME or not _SUBDOMAIN.fullmatch(name):
        raise ValueError(
            f"name is {name!r}, expected at most {LONGEST_NAME} lower-case letters, digits, hyphens and dots, "
            "with a letter or digit at both ends, such as 'my-job'"
        )


def check_namespace(namespace: object) -> None:
    if not isinstance(namespace, str) or len(namespace) > LONGEST_LABEL or not _LABEL.fullmatch(namespace):
        raise ValueError(
            f"namespace is {namespace!r}, expected at most {LONGEST_LABEL} lower-case letters, digits and hyphens, "
            "such as 'ml-team'"
        )


def check_creatable(document: Document) -> None:
    """Raises ValueError for what the operator would leave lying."""
    name = text_at(document, "metadata", "name")
    workers = int_at(document, *REPLICAS, WORKER, "replicas") or 0
    if name:
        _check_pod_names(name, workers)
    if not mapping_at(document, *REPLICAS, LAUNCHER):
        raise ValueError(f"MPIJob {name}: mpiReplicaSpecs has no Launcher, expected one")
    for role in (LAUNCHER, WORKER):
        if value_at(document, *REPLICAS, role) is not None:
            _check_role(document, role, name)


def check_image(document: Document) -> None:
    if not text_at(first_container(document, LAUNCHER), "image"):
        name = text_at(document, "metadata", "name")
        raise ValueError(f"MPIJob {name}: image of the Launcher is missing, expected a container image with MPI in it")


def worker_index_problem(index: object, workers: int) -> Optional[str]:
    if not is_whole_number(index) or not 0 <= cast(int, index) < workers:
        last = f"from 0 to {workers - 1}" if workers else "none at all, because the job has no workers"
        return f"worker_index is {index!r}, expected a whole number {last}"
    return None


def check_window(window: object) -> None:
    if not isinstance(window, str) or not _WINDOW.fullmatch(window):
        raise ValueError(f"window is {window!r}, expected a duration as Prometheus writes it, such as '5m'")


def tail_problem(tail_lines: object) -> Optional[str]:
    if tail_lines is None or (is_whole_number(tail_lines) and cast(int, tail_lines) >= 0):
        return None
    return f"tail_lines is {tail_lines!r}, expected a whole number of lines, or None for all"


def _problems(values: Mapping[str, Any]) -> Iterator[str]:
    check_name(values["name"])
    check_namespace(values["namespace"])
    yield from _number_problem("workers", values["workers"], *WORKERS)
    yield from _number_problem("slots_per_worker", values["slots_per_worker"], *SLOTS)
    yield from _number_problem("backoff_limit", values["backoff_limit"], 0)
    for name, least in (("active_deadline_seconds", 1), ("ttl_seconds_after_finished", 0)):
        if values[name] is not None:
            yield from _number_problem(name, values[name], least)
    if values["clean_pod_policy"] not in CLEAN_POD_POLICIES:
        yield f"clean_pod_policy is {values['clean_pod_policy']!r}, expected one of {', '.join(CLEAN_POD_POLICIES)}"
    yield from _text_problems(values)
    for name in ("volume_mounts", "volumes", "tolerations"):
        if not _is_list_of(values[name], dict):
            yield f"{name} is {values[name]!r}, expected a list of dictionaries as in a pod's spec"
    if values["affinity"] is not None and not isinstance(values["affinity"], dict):
        yield f"affinity is {values['affinity']!r}, expected a dictionary as in a pod's spec"
    resources = values["resources"]
    if isinstance(resources, ResourceRequirements):
        resources.check()
    elif resources is not None:
        yield f"resources is {resources!r}, expected such as ResourceRequirements(gpu=1)"


def _text_problems(values: Mapping[str, Any]) -> Iterator[str]:
    image = values["image"]
    if image is not None and (not isinstance(image, str) or not image or image != image.strip()):
        yield f"image is {image!r}, expected the name of a container image"
    for name in ("command", "args"):
        if not _is_list_of(values[name], str):
            yield f"{name} is {values[name]!r}, expected a list of texts, such as ['mpirun', '-np', '4', './train']"
    for name in ("env", "node_selector", "labels", "annotations"):
        yield from _pairs_problem(name, values[name])
    for name in values["env"] or ():
        if not _VARIABLE.fullmatch(name):
            yield f"env has the name {name!r}, expected one without an equals sign, such as 'NCCL_DEBUG'"


def _pairs_problem(name: str, pairs: object) -> Iterator[str]:
    if pairs is None:
        return
    if not isinstance(pairs, dict):
        yield f"{name} is {pairs!r}, expected a dictionary of texts"
        return
    for key, value in cast(Mapping[object, object], pairs).items():
        if not isinstance(key, str) or not isinstance(value, str):
            yield f"{name} has {key!r}: {value!r}, expected texts; put numbers and truths in quotes"


def _number_problem(name: str, value: object, least: int, most: Optional[int] = None) -> Iterator[str]:
    if not is_whole_number(value) or cast(int, value) < least or (most is not None and cast(int, value) > most):
        wanted = f"from {least} to {most}" if most is not None else f"of at least {least}"
        yield f"{name} is {value!r}, expected a whole number {wanted}"


def _is_list_of(value: object, kind: type) -> bool:
    return value is None or (
        isinstance(value, (list, tuple)) and all(isinstance(one, kind) for one in cast(Sequence[object], value))
    )


def _check_pod_names(name: str, workers: int) -> None:
    longest = f"{name}-worker-{max(workers - 1, 0)}"
    if len(longest) > LONGEST_LABEL:
        room = LONGEST_LABEL - (len(longest) - len(name))
        raise ValueError(
            f"name is {name!r} with {len(name)} characters, expected at most {room}: the last worker's pod is called "
            f"{longest!r}, and its host name may have {LONGEST_LABEL} characters"
        )
    if not _LABEL_FOR_DNS.fullmatch(name):
        raise ValueError(
            f"name is {name!r}, expected lower-case letters, digits and hyphens, and a letter first: it is a part of "
            "the workers' host names, where dots and a leading digit are not allowed"
        )


def _check_role(document: Document, role: str, name: str) -> None:
    container = first_container(document, role)
    if not container:
        raise ValueError(f"MPIJob {name}: {role} has no container, expected at least one with an image")
    if not text_at(container, "image"):
        raise ValueError(f"MPIJob {name}: image of the {role} is missing, expected a container image with MPI in it")
    policy = value_at(document, *REPLICAS, role, "restartPolicy")
    if policy not in (None, "", "Never", "OnFailure"):
        raise ValueError(f"MPIJob {name}: {role}'s restartPolicy is {policy!r}, expected Never or OnFailure")
    replicas = value_at(document, *REPLICAS, role, "replicas")
    if role == LAUNCHER and replicas not in (None, 1):
        raise ValueError(f"MPIJob {name}: Launcher has {replicas!r} replicas, expected 1")
    if role == WORKER and (not is_whole_number(replicas) or cast(int, replicas) < 1):
        raise ValueError(f"MPIJob {name}: Worker has {replicas!r} replicas, expected at least 1")
    _check_volumes(pod_template(document, role), container, name)


def _check_volumes(template: Mapping[str, Any], container: Mapping[str, Any], name: str) -> None:
    volumes = [text_at(one, "name") for one in mappings_at(template, "spec", "volumes")]
    taken = sorted(RESERVED_VOLUMES.intersection(volumes))
    if taken:
        raise ValueError(
            f"MPIJob {name}: a volume is called {taken[0]!r}, which is the operator's own; call it otherwise"
        )
    mounted: list[str] = [text_at(one, "name") for one in mappings_at(container, "volumeMounts")]
    unknown = [one for one in mounted if one not in volumes and one not in RESERVED_VOLUMES]
    if unknown:
        raise ValueError(
            f"MPIJob {name}: volume_mounts name the volume {unknown[0]!r}, "
            f"expected one of volumes ({', '.join(volumes) or 'none'})"
        )
