"""The reconciler: what follows from each way in which the work on a key can end."""

import asyncio
from collections import Counter

import pytest

from tessera.errors import Unrecoverable
from tessera.kube.reconciler import Again, Reconciler
from tessera.kube.timing import Backoff

AT_ONCE = Backoff(first_s=0.0, most_s=0.0)
pytestmark = pytest.mark.asyncio


async def test_a_failure_is_tried_again_until_it_succeeds() -> None:
    tries = Counter[str]()

    async def succeed_at_the_third_try(key: str) -> None:
        tries[key] += 1
        if tries[key] < 3:
            raise ValueError("not yet")
        reconciler.stop()

    reconciler = Reconciler("test", succeed_at_the_third_try, backoff=AT_ONCE)
    reconciler.mark("a")
    await reconciler.run()

    assert tries == {"a": 3}
    assert (reconciler.counts.failed, reconciler.counts.done) == (2, 1)


async def test_what_is_unrecoverable_is_tried_again_only_when_it_is_marked() -> None:
    seen: list[str] = []

    async def give_up(key: str) -> None:
        seen.append(key)
        if len(seen) == 2:
            reconciler.stop()
        elif key == "a":
            reconciler.mark("b")
        raise Unrecoverable("never")

    reconciler = Reconciler("test", give_up, backoff=AT_ONCE)
    reconciler.mark("a")
    await reconciler.run()

    assert seen == ["a", "b"]
    assert (reconciler.counts.given_up, reconciler.queue.delayed) == (2, 0)


async def test_a_wish_to_look_again_is_kept() -> None:
    seen: list[str] = []

    async def look_twice(key: str) -> Again | None:
        seen.append(key)
        if len(seen) < 2:
            return Again(after_s=0.0)
        reconciler.stop()
        return None

    reconciler = Reconciler("test", look_twice)
    reconciler.mark("a")
    await reconciler.run()

    assert (seen, reconciler.counts.again, reconciler.counts.done) == (["a", "a"], 1, 1)


async def test_no_key_is_worked_on_twice_at_once_and_no_mark_is_lost() -> None:
    running, finished, most = Counter[str](), Counter[str](), 0

    async def work(key: str) -> None:
        nonlocal most
        running[key] += 1
        most = max(most, running[key])
        await asyncio.sleep(0)
        running[key] -= 1
        finished[key] += 1

    reconciler = Reconciler("test", work, workers=4)
    async with asyncio.TaskGroup() as group:
        group.create_task(reconciler.run())
        for _ in range(50):
            reconciler.mark("a")
            reconciler.mark("b")
            await asyncio.sleep(0)
        while len(reconciler.queue) or reconciler.queue.in_hand:
            await asyncio.sleep(0)
        reconciler.stop()

    assert most == 1
    assert min(finished["a"], finished["b"]) >= 10


async def test_stopping_finishes_what_is_in_hand_and_leaves_the_rest() -> None:
    started, may_finish, finished = asyncio.Event(), asyncio.Event(), list[str]()

    async def work(key: str) -> None:
        started.set()
        await may_finish.wait()
        finished.append(key)

    reconciler = Reconciler("test", work, workers=1)
    reconciler.mark("a")
    reconciler.mark("b")
    async with asyncio.TaskGroup() as group:
        group.create_task(reconciler.run())
        await started.wait()
        reconciler.stop()
        may_finish.set()

    assert (finished, len(reconciler.queue)) == (["a"], 1)


async def test_failures_of_one_key_do_not_slow_the_others() -> None:
    done: list[str] = []

    async def work(key: str) -> None:
        if key == "bad":
            raise ValueError("always")
        done.append(key)
        if len(done) == 20:
            reconciler.stop()

    reconciler = Reconciler("test", work, workers=1, backoff=Backoff(first_s=1000, most_s=1000))
    reconciler.mark("bad")
    for number in range(20):
        reconciler.mark(f"good-{number}")
    await reconciler.run()

    assert len(done) == 20
