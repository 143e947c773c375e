"""Hooks are code of others: whatever they raise is told, and one that never returns costs a thread and nothing more."""

import asyncio
import sys
import threading

import pytest

from kpu.errors import TransferTimeout
from kpu.torch import hook_threads
from kpu.torch.hook_threads import HookThreads


@pytest.fixture
def threads():
    made: list[HookThreads] = []

    def make(seconds=0.0):
        made.append(HookThreads(seconds))
        return made[-1]

    yield make
    for one in made:
        one.close()


def raising(error):
    def hook():
        raise error

    return hook


def test_what_a_hook_returns_comes_back(threads):
    assert asyncio.run(threads().run(lambda: 42)) == 42


@pytest.mark.parametrize("error", [ValueError("no"), TimeoutError("the database did not answer")])
def test_an_ordinary_exception_comes_out_as_it_is(threads, error):
    with pytest.raises(type(error), match=str(error)):
        asyncio.run(threads().run(raising(error)))


@pytest.mark.parametrize("error", [StopIteration(3), SystemExit(1), KeyboardInterrupt(), asyncio.CancelledError()])
def test_what_would_end_something_else_comes_out_as_a_failure_of_the_hook(threads, error):
    async def bounded():
        async with asyncio.timeout(10):
            await threads().run(raising(error))

    with pytest.raises(RuntimeError, match=f"a hook raised {type(error).__name__}"):
        asyncio.run(bounded())


def test_a_thread_is_used_again(threads):
    async def names():
        own = threads()
        return {await own.run(lambda: threading.current_thread().name) for _ in range(20)}

    assert len(asyncio.run(names())) <= 2


def test_a_hook_that_hangs_is_ended_for_its_caller_and_others_go_on(threads):
    release = threading.Event()

    async def scene():
        own = threads(0.05)
        with pytest.raises(TransferTimeout, match=r"did not return within 0\.05 s"):
            await own.run(release.wait)
        assert await own.run(lambda: 42) == 42
        release.set()

    asyncio.run(scene())


def test_hooks_that_hang_are_bounded_and_leave_the_threads_of_the_server_alone(threads, monkeypatch):
    monkeypatch.setattr(hook_threads, "THREADS_LIMIT", 3)
    release = threading.Event()

    async def scene():
        own = threads()
        hanging = [asyncio.create_task(own.run(release.wait)) for _ in range(50)]
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(10):
                assert await asyncio.to_thread(lambda: 42) == 42
            assert sum(thread.name.startswith("kpu-hook") for thread in threading.enumerate()) <= 3
        finally:
            release.set()
        assert await asyncio.gather(*hanging) == [True] * 50

    asyncio.run(scene())


def test_nothing_of_a_call_is_held_by_a_thread_that_waits(threads):
    class Tensor:
        pass

    async def scene():
        own, tensor = threads(), Tensor()
        references = sys.getrefcount(tensor)
        await own.run(lambda: tensor and None)
        await own.run(lambda: None)
        assert sys.getrefcount(tensor) == references

    asyncio.run(scene())
