"""A container is about to start: whose it is, what it was given, and one sentence where it must not start."""

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tessera.errors import KubeletFailed, StartRefused
from tessera.model.allocations import CardShare
from tessera.node.holders import Holder
from tessera.node.pods import Pod
from tessera.node.run_directory import RunDirectory
from tessera.node.starting import Starter
from tessera.node.terms import Terms
from tessera.node.tile_store import TileStore
from tessera.node.tiles import Tile, tiles_of
from tessera.vendors.backends import find_cards
from tessera.vendors.loading import load_catalogue
from tests.builders import a_share
from tests.unit.kube.clocks import HastyClock
from tests.unit.node.making import ALLOCATED, NODE, RESOURCE, a_container, a_pod, a_preparer, a_tile
from tests.unit.node.making_regions import live, write_region

pytestmark = pytest.mark.asyncio
CATALOGUE = load_catalogue()
AMD, NVIDIA = (tiles_of(vendor) for vendor in CATALOGUE if vendor.name in ("AMD", "NVIDIA"))
SOURCES = find_cards(NODE, CATALOGUE, plan="2xT4,1xMI300X", exists=lambda _: False)
T4, OTHER_T4 = (device.uuid for device in SOURCES.managers["NVIDIA"].discover())
(MI300X,) = (device.uuid for device in SOURCES.managers["AMD"].discover())
ONE = frozenset({"tile-0"})


class FakeKubelet:
    """What the kubelet's file has and what its API tells."""

    def __init__(self) -> None:
        self.kept: tuple[Holder, ...] = ()
        self.listed: tuple[Holder, ...] = ()
        self.is_away = False

    def kept_holders(self) -> tuple[Holder, ...]:
        return self.kept

    async def list_holders(self) -> tuple[Holder, ...]:
        if self.is_away:
            raise KubeletFailed("the kubelet did not tell who holds which devices: gone; see the kubelet's log")
        return self.listed


class Bed:
    """A starter whose world changes when a test's clock has come to a moment."""

    def __init__(self, root: Path) -> None:
        self.kubelet = FakeKubelet()
        self.pods: dict[str, Pod] = {}
        self.lingering: Sequence[Tile] = ()
        self.clock = HastyClock()
        self.store = TileStore(root / "state", root / "cdi")
        self.cdi = root / "cdi"
        self.run = RunDirectory(root / "run")
        self.later: list[tuple[float, Callable[[], object]]] = []
        self.starter = Starter(
            a_preparer(root, SOURCES, self.store),
            self.kubelet,  # type: ignore[arg-type] # as much of it as a start needs
            self.store,
            find_pod=self.find_pod,
            lingering=lambda: self.lingering,
            clock=self,
        )

    def monotonic_s(self) -> float:
        return self.clock.monotonic_s()

    def wall(self) -> Any:
        return self.clock.wall()

    async def sleep(self, seconds: float) -> None:
        await self.clock.sleep(seconds)
        due = [change for at_s, change in self.later if at_s <= self.waited_s]
        self.later = [(at_s, change) for at_s, change in self.later if at_s > self.waited_s]
        for change in due:
            change()

    @property
    def waited_s(self) -> float:
        return sum(self.clock.slept_s)

    def find_pod(self, holder: Holder) -> Pod | None:
        return self.pods.get(holder.pod_uid or f"{holder.namespace}/{holder.pod}")

    def put(self, pod: Pod) -> None:
        self.pods[pod.metadata.uid or ""] = pod

    def admit(self, container: str = "main", ids: frozenset[str] = ONE, uid: str = "uid-1", **changes: str) -> Holder:
        """The kubelet has asked for a container's tiles and written down whose they are."""
        token = self.starter.answer(changes.get("resource", RESOURCE), ids)
        holder = Holder(**{"resource": RESOURCE, **changes}, ids=ids, container=container, pod_uid=uid, token=token)
        self.kubelet.kept = (*self.kubelet.kept, holder)
        return holder

    def tile(self, token: str) -> Tile:
        (tile,) = [tile for tile in self.store if tile.token == token]
        return tile

    def assert_nothing_was_made(self) -> None:
        assert list(self.store) == []
        assert list(self.cdi.iterdir()) == []


@pytest.fixture
def bed(tmp_path: Path) -> Bed:
    return Bed(tmp_path)


def given(uuid: str = T4, memory_mib: int = 1000, **changes: Any) -> tuple[CardShare, ...]:
    return (a_share(uuid, memory_mib, 10, **changes),)


async def test_a_container_gets_what_its_pod_was_given_at_once(bed: Bed):
    holder = bed.admit()
    bed.put(a_pod(given(OTHER_T4)))
    await bed.starter.start(NVIDIA, ONE)
    assert bed.tile(holder.token) == a_tile(holder.token, *given(OTHER_T4))
    assert OTHER_T4 in (bed.cdi / f"tessera-tile-{holder.token}.json").read_text()
    assert bed.waited_s == 0


async def test_a_start_waits_until_the_kubelet_has_written_whose_the_tiles_are(bed: Bed):
    bed.put(a_pod(given()))
    bed.later = [(3.0, bed.admit)]
    await bed.starter.start(NVIDIA, ONE)
    assert len(list(bed.store)) == 1


async def test_a_start_waits_for_the_pod_and_then_for_its_allocation(bed: Bed):
    bed.admit()
    bed.later = [(3.0, lambda: bed.put(a_pod())), (6.0, lambda: bed.put(a_pod(given())))]
    await bed.starter.start(NVIDIA, ONE)
    assert len(list(bed.store)) == 1
    assert bed.waited_s >= 6.0


async def test_tiles_that_the_kubelet_gave_to_nobody_are_refused_in_one_sentence(bed: Bed):
    with pytest.raises(StartRefused, match=r"^nvidia.com/gpu tile-0, tile-1: the kubelet names no container[^.]*$"):
        await bed.starter.start(NVIDIA, frozenset({"tile-1", "tile-0"}))
    assert 15 < bed.waited_s < 30, "the kubelet waits half a minute"
    bed.assert_nothing_was_made()


async def test_a_pod_that_the_api_server_does_not_know_is_refused(bed: Bed):
    bed.admit(uid="uid-9")
    with pytest.raises(StartRefused, match=r"^pod with UID uid-9 is not known to the API server as one of gpu-1$"):
        await bed.starter.start(NVIDIA, ONE)
    assert 15 < bed.waited_s < 30
    bed.assert_nothing_was_made()


async def test_a_container_that_was_given_nothing_is_refused(bed: Bed):
    bed.admit()
    bed.put(a_pod())
    with pytest.raises(
        StartRefused, match=r"^default/train-0: container main was given no nvidia.com/gpu by the sched"
    ):
        await bed.starter.start(NVIDIA, ONE)
    assert 15 < bed.waited_s < 30
    bed.assert_nothing_was_made()


async def test_an_allocation_that_cannot_be_read_is_refused_at_once(bed: Bed):
    bed.admit()
    bed.put(a_pod(annotations={ALLOCATED: "GPU-1,NVIDIA,much,10:;"}))
    with pytest.raises(StartRefused, match=r"default/train-0: .*much"):
        await bed.starter.start(NVIDIA, ONE)
    assert bed.waited_s == 0
    bed.assert_nothing_was_made()


async def test_another_number_of_tiles_than_of_cards_is_refused(bed: Bed):
    two = frozenset({"tile-0", "tile-1"})
    bed.admit(ids=two)
    bed.put(a_pod(given()))
    with pytest.raises(StartRefused, match=r"container main has 2 tiles of nvidia.com/gpu .*, expected 1, as many as"):
        await bed.starter.start(NVIDIA, two)
    bed.assert_nothing_was_made()


async def test_a_container_that_is_not_in_its_pod_is_refused(bed: Bed):
    bed.admit("stranger")
    bed.put(a_pod(given(), containers=(a_container("main"), a_container("beside"))))
    with pytest.raises(StartRefused, match=r"container stranger is not in the pod, expected one of main, beside$"):
        await bed.starter.start(NVIDIA, ONE)
    bed.assert_nothing_was_made()


async def test_cards_of_another_node_are_refused(bed: Bed):
    bed.admit()
    bed.put(a_pod(given("GPU-elsewhere")))
    with pytest.raises(Exception, match=r'card "GPU-elsewhere" is not on this node'):
        await bed.starter.start(NVIDIA, ONE)
    bed.assert_nothing_was_made()


async def test_a_card_on_which_a_deleted_pod_still_runs_is_waited_for(bed: Bed):
    bed.admit()
    bed.put(a_pod(given(T4)))
    bed.lingering = (a_tile("old", a_share(T4), uid="uid-0"),)
    bed.later = [(4.0, lambda: setattr(bed, "lingering", ()))]
    await bed.starter.start(NVIDIA, ONE)
    assert bed.waited_s >= 4.0


async def test_a_card_that_a_deleted_pod_does_not_leave_is_refused(bed: Bed):
    bed.admit()
    bed.put(a_pod(given(T4)))
    bed.lingering = (a_tile("old", a_share(T4), uid="uid-0"),)
    with pytest.raises(StartRefused, match=r"container main would share a card with a pod that was deleted and still"):
        await bed.starter.start(NVIDIA, ONE)
    bed.assert_nothing_was_made()


async def test_a_deleted_pod_on_another_card_is_in_nobodys_way(bed: Bed):
    bed.admit()
    bed.put(a_pod(given(T4)))
    bed.lingering = (a_tile("old", a_share(OTHER_T4), uid="uid-0"),)
    await bed.starter.start(NVIDIA, ONE)
    assert bed.waited_s == 0


async def test_an_init_container_and_the_app_container_with_its_tiles_each_get_their_own(bed: Bed):
    init, app = bed.admit("first"), bed.admit("main")
    bed.put(a_pod(given(T4, 500), given(OTHER_T4, 900), init=(a_container("first"),)))
    await bed.starter.start(NVIDIA, ONE)
    assert bed.tile(init.token).shares == given(T4, 500)
    assert bed.tile(app.token).shares == given(OTHER_T4, 900)
    assert (bed.tile(init.token).container, bed.tile(app.token).container) == ("first", "main")


async def test_the_same_ids_of_two_vendors_are_two_tiles(bed: Bed):
    green = bed.admit()
    red = bed.admit(resource="amd.com/gpu")
    pod = a_pod(
        given(T4),
        containers=({"name": "main", "resources": {"limits": {RESOURCE: "1", "amd.com/gpu": "1"}}},),
        annotations={"hami.io/amd-devices-allocated": f"{MI300X},AMD,3000,20:;"},
    )
    bed.put(pod)
    await bed.starter.start(NVIDIA, ONE)
    await bed.starter.start(AMD, ONE)
    assert bed.tile(green.token).shares == given(T4)
    assert bed.tile(red.token).shares == (a_share(MI300X, 3000, 20, vendor="AMD"),)
    assert bed.tile(red.token).resource == "amd.com/gpu"


async def test_a_restarted_container_gets_its_tile_anew(bed: Bed):
    holder = bed.admit()
    bed.put(a_pod(given()))
    await bed.starter.start(NVIDIA, ONE)
    specification = bed.cdi / f"tessera-tile-{holder.token}.json"
    specification.unlink()
    await bed.starter.start(NVIDIA, ONE)
    assert specification.exists()
    assert len(list(bed.store)) == 1


async def test_a_restarted_container_begins_with_an_empty_region_unless_a_process_of_it_lives(bed: Bed):
    bed.admit()
    bed.put(a_pod(given()))
    region = bed.run.region("uid-1", "main")
    write_region(region, (7, 700, 1))
    process = live(region, 0)
    await bed.starter.start(NVIDIA, ONE)
    assert region.exists()
    os.close(process)
    await bed.starter.start(NVIDIA, ONE)
    assert not region.exists()


async def test_how_a_container_is_held_to_its_limits_is_read_from_its_variables(bed: Bed):
    holder = bed.admit()
    env = [{"name": "GPU_CORE_UTILIZATION_POLICY", "value": "default"}]
    bed.put(a_pod(given(), containers=(a_container() | {"env": env},)))
    await bed.starter.start(NVIDIA, ONE)
    assert bed.tile(holder.token).terms == Terms(cores_policy="default")


async def test_a_variable_that_cannot_be_read_is_refused_at_once(bed: Bed):
    bed.admit()
    env = [{"name": "ACTIVE_OOM_KILLER", "value": "perhaps"}]
    bed.put(a_pod(given(), containers=(a_container() | {"env": env},)))
    with pytest.raises(StartRefused, match=r'^default/train-0: container main has ACTIVE_OOM_KILLER "perhaps"'):
        await bed.starter.start(NVIDIA, ONE)
    bed.assert_nothing_was_made()


async def test_where_the_checkpoint_says_nothing_the_api_does_while_it_is_clear_who_is_meant(bed: Bed):
    token = bed.starter.answer(RESOURCE, ONE)
    bed.pods["default/train-0"] = a_pod(given())
    bed.kubelet.listed = (Holder(resource=RESOURCE, ids=ONE, container="main", namespace="default", pod="train-0"),)
    await bed.starter.start(NVIDIA, ONE)
    assert bed.tile(token).shares == given()


async def test_where_two_answers_were_given_for_the_same_tiles_the_api_does_not_help(bed: Bed):
    bed.starter.answer(RESOURCE, ONE)
    second = bed.starter.answer(RESOURCE, ONE)
    bed.pods["default/train-0"] = a_pod(given())
    bed.kubelet.listed = (Holder(resource=RESOURCE, ids=ONE, container="main", namespace="default", pod="train-0"),)
    with pytest.raises(StartRefused, match="the kubelet names no container"):
        await bed.starter.start(NVIDIA, ONE)
    bed.starter.forget({second})
    await bed.starter.start(NVIDIA, ONE)
    assert len(list(bed.store)) == 1


async def test_all_waiting_together_is_over_before_the_kubelet_gives_up(bed: Bed):
    bed.put(a_pod())
    bed.later = [(15.0, bed.admit)]
    with pytest.raises(StartRefused, match="was given no"):
        await bed.starter.start(NVIDIA, ONE)
    assert bed.waited_s < 25


async def test_a_kubelet_that_comes_back_in_time_is_asked_again(bed: Bed):
    bed.kubelet.is_away = True
    bed.put(a_pod(given()))

    def come_back() -> None:
        bed.kubelet.is_away = False
        bed.admit()

    bed.later = [(2.0, come_back)]
    await bed.starter.start(NVIDIA, ONE)
    assert len(list(bed.store)) == 1


async def test_a_kubelet_that_does_not_answer_is_told_as_such_and_starts_nothing(bed: Bed):
    bed.kubelet.is_away = True
    with pytest.raises((KubeletFailed, StartRefused), match="kubelet"):
        await bed.starter.start(NVIDIA, ONE)
    bed.assert_nothing_was_made()


async def test_containers_that_wait_do_not_hold_up_the_others(bed: Bed):
    bed.admit(ids=frozenset({"tile-7"}), uid="uid-unknown")
    waiting = asyncio.ensure_future(bed.starter.start(NVIDIA, frozenset({"tile-7"})))
    await asyncio.sleep(0)
    bed.admit()
    bed.put(a_pod(given()))
    await bed.starter.start(NVIDIA, ONE)
    assert len(list(bed.store)) == 1
    with pytest.raises(StartRefused):
        await waiting
