"""The cards of a node as they are now: what does not answer is unhealthy and not gone, and only changes are news."""

from typing import Any

import pytest

from tessera.errors import DiscoveryFailed
from tessera.model.devices import Link
from tessera.node.cards import Cards
from tessera.node.health import LOST, Damping, Health
from tessera.vendors.managers import Inventory
from tests.builders import a_card
from tests.unit.kube.clocks import FakeClock

pytestmark = pytest.mark.asyncio
LINK = Link("GPU-0", "GPU-1", 100)
BOTH = Inventory((a_card("GPU-0", index=0), a_card("GPU-1", index=1)), (LINK,))
FALLEN_OFF, CONTAINED = 79, 94


class FakeBackend:
    def __init__(self, inventory: Inventory = BOTH) -> None:
        self.inventory = inventory
        self.error = ""

    def read(self) -> Inventory:
        if self.error:
            raise DiscoveryFailed(self.error)
        return self.inventory


class Bed:
    def __init__(self, **backends: FakeBackend) -> None:
        self.backend = FakeBackend()
        self.clock = FakeClock()
        health = Health(Damping(first_s=30.0))
        self.cards = Cards(backends or {"NVIDIA": self.backend}, health, clock=self.clock)
        self.told = 0
        self.cards.news.listen(self._hear)

    def _hear(self) -> None:
        self.told += 1

    def health(self) -> dict[str, bool]:
        return {device.uuid: device.healthy for device in self.cards.inventory.devices}


@pytest.fixture
def bed() -> Bed:
    return Bed()


async def test_cards_are_news_when_they_are_found_and_not_when_they_are_found_again(bed: Bed):
    await bed.cards.look()
    assert bed.health() == {"GPU-0": True, "GPU-1": True}
    assert bed.cards.inventory.links == (LINK,)
    await bed.cards.look()
    assert bed.told == 1


async def test_a_card_that_falls_silent_stays_as_an_unhealthy_one(bed: Bed):
    await bed.cards.look()
    bed.backend.inventory = Inventory(BOTH.devices[1:], complaints=("card 0 did not answer",))
    await bed.cards.look()
    assert bed.health() == {"GPU-0": False, "GPU-1": True}
    assert bed.cards.reasons == {"GPU-0": LOST}
    assert bed.cards.silent == {"GPU-0"}
    assert bed.cards.inventory.links == (LINK,), "how they are joined is still so"
    assert bed.told == 2


async def test_a_card_that_answers_again_is_healthy_again(bed: Bed):
    await bed.cards.look()
    bed.backend.inventory = Inventory(BOTH.devices[1:])
    await bed.cards.look()
    bed.backend.inventory = BOTH
    await bed.cards.look()
    assert bed.health() == {"GPU-0": True, "GPU-1": True}
    assert bed.cards.reasons == {}
    assert bed.cards.silent == frozenset()
    assert bed.told == 3


async def test_an_unhealthy_card_that_falls_silent_is_news(bed: Bed):
    bed.backend.inventory = Inventory((a_card("GPU-0", index=0, healthy=False),))
    await bed.cards.look()
    assert bed.cards.silent == frozenset(), "its driver tells of it"
    bed.backend.inventory = Inventory()
    await bed.cards.look()
    assert (bed.cards.silent, bed.told) == ({"GPU-0"}, 2)


async def test_when_the_driver_does_not_answer_at_all_every_card_is_unhealthy_and_none_is_gone(bed: Bed):
    await bed.cards.look()
    bed.backend.error = "NVML did not start"
    await bed.cards.look()
    assert bed.health() == {"GPU-0": False, "GPU-1": False}
    await bed.cards.look()
    assert bed.told == 2, "that it still does not answer is no news"


async def test_a_driver_that_never_answered_has_no_cards_and_is_asked_again(bed: Bed):
    bed.backend.error = "NVML did not start"
    await bed.cards.look()
    assert bed.health() == {}
    assert bed.told == 0
    bed.backend.error = ""
    await bed.cards.look()
    assert bed.health() == {"GPU-0": True, "GPU-1": True}


async def test_one_vendors_trouble_is_not_anothers():
    broken, working = FakeBackend(), FakeBackend(Inventory((a_card("AMD-0", vendor="AMD"),)))
    broken.error = "NVML did not start"
    bed = Bed(NVIDIA=broken, AMD=working)
    await bed.cards.look()
    assert bed.health() == {"AMD-0": True}
    assert [device.uuid for device in bed.cards.of_vendor("AMD")] == ["AMD-0"]
    assert bed.cards.of_vendor("NVIDIA") == []


async def test_a_fault_is_news_at_once_and_passes_with_time(bed: Bed):
    await bed.cards.look()
    bed.cards.note_fault("GPU-1", CONTAINED)
    assert bed.health() == {"GPU-0": True, "GPU-1": False}
    assert bed.told == 2
    bed.clock.advance(29.0)
    await bed.cards.look()
    assert not bed.health()["GPU-1"]
    bed.clock.advance(1.0)
    await bed.cards.look()
    assert bed.health()["GPU-1"]


async def test_a_fault_of_a_card_that_is_not_here_is_no_news(bed: Bed):
    await bed.cards.look()
    bed.cards.note_fault("GPU-elsewhere", FALLEN_OFF)
    assert bed.told == 1


async def test_another_reason_is_news_too(bed: Bed):
    await bed.cards.look()
    bed.cards.note_fault("GPU-0", CONTAINED)
    bed.cards.note_fault("GPU-0", FALLEN_OFF)
    assert bed.cards.reasons["GPU-0"].endswith("must be reset")
    assert bed.told == 3


async def test_trouble_is_logged_once(bed: Bed, capsys: Any):
    bed.backend.error = "NVML did not start"
    for _ in range(3):
        await bed.cards.look()
    assert capsys.readouterr().out.count("NVML did not start") == 1


async def test_whoever_waits_for_news_wakes_at_the_next_change(bed: Bed):
    upcoming = bed.cards.news.upcoming()
    await bed.cards.look()
    assert upcoming.is_set()
    assert not bed.cards.news.upcoming().is_set()
