"""Nobody of a gang goes until all who are needed have come."""

import asyncio

import pytest

from tessera.errors import BindRefused
from tessera.kube.objects import ObjectKey
from tessera.scheduler.rallies import Rallies

pytestmark = pytest.mark.asyncio
GANG = ObjectKey("default", "crew")


async def test_who_comes_first_waits_for_the_last():
    rallies = Rallies(patience_s=30)
    rallies.begin(GANG, 3)
    early = [asyncio.create_task(rallies.join(GANG, uid)) for uid in ("one", "two")]
    await asyncio.sleep(0)
    assert not any(task.done() for task in early)
    await rallies.join(GANG, "three")
    await asyncio.gather(*early)


async def test_who_comes_after_the_last_goes_at_once():
    rallies = Rallies(patience_s=30)
    rallies.begin(GANG, 1)
    await rallies.join(GANG, "one")
    await rallies.join(GANG, "two")


async def test_one_who_comes_twice_is_one():
    rallies = Rallies(patience_s=0.05)
    rallies.begin(GANG, 2)
    outcomes = await asyncio.gather(rallies.join(GANG, "one"), rallies.join(GANG, "one"), return_exceptions=True)
    assert all(isinstance(outcome, BindRefused) for outcome in outcomes)


async def test_where_not_all_come_all_are_refused_and_the_gang_is_left_alone():
    rallies = Rallies(patience_s=0.05)
    rallies.begin(GANG, 3)
    outcomes = await asyncio.gather(*(rallies.join(GANG, uid) for uid in ("one", "two")), return_exceptions=True)
    assert [str(outcome) for outcome in outcomes] == [
        "the gang default/crew is not bound: 2 of 3 members came to be bound; all of them are tried again"
    ] * 2
    now_s = asyncio.get_running_loop().time()
    assert rallies.is_left_alone(GANG, now_s)
    assert not rallies.is_left_alone(GANG, now_s + 61)
    assert rallies.expire(now_s + 61), "it is said once that it may be tried again"
    assert not rallies.expire(now_s + 61)


async def test_a_gang_whose_members_are_others_is_tried_at_once():
    rallies = Rallies(patience_s=0.01)
    rallies.begin(GANG, 2)
    with pytest.raises(BindRefused):
        await rallies.join(GANG, "one")
    rallies.forgive(GANG)
    assert not rallies.is_left_alone(GANG, 0.0)


async def test_what_is_called_off_refuses_those_who_wait():
    rallies = Rallies(patience_s=30)
    rallies.begin(GANG, 2)
    waiting = asyncio.create_task(rallies.join(GANG, "one"))
    await asyncio.sleep(0)
    rallies.call_off(GANG)
    with pytest.raises(BindRefused):
        await waiting
    assert not rallies.is_left_alone(GANG, 0.0), "that was no fault of its members"


async def test_who_has_come_is_there_still_when_the_gang_is_planned_anew():
    rallies = Rallies(patience_s=30)
    rallies.begin(GANG, 2)
    early = asyncio.create_task(rallies.join(GANG, "one"))
    await asyncio.sleep(0)
    rallies.begin(GANG, 2)
    await rallies.join(GANG, "two")
    await early
