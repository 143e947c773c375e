"""What one call does with shared memory: references out, bytes in, and what becomes of both when the call fails."""

import gc
from typing import Any, cast

import numpy as np
import pytest

from kpu.sharing.bypass import SharedMemory
from kpu.sharing.greeting import SESSION_KEY
from kpu.sharing.located import allocate
from kpu.sharing.reception import bypass_finder
from kpu.tensors import Description, Taken, take

MIB = 1 << 20


def _tensor(seed: int = 0) -> Taken:
    return take(np.random.default_rng(seed).standard_normal(MIB // 4, dtype=np.float32))


def _metadata(taken: Taken, place: dict[str, str]) -> dict[str, str]:
    return {**taken.description.metadata(), **place}


def _calls(pair) -> tuple[SharedMemory, SharedMemory]:
    """One call, as its client and as its server sees it."""
    session = pair.visit.session
    return SharedMemory(pair.client, session), SharedMemory(pair.server, session)


def _offered(call: SharedMemory, taken: Taken) -> dict[str, str]:
    detour = call.offer_at_once(taken) or call.offer(taken)
    assert detour
    return dict(detour.metadata)


def test_what_a_failed_call_offered_is_forgotten_by_both_sides(pair, eventually):
    call, _ = _calls(pair)
    first = _offered(call, _tensor())
    assert pair.server._borrowing.mapped_bytes == MIB
    call.failed()
    eventually(lambda: pair.server._borrowing.mapped_bytes == 0)
    another, _ = _calls(pair)
    assert _offered(another, _tensor())["shared.region"] != first["shared.region"]


def test_an_offer_that_comes_too_late_for_a_call_that_failed_is_forgotten_too(pair, eventually):
    call, _ = _calls(pair)
    call.failed()
    assert call.offer(_tensor()) is None
    eventually(lambda: pair.server._borrowing.mapped_bytes == 0)


def test_a_call_that_failed_after_its_tensor_was_given_back_leaves_nothing(pair, eventually):
    call, at_server = _calls(pair)
    sent = _tensor()
    raw = at_server.accept(_metadata(sent, _offered(call, sent)), MIB)
    back = _offered(at_server, Taken(sent.description, raw, copied=False))
    assert back["shared.returned"] == "true"
    call.failed()
    del raw
    gc.collect()
    eventually(lambda: pair.server._borrowing.mapped_bytes == 0)
    assert pair.client._lender._lending.allowance.used == 0


@pytest.fixture
def given_back(pair, eventually):
    """A call, what was sent in it, and what the server gave back of it and has let go of since."""
    call, at_server = _calls(pair)
    sent = _tensor()
    raw = at_server.accept(_metadata(sent, _offered(call, sent)), MIB)
    back = _offered(at_server, Taken(sent.description, raw, copied=False))
    del raw
    gc.collect()
    loan = pair.client._lender._lending.find(int(back["shared.region"]))
    eventually(lambda: not loan.out)
    return call, sent, back


def test_a_call_that_failed_when_the_server_had_let_go_of_what_it_gave_back_leaves_nothing(
    pair, given_back, eventually
):
    given_back[0].failed()
    eventually(lambda: pair.server._borrowing.mapped_bytes == 0)
    assert pair.client._lender._lending.allowance.used == 0


def test_what_comes_back_is_held_even_if_the_server_lets_go_of_it_first(pair, given_back):
    call, sent, back = given_back
    held = call.accept(_metadata(sent, back), MIB)
    another, _ = _calls(pair)
    assert _offered(another, _tensor(seed=1))["shared.region"] != back["shared.region"]
    assert np.array_equal(held, sent.raw)


@pytest.mark.parametrize(("nbytes", "is_copied"), [(4, True), (MIB // 2 - 4, True), (MIB // 2, False), (MIB, False)])
def test_a_server_copies_a_part_that_would_keep_more_than_twice_its_bytes(pair, nbytes, is_copied):
    call = SharedMemory(pair.client, pair.visit.session)
    at_server = bypass_finder(pair.door)({SESSION_KEY: pair.visit.session})
    assert at_server
    memory = allocate(MIB)
    assert memory is not None
    part = Taken(Description((nbytes,), "uint8"), memory[:nbytes], copied=False)
    raw = at_server.accept(_metadata(part, _offered(call, part)), nbytes)
    memory[:] = 1
    raw[:] = 2
    assert (memory[0] == 1) == is_copied


def test_a_tensor_that_happens_to_lie_where_a_dropped_one_lay_is_not_taken_for_it(pair):
    call, at_server = _calls(pair)
    sent = _tensor()
    raw = at_server.accept(_metadata(sent, _offered(call, sent)), MIB)
    again = np.frombuffer(cast(Any, raw.base), np.uint8)
    del raw
    gc.collect()
    made = Taken(Description((MIB // 4,), "float32"), again, copied=False)
    assert "shared.returned" not in _offered(at_server, made)


def _on_device(values: np.ndarray, fetch=None) -> Taken:
    """As a tensor of a device is taken: its bytes are there, and come when they are fetched."""
    raw = values.reshape(-1).view(np.uint8)
    return Taken(Description(values.shape, str(values.dtype)), None, False, fetch or (lambda to: np.copyto(to, raw)))


def test_what_lies_on_a_device_is_written_straight_to_shared_memory(pair):
    call, at_server = _calls(pair)
    values = np.arange(MIB // 4, dtype=np.float32)
    for _ in range(2):  # into a fresh region, and into one that was used before
        taken = _on_device(values)
        assert call.offer_at_once(taken) is None
        assert call.may_take(taken)
        raw = at_server.accept(_metadata(taken, _offered(call, taken)), MIB)
        assert np.array_equal(raw.view(np.float32), values)
        assert taken.on_host is None
        del raw
        gc.collect()


def test_a_device_that_fails_leaves_no_region_behind(pair, eventually):
    def fail(_):
        raise RuntimeError("the device is gone")

    call, _ = _calls(pair)
    with pytest.raises(RuntimeError, match="the device is gone"):
        call.offer(_on_device(np.zeros(MIB // 4, np.float32), fail))
    eventually(lambda: pair.client._lender._lending.allowance.used == 0)
    assert _offered(call, _tensor())


def test_what_lies_on_a_device_comes_to_the_host_where_no_way_leads_past_grpc():
    taken = _on_device(np.arange(10, dtype=np.int64))
    assert bytes(taken.view) == np.arange(10, dtype=np.int64).tobytes()
    assert taken.copied
