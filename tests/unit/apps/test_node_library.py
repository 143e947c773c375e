"""The library on a node: which one containers get, and the sentence where there is none."""

from pathlib import Path

import pytest

from tessera.apps.node_library import host_has, limits_trouble
from tessera.model.requests import PodRef
from tessera.node.run_directory import RunDirectory
from tessera.node.settings import LibraryChoice, NodeSettings
from tessera.node.using import ContainerKey, ContainerUses


@pytest.fixture
def uses(tmp_path: Path) -> ContainerUses:
    return ContainerUses(RunDirectory(tmp_path), lambda: ())


def settings(hook: Path, library: LibraryChoice = "tessera") -> NodeSettings:
    return NodeSettings(node="gpu-1", hook_path=str(hook), library=library)


def put(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return str(path)


def test_ours_is_as_if_it_were_not_there_where_hamis_is_chosen(tmp_path: Path):
    ours, theirs = put(tmp_path / "tessera/libtessera.so"), put(tmp_path / "vgpu/libvgpu.so")
    assert [host_has(settings(tmp_path))(path) for path in (ours, theirs)] == [True, True]
    assert [host_has(settings(tmp_path, "hami"))(path) for path in (ours, theirs)] == [False, True]


def test_a_node_without_a_library_says_which_file_it_misses(tmp_path: Path, uses: ContainerUses):
    assert limits_trouble(settings(tmp_path), uses).startswith(f"{tmp_path}/tessera/libtessera.so is not on the node")
    assert f"{tmp_path}/vgpu/libvgpu.so is" in limits_trouble(settings(tmp_path, "hami"), uses)
    put(tmp_path / "tessera/libtessera.so")
    assert limits_trouble(settings(tmp_path), uses) == ""
    assert limits_trouble(settings(tmp_path, "hami"), uses), "ours is there, and not wanted"


def test_a_container_that_cannot_be_heard_is_named(tmp_path: Path, uses: ContainerUses):
    put(tmp_path / "tessera/libtessera.so")
    holders = [ContainerKey(PodRef("default", name, name), "main") for name in ("one", "two")]
    uses.unreadable = dict.fromkeys(holders, "it is no region")
    assert limits_trouble(settings(tmp_path), uses) == (
        "container main of default/one and 1 more cannot be heard: it is no region"
    )
