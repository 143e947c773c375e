"""The job that is awaited: the same answers, a loop that is never held up, and threads that end when they should."""

import asyncio
import threading
import time

import pytest
from api_server import Failure, Stream
from conftest import JOBS, PODS, a_pod, live, says
from kubernetes.client.exceptions import ApiException

from openshift_ai_sdk.training import AsyncMPIJob, NoSuchWorker

JOB, LOG = f"{JOBS}/train", f"{PODS}/train-launcher-x/log"
RUNNING, DONE = live(says("Running")), live(says("Succeeded"))
PATIENCE_S = 10.0


@pytest.fixture
def job():
    return AsyncMPIJob("train", "lab", workers=2, image="mpi")


def line(text, second=1):
    return f"2026-01-01T00:00:{second:02}Z {text}\n".encode()


def our_threads():
    return [one for one in threading.enumerate() if one.name == "openshift-ai-sdk"]


def threads_end():
    until_s = time.monotonic() + PATIENCE_S
    while our_threads() and time.monotonic() < until_s:
        time.sleep(0.01)
    return our_threads() == []


def test_a_job_is_created_looked_at_waited_for_and_deleted(server, job):
    server.on("POST", JOBS, RUNNING)
    server.on("GET", JOB, RUNNING, DONE)
    server.on("GET", JOBS, {"items": [RUNNING]})
    server.on("DELETE", JOB, {})

    async def use():
        assert await job.create() is job
        assert await job.get_status() == "Running"
        assert [one.name for one in await AsyncMPIJob.list("lab")] == ["train"]
        assert (await AsyncMPIJob.get("train", "lab")).workers == 2
        told = []
        assert await job.wait_for_completion(callback=told.append) == "Succeeded"
        assert told == ["Succeeded"]
        assert (await job.explain()).cause == "Succeeded"
        assert await job.get_worker_statuses() == []
        await job.delete()

    asyncio.run(use())
    assert threads_end()


def test_logs_are_awaited_or_iterated_over(server, job):
    server.on("GET", JOB, RUNNING, DONE)
    server.on("GET", PODS, {"items": [a_pod()]}, {"items": [a_pod()]}, {"items": [a_pod(state="terminated")]})
    server.on("GET", LOG, "all\n", Stream((line("a"), line("b", 2))), Stream(()))

    async def use():
        assert await job.get_logs() == "all\n"
        return [text async for text in job.get_logs(follow=True)]

    assert asyncio.run(use()) == ["a\n", "b\n"]


def test_a_followed_log_may_be_awaited_first(server, job):
    server.on("GET", JOB, DONE)
    server.on("GET", PODS, {"items": [a_pod(state="terminated")]})
    server.on("GET", LOG, Stream((line("a"),)))

    async def use():
        return [text async for text in await job.get_logs(follow=True)]

    assert asyncio.run(use()) == ["a\n"]


def test_the_loop_goes_on_while_a_job_is_waited_for(server, job):
    held = threading.Event()
    server.on("GET", JOB, RUNNING, DONE)
    server.on(
        "GET", JOBS, lambda _: Stream((b'{"type": "MODIFIED"}\n',)) if held.wait(PATIENCE_S) else Failure(500, "")
    )

    async def use():
        waiting = asyncio.ensure_future(job.wait_for_completion())
        for _ in range(20):
            await asyncio.sleep(0.01)
        assert not waiting.done()
        held.set()
        return await waiting

    assert asyncio.run(use()) == "Succeeded"


def test_errors_arrive_as_they_are(server, job):
    server.on("GET", JOB, Failure(404, "not found", "train"))

    async def use():
        with pytest.raises(ApiException):
            await job.get_status()
        with pytest.raises(ApiException):
            async for _ in job.get_logs(follow=True):
                pass
        with pytest.raises(NoSuchWorker):
            job.get_logs(worker_index=9, follow=True)
        with pytest.raises(ValueError, match="dots"):
            await AsyncMPIJob("a.b", image="mpi").create()

    asyncio.run(use())


def test_who_cancels_a_wait_ends_its_thread_and_its_watch(server, job):
    server.on("GET", JOB, RUNNING)
    server.on("GET", JOBS, Stream((), until=server.ended))

    async def use():
        waiting = asyncio.ensure_future(job.wait_for_completion(poll_interval=600))
        while not server.asked("GET", JOBS):
            await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(use())
    assert threads_end()


@pytest.mark.parametrize("way", ["cancel", "close", "forget"])
def test_who_stops_following_ends_its_thread_and_its_stream(server, job, way):
    server.on("GET", JOB, RUNNING)
    server.on("GET", PODS, {"items": [a_pod()]})
    server.on("GET", LOG, Stream((line("a"),), until=server.ended))

    async def follow(arrived):
        lines = job.get_logs(follow=True)
        async for _ in lines:
            arrived.set()
            if way == "close":
                await lines.aclose()
            if way == "forget":
                break

    async def use():
        arrived = asyncio.Event()
        following = asyncio.ensure_future(follow(arrived))
        await asyncio.wait_for(arrived.wait(), PATIENCE_S)
        if way == "cancel":
            following.cancel()
            with pytest.raises(asyncio.CancelledError):
                await following
        await asyncio.wait({following}, timeout=PATIENCE_S)

    asyncio.run(use())
    assert threads_end()


def test_a_slow_reader_holds_the_log_up_and_not_the_memory(server, job):
    server.on("GET", JOB, DONE)
    server.on("GET", PODS, {"items": [a_pod(state="terminated")]})
    server.on("GET", LOG, Stream(tuple(line(f"{number}") for number in range(3000))))

    async def use():
        lines = job.get_logs(follow=True, tail_lines=None)
        first = await lines.__anext__()
        await asyncio.sleep(0.3)
        assert lines._queue is not None
        assert lines._queue.qsize() <= 1000
        return [first, *[text async for text in lines]]

    assert asyncio.run(use()) == [f"{number}\n" for number in range(3000)]


def test_many_jobs_are_waited_for_at_once(server):
    jobs = [AsyncMPIJob(f"job-{number}", "lab", image="mpi") for number in range(50)]
    server.on("GET", f"{JOBS}/job-[0-9]+", RUNNING)
    server.on("GET", JOBS, Stream((), until=server.ended))

    async def use():
        waiting = [asyncio.ensure_future(one.wait_for_completion(poll_interval=0.2)) for one in jobs]
        while len(server.asked("GET", JOBS)) < len(jobs):
            await asyncio.sleep(0.01)
        server.on("GET", f"{JOBS}/job-[0-9]+", DONE)
        return await asyncio.gather(*waiting)

    assert asyncio.run(use()) == ["Succeeded"] * 50


def test_a_callback_that_runs_out_of_things_is_heard_of(server, job):
    server.on("GET", JOB, RUNNING)
    nothing = iter(())

    async def use():
        with pytest.raises(RuntimeError, match="StopIteration"):
            await asyncio.wait_for(job.wait_for_completion(callback=lambda _: next(nothing)), PATIENCE_S)

    asyncio.run(use())
