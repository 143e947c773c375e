"""Leader election and heartbeats on a real API server, with clocks that the tests move."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from tessera.engine.fencing import Fence
from tessera.errors import InvalidPolicy
from tessera.kube.access import Access
from tessera.kube.client import Client
from tessera.kube.heartbeats import Heartbeat
from tessera.kube.kinds import LEASES
from tessera.kube.leases import Election, Pace
from tessera.kube.objects import Document, ObjectKey
from tests.kube.proxy import Proxy
from tests.unit.kube.clocks import FakeClock

pytestmark = pytest.mark.asyncio
FENCE = Fence(lease_duration=15.0, write_timeout=5.0, clock_skew=1.0)
TURN_S = 2.0


class Replica:
    """One candidate with a clock of its own. It does nothing while its clock stands still, as if it were paused."""

    def __init__(self, client: Client, namespace: str, name: str) -> None:
        self.clock = FakeClock()
        self.election = Election(
            client, ObjectKey(namespace, "leader"), name, fence=FENCE, clock=self.clock, chance=lambda: 0.5
        )

    async def turn(self, times: int = 1) -> None:
        """Let it try once more."""
        for _ in range(times):
            await self.clock.until_asleep()
            self.clock.advance(TURN_S)
            await self.clock.until_asleep()


@asynccontextmanager
async def running(*replicas: Replica) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as group:
        tasks = []
        for replica in replicas:
            tasks.append(group.create_task(replica.election.run()))
            await replica.clock.until_asleep()
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


@pytest.fixture
def one(client: Client, namespace: str) -> Replica:
    return Replica(client, namespace, "one")


@pytest.fixture
def two(client: Client, namespace: str) -> Replica:
    return Replica(client, namespace, "two")


async def spec_of(client: Client, namespace: str, name: str = "leader") -> Document:
    return (await client.get(LEASES, name, namespace=namespace))["spec"]


async def test_of_two_replicas_one_leads(client: Client, one: Replica, two: Replica, namespace: str) -> None:
    async with running(one, two):
        for _ in range(10):
            await one.turn()
            await two.turn()

        assert (one.election.may_write(), two.election.may_write()) == (True, False)
        assert (await spec_of(client, namespace))["holderIdentity"] == one.election.holder


async def test_a_paused_leader_is_succeeded_and_knows_it_before_it_asks_anybody(one: Replica, two: Replica) -> None:
    async with running(one, two):
        await two.turn(7)
        too_early = two.election.is_leader
        await two.turn(2)

        assert (too_early, two.election.is_leader, two.election.may_read_state()) == (False, True, True)
        one.clock.now_s = two.clock.now_s
        assert one.election.is_leader
        assert not one.election.may_write()

        await one.turn()
        await asyncio.wait_for(one.election.lost(), 10)
        assert not one.election.is_leader
        assert two.election.epoch == one.election.epoch + 1


async def test_a_new_leader_knows_the_term_before_it(one: Replica, two: Replica) -> None:
    async with running(one, two):
        await two.turn(9)

    assert two.election.previous is not None
    assert two.election.previous.holder == one.election.holder
    assert one.election.previous is None


async def test_a_leader_that_cannot_renew_stops_writing_then_leading_and_comes_back(
    access: Access, proxy: Proxy, namespace: str
) -> None:
    async with Client(msgspec.structs.replace(access, server=proxy.server)) as far:
        replica = Replica(far, namespace, "one")
        async with running(replica):
            await replica.turn()
            proxy.refuse()
            could: list[tuple[bool, bool]] = []
            for _ in range(6):
                await replica.turn()
                could.append((replica.election.may_write(), replica.election.is_leader))
            proxy.accept()
            await replica.turn()

            assert could == [(True, True)] * 4 + [(False, False)] * 2
            assert replica.election.may_write()
            assert replica.election.previous is not None


async def test_a_leader_that_resigns_is_succeeded_at_once(
    client: Client, one: Replica, two: Replica, namespace: str
) -> None:
    async with running(one, two):
        assert one.election.may_write()
        resigning = asyncio.create_task(one.election.resign())
        await asyncio.wait_for(one.election.lost(), 10)
        assert not one.election.may_write()
        one.clock.advance(FENCE.write_timeout)
        await resigning
        released = (await spec_of(client, namespace))["holderIdentity"]
        await two.turn()

        assert released == ""
        assert two.election.is_leader
        assert two.election.previous is None


async def test_resigning_waits_for_the_last_write_that_was_allowed(
    client: Client, one: Replica, namespace: str
) -> None:
    async with running(one):
        one.election.may_write()
        one.clock.advance(1.0)
        resigning = asyncio.create_task(one.election.resign())
        await one.election.lost()
        await one.clock.until_asleep()
        one.clock.advance(3.5)
        held = (await spec_of(client, namespace))["holderIdentity"]
        one.clock.advance(0.5)
        await resigning

    assert held == one.election.holder
    assert (await spec_of(client, namespace))["holderIdentity"] == ""


async def test_somebody_who_labels_the_lease_does_not_end_a_term(client: Client, one: Replica, namespace: str) -> None:
    async with running(one):
        await client.patch(LEASES, "leader", {"metadata": {"labels": {"a": "b"}}}, namespace=namespace)
        await one.turn(3)

        assert one.election.may_write()
    labelled = await client.get(LEASES, "leader", namespace=namespace)
    assert labelled["metadata"]["labels"] == {"a": "b"}


async def test_a_deleted_lease_gives_nobody_a_second_leader(
    client: Client, one: Replica, two: Replica, namespace: str
) -> None:
    async with running(one, two):
        await client.delete(LEASES, "leader", namespace=namespace)
        await two.turn(3)
        while one.election.may_write():
            assert not two.election.is_leader
            await one.turn()
            await two.turn()
        await one.turn(6)
        await two.turn(6)

        assert one.election.is_leader != two.election.is_leader


async def test_a_renewal_deadline_that_outlasts_the_lease_is_refused(client: Client, namespace: str) -> None:
    with pytest.raises(InvalidPolicy, match="renew_deadline_s is 20, expected less than the lease's duration of 15 s"):
        Election(client, ObjectKey(namespace, "x"), "one", fence=FENCE, pace=Pace(renew_deadline_s=20))


@asynccontextmanager
async def beating(heartbeat: Heartbeat) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(heartbeat.run())
        try:
            yield
        finally:
            task.cancel()


async def test_a_heartbeat_makes_its_lease_and_renews_it_even_if_somebody_deletes_it(
    client: Client, namespace: str
) -> None:
    clock, key = FakeClock(), ObjectKey(namespace, "node-1")
    heartbeat = Heartbeat(client, key, "node-1", clock=clock, chance=lambda: 0.5)
    beats: list[str] = []
    async with beating(heartbeat):
        await asyncio.wait_for(heartbeat.first(), 10)
        for _ in range(2):
            await clock.until_asleep()
            beats.append((await spec_of(client, namespace, "node-1"))["renewTime"])
            clock.advance(10.0)
            await clock.until_asleep()
        await client.delete(LEASES, "node-1", namespace=namespace)
        clock.advance(10.0)
        await clock.until_asleep()
        spec = await spec_of(client, namespace, "node-1")

    assert len({*beats, spec["renewTime"]}) == 3
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("node-1", 40)
    assert heartbeat.silent_s == 0.0
