"""What an MPIJob needs beside its pods: hostfiles, names for its pods, a token, and the gang of its workers. Pure.

Hostfiles are there in the forms of all implementations: a job names one, and the machine may have another.
"""

import base64
from collections.abc import Iterable

from tessera.kube.kinds import CONFIG_MAPS, GPU_GANGS, SECRETS, SERVICES, Kind
from tessera.kube.objects import Document
from tessera.model.annotations.keys import GANG
from tessera.operators.mpi_objects import OPEN_MPI, MpiJob, labels_of, owner_reference, part

HOSTFILE, DISCOVER_HOSTS = "hostfile", "discover_hosts.sh"
OPEN_MPI_HOSTFILE, HYDRA_HOSTFILE = "hostfile.openmpi", "hostfile.hydra"
TOKEN_KEY = "ssh-privatekey"
PLAIN_RESOURCES = ("cpu", "memory", "ephemeral-storage")


def host_names(job: MpiJob) -> list[str]:
    """As hostfiles have them."""
    own = [job.launcher_name] if job.runs_launcher_as_worker else []
    return [f"{name}.{job.name}.{job.namespace}.svc" for name in (*own, *job.worker_names)]


def make_config(job: MpiJob, running: Iterable[str]) -> Document:
    """`running` are the host names of the pods that run now, for whoever discovers hosts as they come and go."""
    names = host_names(job)
    for_open_mpi = "".join(f"{name} slots={job.slots}\n" for name in names)
    for_hydra = "".join(f"{name}:{job.slots}\n" for name in names)
    found = "".join(f"echo {name}.{job.name}.{job.namespace}.svc\n" for name in sorted(running))
    return {
        **_head(CONFIG_MAPS, job, job.config_name),
        "data": {
            HOSTFILE: for_open_mpi if job.implementation == OPEN_MPI else for_hydra,
            OPEN_MPI_HOSTFILE: for_open_mpi,
            HYDRA_HOSTFILE: for_hydra,
            DISCOVER_HOSTS: f"#!/bin/sh\n{found}",
        },
    }


def make_service(job: MpiJob) -> Document:
    spec: Document = {"clusterIP": "None", "selector": labels_of(job)}
    if job.runs_launcher_as_worker:
        spec["publishNotReadyAddresses"] = True
    return {**_head(SERVICES, job, job.name), "spec": spec}


def make_secret(job: MpiJob, token: str) -> Document:
    """In the place of the operator's SSH keys: what launcher and workers know each other by."""
    data = {TOKEN_KEY: base64.b64encode(token.encode()).decode()}
    return {**_head(SECRETS, job, job.secret_name), "type": "kubernetes.io/ssh-auth", "data": data}


def token_in(secret: Document) -> str:
    """Empty, if there is none."""
    return base64.b64decode(part(secret, "data").get(TOKEN_KEY, "")).decode()


def wants_gang(job: MpiJob) -> bool:
    """Workers that want cards start together or not at all, unless they are in a gang already."""
    worker = job.spec.mpi_replica_specs.worker
    if worker is None or GANG in part(worker.template, "metadata", "annotations"):
        return False
    return any(_wants_more_than_plain(container) for container in worker.containers)


def make_gang(job: MpiJob) -> Document:
    """Of the workers alone: the launcher waits for them, so that to count it would be to wait for ever."""
    policy = job.spec.run_policy.scheduling_policy
    least = policy.min_available if policy and policy.min_available else job.workers
    return {**_head(GPU_GANGS, job, job.name), "spec": {"minMember": max(1, min(least, job.workers))}}


def _wants_more_than_plain(container: Document) -> bool:
    asked = {name for kind in ("limits", "requests") for name in part(container, "resources", kind)}
    return any(name not in PLAIN_RESOURCES and not name.startswith("hugepages-") for name in asked)


def _head(kind: Kind[Document], job: MpiJob, name: str) -> Document:
    metadata = {
        "name": name,
        "namespace": job.namespace,
        "labels": {"app": job.name, **labels_of(job)},
        "ownerReferences": [owner_reference(job)],
    }
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata}
