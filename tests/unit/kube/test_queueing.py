"""The queue: no mark is lost, no key is in two hands, and the first marked comes first."""

import asyncio

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tessera.kube.queueing import KeyQueue, WorkQueue


class QueueMachine(RuleBasedStateMachine):
    """Beside the queue, what a reader would keep on paper: who was marked after being last taken, in which order."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: KeyQueue[str] = KeyQueue()
        self.unseen: list[str] = []
        self.hands: set[str] = set()

    @rule(key=st.sampled_from("abcde"))
    def mark(self, key: str) -> None:
        self.queue.mark(key)
        if key not in self.unseen:
            self.unseen.append(key)

    @rule()
    def take(self) -> None:
        key = self.queue.take()
        free = [key for key in self.unseen if key not in self.hands]
        assert (key is None) == (not free)
        if key is not None:
            assert key in free
            self.unseen.remove(key)
            self.hands.add(key)

    @precondition(lambda self: self.hands)
    @rule(data=st.data())
    def put_down(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.hands)))
        self.hands.remove(key)
        self.queue.put_down(key)

    @invariant()
    def counts_what_waits(self) -> None:
        assert len(self.queue) == len(self.unseen)
        assert self.queue.in_hand == len(self.hands)


TestQueueMachine = QueueMachine.TestCase


def test_the_first_marked_is_the_first_taken() -> None:
    queue: KeyQueue[str] = KeyQueue()
    for key in "abab":
        queue.mark(key)

    assert [queue.take(), queue.take(), queue.take()] == ["a", "b", None]


def test_what_is_marked_while_in_hand_comes_again_afterwards() -> None:
    queue: KeyQueue[str] = KeyQueue()
    queue.mark("a")
    queue.take()
    queue.mark("a")

    while_in_hand = queue.take()
    queue.put_down("a")

    assert (while_in_hand, queue.take()) == (None, "a")


@pytest.mark.asyncio
async def test_a_task_that_waits_is_woken_by_a_mark() -> None:
    queue: WorkQueue[str] = WorkQueue()
    async with asyncio.TaskGroup() as group:
        taken = group.create_task(queue.take())
        await asyncio.sleep(0)
        queue.mark("a")

    assert taken.result() == "a"


@pytest.mark.asyncio
async def test_closing_sends_everybody_home() -> None:
    queue: WorkQueue[str] = WorkQueue()
    async with asyncio.TaskGroup() as group:
        waiting = [group.create_task(queue.take()) for _ in range(3)]
        await asyncio.sleep(0)
        queue.mark_later("a", 100)
        queue.close()
        queue.mark("b")

    assert [task.result() for task in waiting] == [None, None, None]
    assert queue.delayed == 0


@pytest.mark.asyncio
async def test_of_two_delays_the_sooner_stands() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.mark_later("a", 1000)
    queue.mark_later("a", 0)
    queue.mark_later("a", 1000)

    assert await queue.take() == "a"
    assert queue.delayed == 0
