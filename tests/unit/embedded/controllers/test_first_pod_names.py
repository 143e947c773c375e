"""A Job that says what its first pod is called, as launchers of MPIJobs do."""

from itertools import count as counting
from typing import Any

import msgspec

from tessera.embedded.controllers.job_pods import missing_pods
from tessera.embedded.controllers.objects import Job
from tessera.embedded.controllers.pods import Pod
from tessera.model.mpi_hosts import FIRST_POD_NAME
from tests.unit.embedded.controllers.making import TEMPLATE, metadata, pod


def named_job(name: str) -> Job:
    head = metadata("fit-launcher", annotations={FIRST_POD_NAME: name})
    return msgspec.convert({"metadata": head, "spec": {"template": TEMPLATE}}, Job)


def names_of(job: Job, count: int, *pods: Pod) -> list[Any]:
    made = missing_pods(job, pods, set(), count, (f"s{number}" for number in counting()))
    return [one["metadata"]["name"] for one in made]


def test_the_first_pod_is_called_as_the_job_says_and_others_are_not() -> None:
    assert names_of(named_job("fit-launcher"), 2) == ["fit-launcher", "fit-launcher-s1"]


def test_a_name_is_not_given_twice() -> None:
    failed = pod("fit-launcher", "Failed")
    assert names_of(named_job("fit-launcher"), 1, failed) == ["fit-launcher-s0"]
