"""A device plugin and a kubelet that speak gRPC over real sockets."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import grpc
import grpc.aio
import pytest
import pytest_asyncio

from tessera.errors import KubeletFailed
from tessera.kube.timing import Backoff
from tessera.node import plugin_server
from tessera.node.early import EarlyStarter
from tessera.node.kubelet import Kubelet
from tessera.node.news import News
from tessera.node.plugin import EarlyPlugin, TilePlugin
from tessera.node.plugin_server import PluginServer
from tessera.node.starting import Starter
from tessera.node.tile_store import TileStore
from tessera.node.tiles import tiles_of
from tessera.vendors.backends import find_cards
from tessera.vendors.loading import load_catalogue
from tests.builders import a_share
from tests.unit.node.fake_kubelet import PATIENCE_S, FakeKubelet
from tests.unit.node.making import NODE, RESOURCE, a_checkpoint, a_pod, a_preparer, an_entry

pytestmark = pytest.mark.asyncio
CATALOGUE = load_catalogue()
(NVIDIA,) = (tiles_of(vendor) for vendor in CATALOGUE if vendor.name == "NVIDIA")
SOURCES = find_cards(NODE, CATALOGUE, plan="1xT4", exists=lambda _: False)
(T4,) = (device.uuid for device in SOURCES.managers["NVIDIA"].discover())
GIVEN = (a_share(T4, 1000, 10),)


class Bed:
    def __init__(self, root: Path) -> None:
        self.kubelet = FakeKubelet(root / "kubelet")
        self.store = TileStore(root / "state", root / "cdi")
        self.cdi = root / "cdi"
        self.pod = a_pod(GIVEN)
        self.health = {"tile-0": True, "tile-1": True}
        self.news = News()
        kubelet = Kubelet(self.kubelet.root)
        self.starter = Starter(
            a_preparer(root, SOURCES, self.store),
            kubelet,
            self.store,
            find_pod=lambda _: self.pod,
            lingering=lambda: (),
            patience_s=0.2,
        )
        self.looks = 0
        self.plugin = TilePlugin(NVIDIA, self.starter, self.store, self.look, self.news)
        self.server = PluginServer(self.plugin, kubelet)

    def look(self) -> dict[str, bool]:
        self.looks += 1
        return self.health

    def keep(self, *entries: object) -> None:
        (self.kubelet.plugins / "kubelet_internal_checkpoint").write_bytes(a_checkpoint(*entries))

    def make_early(self) -> None:
        """As on a node whose container runtime has no CDI."""
        early = EarlyStarter(self.starter, self.store, lambda: [self.pod], patience_s=0.2)
        plugin = EarlyPlugin(NVIDIA, early, self.starter, self.store, self.look, self.news)
        self.server = PluginServer(plugin, Kubelet(self.kubelet.root))


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.01)


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A socket's path has room for a hundred characters only."""
    with TemporaryDirectory(prefix="tessera-") as directory:
        yield Path(directory)


@asynccontextmanager
async def serving(bed: Bed) -> AsyncGenerator[Bed]:
    await bed.kubelet.start()
    server = asyncio.ensure_future(bed.server.run())
    yield bed
    server.cancel()
    await asyncio.wait([server])
    await bed.kubelet.stop()


@pytest_asyncio.fixture
async def bed(short_path: Path) -> AsyncGenerator[Bed]:
    async with serving(Bed(short_path)) as bed:
        yield bed


@pytest_asyncio.fixture
async def early(short_path: Path) -> AsyncGenerator[Bed]:
    bed = Bed(short_path)
    bed.make_early()
    async with serving(bed):
        yield bed


async def test_a_plugin_registers_its_resource_and_asks_to_be_called_before_containers_start(bed: Bed):
    asked = await bed.kubelet.next_registration()
    assert (asked.version, asked.resource_name) == ("v1beta1", RESOURCE)
    assert asked.options.pre_start_required
    assert not asked.options.get_preferred_allocation_available
    async with bed.kubelet.calling(asked.endpoint) as plugin:
        assert await plugin.options() == asked.options
    await eventually(lambda: bed.server.is_registered)


async def test_tiles_are_told_at_first_and_whenever_their_health_changes(bed: Bed):
    asked = await bed.kubelet.next_registration()
    async with bed.kubelet.calling(asked.endpoint) as plugin:
        told = plugin.health()
        assert await anext(told) == {"tile-0": "Healthy", "tile-1": "Healthy"}
        bed.news.spread()
        await eventually(lambda: bed.looks == 2)
        bed.health = {"tile-0": False, "tile-1": True}
        bed.news.spread()
        assert await anext(told) == {"tile-0": "Unhealthy", "tile-1": "Healthy"}, "what is no news was not told"
        bed.health = {"tile-0": True}
        bed.news.spread()
        assert await anext(told) == {"tile-0": "Healthy"}


async def test_an_answer_to_allocate_is_a_directory_and_a_name_that_mean_nothing_yet(bed: Bed):
    asked = await bed.kubelet.next_registration()
    async with bed.kubelet.calling(asked.endpoint) as plugin:
        one, two = await plugin.allocate(["tile-0"], ["tile-1"])
    (mount,) = one.mounts
    assert (mount.container_path, mount.read_only) == ("/etc/tessera/nvidia", True)
    assert Path(mount.host_path).is_dir()
    assert [device.name for device in one.cdi_devices] == [f"tessera.io/tile={Path(mount.host_path).name}"]
    assert (dict(one.envs), list(one.devices)) == ({}, [])
    assert one != two
    assert list(bed.cdi.iterdir()) == []


async def test_a_container_that_starts_finds_what_its_pod_was_given(bed: Bed):
    asked = await bed.kubelet.next_registration()
    upcoming = bed.news.upcoming()
    async with bed.kubelet.calling(asked.endpoint) as plugin:
        (answer,) = await plugin.allocate(["tile-0"])
        token = Path(answer.mounts[0].host_path).name
        bed.keep(an_entry("uid-1", "main", {"-1": ["tile-0"]}, token=token))
        await plugin.pre_start(["tile-0"])
    assert f"card {T4} memory_mib 1000 " in (Path(answer.mounts[0].host_path) / "limits").read_text()
    assert (bed.cdi / f"tessera-tile-{token}.json").exists()
    assert upcoming.is_set(), "who holds which cards is news"


async def test_without_a_checkpoint_the_pod_resources_api_is_asked(bed: Bed):
    asked = await bed.kubelet.next_registration()
    pod = bed.kubelet.resources.pod_resources.add(name="train-0", namespace="default")
    pod.containers.add(name="main").devices.add(resource_name=RESOURCE, device_ids=["tile-0"])
    async with bed.kubelet.calling(asked.endpoint) as plugin:
        (answer,) = await plugin.allocate(["tile-0"])
        await plugin.pre_start(["tile-0"])
    (tile,) = bed.store
    assert (tile.token, tile.shares) == (Path(answer.mounts[0].host_path).name, GIVEN)


async def test_a_container_that_must_not_start_is_refused_with_the_sentence_that_says_why(bed: Bed):
    asked = await bed.kubelet.next_registration()
    bed.pod = a_pod()
    async with bed.kubelet.calling(asked.endpoint) as plugin:
        (answer,) = await plugin.allocate(["tile-0"])
        bed.keep(an_entry("uid-1", "main", {"-1": ["tile-0"]}, token=Path(answer.mounts[0].host_path).name))
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await plugin.pre_start(["tile-0"])
        assert refusal.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        assert (refusal.value.details() or "").startswith("default/train-0: container main was given no nvidia.com/gpu")
        bed.pod = a_pod(GIVEN)
        await plugin.pre_start(["tile-0"])
    assert len(list(bed.store)) == 1, "the kubelet tries again"


async def test_without_cdi_the_answer_to_allocate_has_everything_and_the_start_checks_it(early: Bed):
    asked = await early.kubelet.next_registration()
    async with early.kubelet.calling(asked.endpoint) as plugin:
        (answer,) = await plugin.allocate(["tile-0"])
        tile, *others = answer.mounts
        early.keep(an_entry("uid-1", "main", {"-1": ["tile-0"]}, token=Path(tile.host_path).name))
        await plugin.pre_start(["tile-0"])
        early.keep(an_entry("uid-2", "main", {"-1": ["tile-0"]}, token=Path(tile.host_path).name))
        with pytest.raises(grpc.aio.AioRpcError, match="was given the cards of default/train-0"):
            await plugin.pre_start(["tile-0"])
    assert answer.envs["NVIDIA_VISIBLE_DEVICES"] == T4
    assert list(answer.cdi_devices) == []
    assert tile.container_path == "/etc/tessera/nvidia"
    assert {mount.container_path for mount in others} == {"/usr/local/vgpu", "/tmp/vgpulock"}


async def test_without_cdi_a_container_of_nobody_is_refused_with_the_sentence_that_says_why(early: Bed):
    asked = await early.kubelet.next_registration()
    early.pod = a_pod()
    async with early.kubelet.calling(asked.endpoint) as plugin:
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await plugin.allocate(["tile-0"])
    assert refusal.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert (refusal.value.details() or "").startswith("no pod waits on gpu-1 for 1 tiles of nvidia.com/gpu")


async def test_a_kubelet_that_starts_anew_is_registered_with_again(bed: Bed):
    first = await bed.kubelet.next_registration()
    await eventually(lambda: bed.server.is_registered)
    await bed.kubelet.stop()
    await bed.kubelet.start()
    second = await bed.kubelet.next_registration()
    assert second == first
    async with bed.kubelet.calling(second.endpoint) as plugin:
        assert await anext(plugin.health()) == {"tile-0": "Healthy", "tile-1": "Healthy"}


async def test_while_the_kubelet_is_down_the_plugin_is_not_registered_and_waits(bed: Bed):
    await bed.kubelet.next_registration()
    await eventually(lambda: bed.server.is_registered)
    await bed.kubelet.stop()
    for socket in bed.kubelet.plugins.glob("kubelet.sock"):
        socket.unlink()
    await eventually(lambda: not bed.server.is_registered)
    await bed.kubelet.start()
    await bed.kubelet.next_registration()
    await eventually(lambda: bed.server.is_registered)


async def test_a_socket_of_ours_that_somebody_removed_is_made_anew(bed: Bed):
    asked = await bed.kubelet.next_registration()
    await eventually(lambda: bed.server.is_registered)
    (bed.kubelet.plugins / asked.endpoint).unlink()
    again = await bed.kubelet.next_registration()
    assert (bed.kubelet.plugins / again.endpoint).exists()


async def test_a_kubelet_that_stopped_listening_is_registered_with_again(bed: Bed, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(plugin_server, "DEAF_S", 0.3)
    asked = await bed.kubelet.next_registration()
    async with bed.kubelet.calling(asked.endpoint) as plugin:
        await eventually(lambda: bed.server.is_registered)
        assert not bed.server.is_heard
        await anext(plugin.health())
        assert bed.server.is_heard
    await eventually(lambda: not bed.server.is_heard)
    await bed.kubelet.next_registration()


async def test_a_start_that_the_disk_refuses_is_told_in_one_sentence(bed: Bed, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bed.store, "write", fail)
    asked = await bed.kubelet.next_registration()
    async with bed.kubelet.calling(asked.endpoint) as plugin:
        (answer,) = await plugin.allocate(["tile-0"])
        bed.keep(an_entry("uid-1", "main", {"-1": ["tile-0"]}, token=Path(answer.mounts[0].host_path).name))
        with pytest.raises(
            grpc.aio.AioRpcError, match=r"default/train-0: container main cannot be prepared: .*No space"
        ):
            await plugin.pre_start(["tile-0"])


async def test_a_kubelet_that_refuses_is_asked_again(bed: Bed):
    await bed.kubelet.next_registration()
    bed.kubelet.refusal = "not now"
    await bed.kubelet.stop()
    await bed.kubelet.start()
    await eventually(lambda: bed.kubelet.refused > 0)
    assert not bed.server.is_registered
    bed.kubelet.refusal = ""
    await bed.kubelet.next_registration()


async def test_a_kubelet_that_starts_anew_does_not_wait_for_what_the_last_one_refused(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(bed.server, "_backoff", Backoff(first_s=600.0, most_s=600.0))
    await bed.kubelet.next_registration()
    bed.kubelet.refusal = "not now"
    await bed.kubelet.stop()
    await bed.kubelet.start()
    await eventually(lambda: bed.kubelet.refused > 0)
    bed.kubelet.refusal = ""
    await bed.kubelet.stop()
    await bed.kubelet.start()
    await bed.kubelet.next_registration()


async def test_a_kubelet_that_is_not_there_fails_in_one_sentence(tmp_path: Path):
    kubelet = Kubelet(tmp_path)
    assert kubelet.incarnation() is None
    assert kubelet.kept_holders() is None
    with pytest.raises(KubeletFailed, match=r"^the kubelet did not tell who holds which devices: .*; see the kubelet"):
        await kubelet.list_holders()
