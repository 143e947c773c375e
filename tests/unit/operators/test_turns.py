"""Whose turn it is to write."""

import pytest

from tessera.kube.client import Client
from tessera.operators.turns import WRITE_S, Turn, TurnOver


class Term:
    """Somebody's time as a leader."""

    epoch = 1
    is_leader = True

    def __init__(self) -> None:
        self.lasts = True

    def may_write(self) -> bool:
        return self.lasts

    def may_read_state(self) -> bool:
        return True

    async def gained(self) -> None: ...
    async def lost(self) -> None: ...
    async def run(self) -> None: ...


class Noting(Client):
    def __init__(self) -> None:
        self.within_s = 0.0

    def within(self, deadline_s: float) -> Client:
        self.within_s = deadline_s
        return self


def test_each_write_is_asked_for_anew_and_ends_within_the_term():
    term, client = Term(), Noting()
    turn = Turn(term, lambda: True)
    assert turn.pen(client) is client
    assert client.within_s == WRITE_S
    term.lasts = False
    with pytest.raises(TurnOver):
        turn.pen(client)


def test_whoever_is_alone_may_always_write():
    assert Turn(None, lambda: True).pen(Noting())
