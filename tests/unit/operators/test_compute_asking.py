"""What the operator asks for: seldom, and once for all who want to know."""

import asyncio
from datetime import UTC, datetime

import msgspec
import pytest

from tessera.errors import ServerFailed
from tessera.kube.client import Client
from tessera.kube.kinds import NODES
from tessera.kube.listing import Page
from tessera.operators.compute_asking import EVENTS_KEPT_S, NODES_KEPT_S, Asking
from tessera.vendors.loading import load_catalogue
from tests.unit.operators.compute_making import NOW, told
from tests.unit.operators.test_compute_fitting import ONE, TWO, a_node

pytestmark = pytest.mark.asyncio
CATALOGUE = load_catalogue()


class StandingClock:
    """Goes on when it is told to."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic_s(self) -> float:
        return self.now_s

    def wall(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError


class Answering(Client):
    """Counts what is asked for."""

    def __init__(self, *nodes, events=()):
        self.nodes, self.events = list(nodes), list(events)
        self.asked = []
        self.fails = False

    async def list(self, kind, selection=None, *, page_size=500):  # noqa: ARG002
        self.asked.append(kind.plural)
        if self.fails:
            raise ServerFailed("no", verb="list", target=kind.plural, status=500, reason="InternalError")
        items = self.nodes if kind.plural == NODES.plural else self.events
        return Page(items=tuple(items), resource_version="1")


def named(pod, uid):
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, uid=uid))


async def test_nodes_are_listed_once_for_all_who_ask_within_a_while():
    client, clock = Answering(a_node()), StandingClock()
    asking = Asking(client, CATALOGUE, clock)
    verdicts = await asyncio.gather(*(asking.is_unplaceable([named(TWO, f"p-{n}")], NOW) for n in range(20)))
    assert all(verdicts)
    assert not await asking.is_unplaceable([named(ONE, "p-0")], NOW)
    assert client.asked.count("nodes") == 1
    clock.now_s += NODES_KEPT_S
    client.nodes.append(
        a_node("node-b", cards="GPU-1,10,81920,100,NVIDIA-A100,0,true:GPU-2,10,81920,100,NVIDIA-A100,0,true:")
    )
    assert not await asking.is_unplaceable([named(TWO, "p-0")], NOW)
    assert client.asked.count("nodes") == 2


async def test_a_pod_for_which_a_node_is_coming_is_waited_for():
    client = Answering(a_node(), events=[told("TriggeredScaleUp", after_s=-60)])
    assert not await Asking(client, CATALOGUE, StandingClock()).is_unplaceable([TWO], NOW)


async def test_events_of_a_pod_are_asked_for_once_in_a_while():
    client, clock = Answering(a_node()), StandingClock()
    asking = Asking(client, CATALOGUE, clock)
    for _ in range(9):
        await asking.is_unplaceable([TWO], NOW)
    assert client.asked.count("events") == 1
    clock.now_s += EVENTS_KEPT_S
    await asking.is_unplaceable([TWO], NOW)
    assert client.asked.count("events") == 2


async def test_what_cannot_be_read_is_no_reason_to_give_up():
    client = Answering(a_node())
    client.fails = True
    assert not await Asking(client, CATALOGUE, StandingClock()).is_unplaceable([TWO], NOW)
