"""Any number of uploads at once stays within what the server may hold; what is kept gives way to what comes."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpu.errors import TooLarge
from kpu.sharing.allowance import Allowance
from kpu.torch.memory import Bounds, Memory


def make(memory_bytes=100, store_bytes=100, store_tensors=10, wait_seconds=5.0):
    return Memory(Bounds(memory_bytes, store_bytes, store_tensors, wait_seconds))


def keep(memory, tensor_id, size):
    assert memory.reserve_now(size)
    memory.keep(tensor_id, object(), size)


def test_the_oldest_leaves_when_there_are_too_many_tensors():
    memory = make(store_tensors=2)
    for tensor_id in "abc":
        keep(memory, tensor_id, 1)
    assert list(memory.kept) == ["b", "c"]
    assert memory.evicted_tensors == 1


def test_the_oldest_leaves_when_there_are_too_many_bytes():
    memory = make(store_bytes=10)
    for tensor_id in "abc":
        keep(memory, tensor_id, 5)
    assert list(memory.kept) == ["b", "c"]


def test_a_tensor_that_is_larger_than_the_store_stays_until_the_next_one_comes():
    memory = make(store_bytes=10)
    keep(memory, "large", 50)
    assert list(memory.kept) == ["large"]
    keep(memory, "small", 5)
    assert list(memory.kept) == ["small"]
    assert (memory.kept_bytes, memory.under_way_bytes) == (5, 0)


def test_a_tensor_of_the_same_id_takes_the_place_of_the_former():
    memory = make()
    keep(memory, "a", 5)
    keep(memory, "a", 7)
    assert memory.kept_bytes == 7
    assert memory.evicted_tensors == 0


@pytest.mark.parametrize("look", [iter, lambda kept: iter(kept.values()), lambda kept: iter(kept.items())])
def test_a_hook_that_goes_through_what_is_kept_is_not_disturbed_by_what_comes_and_goes(look):
    memory = make(store_tensors=3)
    for tensor_id in "abc":
        keep(memory, tensor_id, 1)
    looking = look(memory.kept)
    next(looking)
    for tensor_id in "def":
        keep(memory, tensor_id, 1)
    assert len(list(looking)) == 2
    assert (len(memory.kept), "a" in memory.kept, "f" in memory.kept) == (3, False, True)


def test_what_is_kept_gives_way_to_what_is_under_way():
    memory = make()
    keep(memory, "old", 60)
    keep(memory, "new", 30)
    assert memory.reserve_now(50)
    assert list(memory.kept) == ["new"]


def test_what_is_under_way_gives_way_to_nothing():
    memory = make()
    assert memory.reserve_now(60)
    assert not memory.reserve_now(50)


def test_a_reservation_waits_for_its_turn_and_is_served_in_order():
    async def scene():
        memory = make()
        await memory.reserve(80)
        served = []

        async def wait_for(name, size):
            await memory.reserve(size)
            served.append(name)

        waiting = [asyncio.create_task(wait_for(name, size)) for name, size in (("large", 90), ("small", 10))]
        await asyncio.sleep(0)
        assert not memory.reserve_now(5), "nobody overtakes those who wait"
        assert memory.reserve_now(0), "who needs nothing waits for nobody"
        memory.release(80)
        await asyncio.gather(*waiting)
        assert served == ["large", "small"]
        assert memory.under_way_bytes == 100

    asyncio.run(scene())


def test_a_reservation_that_waited_too_long_is_refused_and_leaves_nothing():
    async def scene():
        memory = make(wait_seconds=0.01)
        await memory.reserve(80)
        with pytest.raises(TooLarge, match="the server is busy"):
            await memory.reserve(50)
        memory.release(80)
        assert memory.under_way_bytes == 0
        assert memory.reserve_now(100)

    asyncio.run(scene())


def test_more_than_there_is_at_all_is_refused_at_once():
    with pytest.raises(TooLarge, match="more than the 100"):
        asyncio.run(make().reserve(101))


def test_what_is_there_already_counts_without_waiting_and_others_wait_until_the_sum_holds_again():
    memory = make(wait_seconds=0.05)
    keep(memory, "kept", 10)
    assert memory.reserve_now(60)

    async def main():
        memory.count_made(70)
        assert (memory.under_way_bytes, memory.total.used, list(memory.kept)) == (130, 130, [])
        with pytest.raises(TooLarge, match="the server is busy"):
            await memory.reserve(1)
        memory.release(70)
        await memory.reserve(40)

    asyncio.run(main())


def test_what_is_there_already_is_not_held_up_by_those_who_wait_and_gives_way_where_it_is_larger_than_the_sum():
    memory = make()
    assert memory.reserve_now(60)

    async def main():
        waiting = asyncio.create_task(memory.reserve(50))
        await asyncio.sleep(0)
        memory.count_made(40)
        with pytest.raises(TooLarge, match="101 bytes are more than the 100"):
            memory.count_made(101)
        memory.release(100)
        await waiting

    asyncio.run(main())
    assert memory.total.used == 50


def test_a_waiter_that_is_cancelled_in_the_moment_of_its_turn_leaves_nothing():
    async def scene():
        memory = make()
        await memory.reserve(80)
        waiting = asyncio.create_task(memory.reserve(50))
        await asyncio.sleep(0)
        memory.release(80)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert waiting.cancelled()
        assert memory.under_way_bytes == 0

    asyncio.run(scene())


def test_what_others_hold_of_the_sum_is_no_room():
    memory = make()
    elsewhere = Allowance(60, memory.total)
    assert elsewhere.take(60)
    keep(memory, "old", 30)
    assert not memory.reserve_now(50)
    assert list(memory.kept) == ["old"], "what is kept does not leave in vain"
    assert memory.reserve_now(40)
    assert list(memory.kept) == []
    assert not elsewhere.take(1)


def test_a_reservation_is_served_when_another_thread_gives_back():
    async def scene():
        memory = make()
        elsewhere = Allowance(60, memory.total)
        assert elsewhere.take(60)
        waiting = asyncio.create_task(memory.reserve(50))
        await asyncio.sleep(0)
        await asyncio.to_thread(elsewhere.give_back, 60)
        await waiting
        assert memory.under_way_bytes == memory.total.used == 50

    asyncio.run(scene())


def test_what_is_kept_on_a_device_holds_nothing_of_the_host_and_stays_when_the_host_is_full():
    memory = make(store_bytes=150)
    assert memory.reserve_now(60)
    memory.keep("on the card", object(), 60, is_on_host=False)
    keep(memory, "here", 60)
    assert memory.total.used == 60
    assert memory.reserve_now(90)
    assert list(memory.kept) == ["on the card"]
    memory.release(90)
    assert (memory.kept_bytes, memory.total.used) == (60, 0)


def test_what_is_kept_on_a_device_counts_in_the_store():
    memory = make(store_bytes=100)
    for tensor_id in "abc":
        assert memory.reserve_now(40)
        memory.keep(tensor_id, object(), 40, is_on_host=False)
    assert list(memory.kept) == ["b", "c"]
    assert memory.total.used == 0


def test_what_is_idle_elsewhere_gives_way():
    memory = make()
    elsewhere = Allowance(60, memory.total)
    assert elsewhere.take(60)
    memory.part_with_idle = lambda: elsewhere.give_back(60)
    asyncio.run(memory.reserve(100))
    assert memory.under_way_bytes == 100


WHAT = ["reserve", "release", "keep", "keep on a device", "cancel"]
steps = st.lists(st.tuples(st.sampled_from(WHAT), st.integers(0, 120)), max_size=40)


@given(steps)
def test_whatever_happens_the_sum_is_never_exceeded_and_nothing_is_lost(plan):
    async def scene():
        memory = make(store_bytes=70, store_tensors=3)
        held, waiting = [], []
        for number, (what, size) in enumerate(plan):
            if what == "reserve" and size <= 100:
                waiting.append((asyncio.create_task(memory.reserve(size)), size))
            elif what == "release" and held:
                memory.release(held.pop())
            elif what in ("keep", "keep on a device") and held:
                memory.keep(str(number % 5), object(), held.pop(), is_on_host=what == "keep")
            elif what == "cancel" and waiting:
                waiting[size % len(waiting)][0].cancel()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            held += [size for task, size in waiting if task.done() and not task.cancelled()]
            waiting = [(task, size) for task, size in waiting if not task.done()]
            assert memory.under_way_bytes + memory.kept_on_host_bytes == memory.total.used <= 100
            assert memory.kept_bytes <= 70 or len(memory.kept) == 1
            assert len(memory.kept) <= 3
        for task, _ in waiting:
            task.cancel()
        await asyncio.gather(*(task for task, _ in waiting), return_exceptions=True)
        assert memory.under_way_bytes == sum(held)

    asyncio.run(scene())
