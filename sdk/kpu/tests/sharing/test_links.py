"""Bytes are lent over a link and viewed at its other end: snapshots once copied, shared tensors never."""

import gc
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from kpu.errors import BypassClosed, MalformedMessage
from kpu.sharing import lender, located
from kpu.sharing.knocking import visit
from kpu.sharing.lender import Handover
from kpu.sharing.limits import Limits
from kpu.sharing.link import Link
from kpu.sharing.located import allocate

MIB = 1 << 20


def _bytes(nbytes: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, nbytes, dtype=np.uint8)


def _lend(link: Link, data: np.ndarray) -> Handover:
    handover = link.lend(data)
    assert handover
    return handover


def _shared(nbytes: int) -> np.ndarray:
    memory = allocate(nbytes)
    assert memory is not None
    return memory


def _view(link: Link, handover: Handover, nbytes: int) -> np.ndarray:
    return link.borrow(handover.region, handover.offset, nbytes)


@pytest.mark.parametrize("upwards", [True, False])
def test_what_is_lent_arrives_bit_by_bit_in_either_direction(pair, upwards):
    sender, receiver = (pair.client, pair.server) if upwards else (pair.server, pair.client)
    data = _bytes(3 * MIB + 5)
    handover = _lend(sender, data)
    assert handover.copied == data.nbytes
    assert np.array_equal(_view(receiver, handover, data.nbytes), data)


def test_an_ordinary_tensor_is_a_snapshot(pair):
    data = _bytes(MIB)
    view = _view(pair.server, _lend(pair.client, data), MIB)
    before = data.copy()
    data[:] = 0
    assert np.array_equal(view, before)


def test_a_tensor_in_shared_memory_is_not_copied_and_later_changes_are_seen(pair):
    data = _shared(MIB)
    data[:] = 1
    handover = _lend(pair.client, data)
    view = _view(pair.server, handover, MIB)
    data[7] = 9
    view[8] = 5
    assert handover.copied == 0
    assert (view[7], data[8]) == (9, 5)


def test_a_part_of_a_shared_tensor_is_handed_over_from_where_it_starts(pair):
    data = _shared(2 * MIB)
    data[:] = _bytes(2 * MIB)
    part = data[4096 + 3 : 8192]
    handover = _lend(pair.client, part)
    assert (handover.offset, handover.copied) == (4096 + 3, 0)
    assert np.array_equal(_view(pair.server, handover, part.nbytes), part)


def test_a_shared_tensor_dropped_while_it_is_on_its_way_still_arrives(pair, eventually):
    data = _shared(MIB)
    data[:] = 3
    handover = _lend(pair.client, data)
    del data
    gc.collect()
    _round_trip(pair)
    view = _view(pair.server, handover, MIB)
    assert view.min() == view.max() == 3
    del view
    gc.collect()
    eventually(lambda: pair.server._borrowing.mapped_bytes == MIB, seconds=2)  # the region of the round trip alone


def test_a_shared_tensor_dropped_by_its_maker_takes_no_descriptor_but_counts_while_it_is_viewed(pair, eventually):
    before, alive = len(os.listdir("/proc/self/fd")), len(located._alive)
    views = []
    for _ in range(20):
        handover = _lend(pair.client, _shared(4096))
        views.append(_view(pair.server, handover, 4096))
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before
    assert len(located._alive) == alive + 20
    allowance = pair.client._lender._lending.allowance
    assert allowance.used == 20 * 4096
    views.clear()
    gc.collect()
    eventually(lambda: allowance.used == 0)
    eventually(lambda: len(located._alive) == alive)


def test_no_more_is_shown_than_may_be_held_for_the_other_side(pair, monkeypatch):
    allowance = pair.client._lender._lending.allowance
    monkeypatch.setattr(allowance, "limit", allowance.used + MIB)
    first, second = _shared(MIB), _shared(MIB)
    assert _lend(pair.client, first).copied == 0
    assert _lend(pair.client, first).copied == 0, "it counts once"
    assert pair.client.lend(second) is None


def test_idle_regions_leave_at_once_when_their_memory_is_needed(pair, eventually):
    _view(pair.client, _lend(pair.server, _bytes(MIB)), MIB)
    gc.collect()
    eventually(lambda: pair.server._lender._lending.pool.idle_bytes)
    pair.door.part_with_idle()
    eventually(lambda: pair.server._lender._lending.allowance.used == 0)
    eventually(lambda: pair.client._borrowing.mapped_bytes == 0)


def test_a_region_is_filled_again_only_after_the_tensor_that_lay_there_is_gone(pair, eventually):
    first = _lend(pair.client, _bytes(MIB))
    held = _view(pair.server, first, MIB)
    second = _lend(pair.client, _bytes(MIB, seed=1))
    assert second.region != first.region
    assert np.array_equal(held, _bytes(MIB))
    part = held[10:20].view(np.int16)
    del held
    gc.collect()
    _round_trip(pair)
    assert _lend(pair.client, _bytes(MIB)).region not in (first.region, second.region), "a part of it is still viewed"
    del part
    gc.collect()
    eventually(lambda: _lend(pair.client, _bytes(MIB)).region == first.region)


def test_a_region_used_again_is_not_handed_over_again(pair, eventually):
    for seed in range(5):
        data = _bytes(MIB, seed)
        handover = _lend(pair.client, data)
        view = _view(pair.server, handover, MIB)
        assert handover.region == 1
        assert np.array_equal(view, data)
        del view
        gc.collect()
        eventually(lambda: pair.client._lender._lending.pool.idle_bytes)


def test_a_region_that_is_about_to_come_back_is_waited_for_rather_than_a_fresh_one_made(pair, monkeypatch):
    monkeypatch.setattr(lender, "PATIENCE_S_PER_BYTE", 60 / MIB)
    views = [_view(pair.server, _lend(pair.client, _bytes(MIB)), MIB)]
    dropping = threading.Timer(0.05, views.clear)
    dropping.start()
    assert _lend(pair.client, _bytes(MIB)).region == 1
    dropping.join()


def test_a_region_that_does_not_come_back_is_not_waited_for_long(pair):
    views = [_view(pair.server, _lend(pair.client, _bytes(MIB)), MIB) for _ in range(3)]
    assert len(views) == 3


def test_a_region_of_a_call_that_failed_is_never_filled_again(pair, eventually):
    handover = _lend(pair.client, _bytes(MIB))
    view = _view(pair.server, handover, MIB)
    pair.client.write_off(handover)
    assert _lend(pair.client, _bytes(MIB, seed=1)).region != handover.region
    assert np.array_equal(view, _bytes(MIB))
    del view
    gc.collect()
    eventually(lambda: pair.server._borrowing.mapped_bytes == MIB)


def test_idle_regions_leave_both_sides_after_a_while(connect, eventually):
    pair = connect(Limits(idle_seconds=0.05))
    view = _view(pair.server, _lend(pair.client, _bytes(MIB)), MIB)
    assert pair.server._borrowing.mapped_bytes == MIB
    del view
    gc.collect()
    eventually(lambda: pair.server._borrowing.mapped_bytes == 0)
    assert pair.client._lender._lending.allowance.used == 0


def test_received_tensors_are_writable_and_survive_both_ends_being_closed(pair):
    data = _bytes(MIB)
    view = _view(pair.client, _lend(pair.server, data), MIB)
    pair.visit.close()
    pair.door.close()
    assert np.array_equal(view, data)
    view[:] = 1
    assert view.sum() == MIB


def test_small_payloads_and_empty_ones_go_another_way(pair):
    assert pair.client.lend(_bytes(100)) is None
    assert pair.client.lend(np.empty(0, np.uint8)) is None


def test_nothing_is_lent_over_a_closed_link(pair, eventually):
    pair.visit.close()
    assert pair.client.lend(_bytes(MIB)) is None
    assert pair.client.lend(_shared(MIB)) is None
    eventually(lambda: pair.door.link(pair.visit.session) is None)
    with pytest.raises(BypassClosed, match="is closed"):
        pair.client.borrow(1, 0, 10)


def test_more_than_the_other_side_takes_goes_another_way_until_it_lets_go(connect, eventually):
    pair = connect(Limits(borrowed_bytes=2 * MIB, regions=8))
    views = [_view(pair.server, _lend(pair.client, _bytes(MIB)), MIB) for _ in range(2)]
    assert pair.client.lend(_bytes(MIB)) is None
    views.clear()
    gc.collect()
    eventually(lambda: pair.client.lend(_bytes(MIB)))


def test_more_regions_than_the_other_side_takes_go_another_way(connect):
    pair = connect(Limits(regions=3))
    views = [_view(pair.server, _lend(pair.client, _bytes(MIB)), MIB) for _ in range(3)]
    assert pair.client.lend(_bytes(MIB)) is None
    assert len(views) == 3


def test_without_memfd_tensors_go_another_way(pair, monkeypatch, caplog):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "memfd_create", refuse)
    used = pair.client._lender._lending.allowance.used
    assert pair.client.lend(_bytes(MIB)) is None
    assert allocate(MIB) is None
    assert pair.client._lender._lending.allowance.used == used
    assert "a tensor goes over gRPC" in caplog.text


@pytest.mark.parametrize(
    ("region", "offset", "nbytes", "says"),
    [
        (99, 0, 10, "shared region 99 is unknown"),
        (1, 0, MIB + 1, "said to take 1048577"),
        (1, MIB, 1, "from 1048576"),
        (1, -1, 1, "from -1"),
        (1, 2**63, 1, "from 9223372036854775808"),
    ],
)
def test_a_reference_to_what_is_not_there_is_refused(pair, region, offset, nbytes, says):
    _lend(pair.client, _bytes(MIB))
    with pytest.raises(MalformedMessage, match=says):
        pair.server.borrow(region, offset, nbytes)
    assert np.array_equal(pair.server.borrow(1, 0, MIB), _bytes(MIB))


def test_one_client_cannot_view_what_another_was_lent(connect):
    pair = connect()
    other = visit(pair.door.invite())
    assert other
    handover = _lend(pair.client, _bytes(MIB))
    other_link = pair.door.link(other.session)
    with pytest.raises(MalformedMessage, match="unknown"):
        other_link.borrow(handover.region, 0, MIB)
    other.close()


def test_many_threads_lend_and_drop_at_once_and_every_byte_is_right(pair):
    def lend_and_check(seed: int) -> bool:
        data = _bytes(MIB // 2 + seed, seed)
        handover = _lend(pair.client, data)
        return np.array_equal(_view(pair.server, handover, data.nbytes), data)

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(lend_and_check, range(200)))


def test_many_clients_at_once_are_served_and_kept_apart(pair):
    def one_client(seed: int) -> bool:
        guest = visit(pair.door.invite())
        assert guest
        data = _bytes(MIB, seed)
        link = pair.door.link(guest.session)
        up = _view(link, _lend(guest.link, data), MIB)
        down = _view(guest.link, _lend(link, up), MIB)
        guest.close()
        return np.array_equal(down, data)

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(one_client, range(32)))


@pytest.mark.usefixtures("nothing_is_left")
def test_descriptors_and_threads_end_with_the_link(connect):
    pair = connect()
    handovers = [_lend(pair.client, _bytes(MIB)) for _ in range(5)] + [_lend(pair.client, _shared(MIB))]
    kept = [_view(pair.server, handover, MIB) for handover in handovers]
    dropped = [_view(pair.client, _lend(pair.server, _bytes(MIB)), MIB) for _ in range(5)]
    assert len(dropped) == 5
    pair.visit.close()
    pair.door.close()
    assert kept[0][0] == _bytes(MIB)[0]


def test_regions_take_no_descriptor_while_they_are_lent(pair):
    before = len(os.listdir("/proc/self/fd"))
    views = [_view(pair.server, _lend(pair.client, _bytes(MIB)), MIB) for _ in range(20)]
    assert len(views) == 20
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_forked_child_sends_another_way_and_does_not_fill_its_parents_idle_regions(pair, eventually):
    _view(pair.server, _lend(pair.client, _bytes(MIB)), MIB)
    gc.collect()
    eventually(lambda: pair.client._lender._lending.pool.idle_bytes)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, b"none" if pair.client.lend(_bytes(MIB)) is None else b"lent")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 4) == b"none"
    assert np.array_equal(_view(pair.server, _lend(pair.client, _bytes(MIB)), MIB), _bytes(MIB))
    os.close(reader)
    os.close(writer)


@pytest.mark.usefixtures("pair")
def test_threads_are_named_and_do_not_keep_the_process():
    ours = [thread for thread in threading.enumerate() if thread.name == "kpu-shared-memory"]
    assert len(ours) == 2
    assert all(thread.daemon for thread in ours)


def _round_trip(pair) -> None:
    """Whatever the client said before has been read by the server when this returns."""
    handover = _lend(pair.client, _bytes(MIB, seed=99))
    pair.client.write_off(handover)
    _lend(pair.client, _bytes(MIB, seed=98))
