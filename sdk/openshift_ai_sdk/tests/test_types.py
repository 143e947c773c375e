"""What callers' editors and type checkers know. pyright reads this file with the others; running it proves the rest."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Iterator
from typing import Any, Optional, Union

from openshift_ai_sdk.training import AsyncMPIJob, Explanation, MPIJob, ResourceRequirements


def use(job: MPIJob) -> None:
    made: MPIJob = job.create()
    status: str = made.get_status()
    final: str = job.wait_for_completion(timeout=7200)
    text: str = job.get_logs(worker_index=0)
    lines: Iterator[str] = job.get_logs(follow=True)
    same: Iterator[str] = job.get_logs(None, True)
    either: Union[str, Iterator[str]] = job.get_logs(follow=bool(text))
    jobs: list[MPIJob] = MPIJob.list(namespace="ml-team", label_selector="app=training")
    workers: list[dict[str, Any]] = MPIJob.get("train").get_worker_statuses()
    metrics: dict[str, Any] = job.get_metrics()
    verdict: Explanation = job.explain()
    again: MPIJob = MPIJob.from_yaml(job.to_yaml()).suspend().resume()
    print(status, final, text, lines, same, either, jobs, workers, metrics, verdict, again)


async def use_async(job: AsyncMPIJob) -> None:
    made: AsyncMPIJob = await job.create()
    text: Awaitable[str] = made.get_logs()
    lines: AsyncIterator[str] = job.get_logs(follow=True)
    jobs: list[AsyncMPIJob] = await AsyncMPIJob.list()
    print(await text, lines, jobs)


def submit(name: str, workers: int, image: str, env: Optional[dict[str, str]] = None) -> MPIJob:
    return MPIJob(name=name, workers=workers, image=image, env=env or {}, resources=ResourceRequirements())


class Special(MPIJob):
    pass


def test_both_kinds_of_job_have_the_same_surface():
    def surface(kind: type) -> dict[str, list[str]]:
        members = inspect.getmembers(kind, lambda member: inspect.isroutine(member))
        public = {name: member for name, member in members if not name.startswith("_")}
        return {name: list(inspect.signature(member).parameters) for name, member in public.items()}

    assert surface(AsyncMPIJob) == surface(MPIJob)


def test_every_public_method_says_what_it_does():
    for kind in (MPIJob, AsyncMPIJob, ResourceRequirements, Explanation):
        members = [member for name, member in vars(kind).items() if not name.startswith("_")]
        routines = [
            getattr(member, "__func__", member) for member in members if not isinstance(member, (property, str))
        ]
        assert [one for one in routines if inspect.isfunction(one) and not one.__doc__] == []


def test_a_class_of_ones_own_stays_what_it_is():
    special: Special = Special.from_yaml(submit("train", 2, "mpi").to_yaml())
    assert type(special) is Special
