"""What one call does with shared memory: references out, bytes in, and what becomes of both when the call fails."""

import gc
from typing import Any, cast

import numpy as np

from kpu.sharing.bypass import SharedMemory
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


def test_what_comes_back_is_held_even_if_the_server_lets_go_of_it_first(pair, eventually):
    call, at_server = _calls(pair)
    sent = _tensor()
    raw = at_server.accept(_metadata(sent, _offered(call, sent)), MIB)
    back = _offered(at_server, Taken(sent.description, raw, copied=False))
    del raw
    gc.collect()
    loan = pair.client._lender._lending.find(int(back["shared.region"]))
    eventually(lambda: not loan.out)
    held = call.accept(_metadata(sent, back), MIB)
    another, _ = _calls(pair)
    assert _offered(another, _tensor(seed=1))["shared.region"] != back["shared.region"]
    assert np.array_equal(held, sent.raw)


def test_a_tensor_that_happens_to_lie_where_a_dropped_one_lay_is_not_taken_for_it(pair):
    call, at_server = _calls(pair)
    sent = _tensor()
    raw = at_server.accept(_metadata(sent, _offered(call, sent)), MIB)
    again = np.frombuffer(cast(Any, raw.base), np.uint8)
    del raw
    gc.collect()
    made = Taken(Description((MIB // 4,), "float32"), again, copied=False)
    assert "shared.returned" not in _offered(at_server, made)
