"""What containers and the agent share: where it lies, and that anybody may write it."""

import stat
from pathlib import Path

import pytest

from tessera.model.requests import PodRef
from tessera.node.run_directory import RunDirectory, make_shared_file
from tessera.vendors.backends import find_cards
from tessera.vendors.rendering import AllocationRequest
from tests.builders import a_share
from tests.unit.node.making import CATALOGUE, NODE


def test_the_catalogue_mounts_what_the_agent_reads(tmp_path: Path):
    run = RunDirectory(tmp_path)
    manager = find_cards(NODE, CATALOGUE, plan="1xT4", exists=lambda _: True).managers["NVIDIA"]
    (card,) = manager.discover()
    request = AllocationRequest(
        pod=PodRef("default", "train-0", "uid-1"),
        container="main",
        shares=(a_share(card.uuid),),
        run_path=str(tmp_path),
    )
    places = {mount.container_path: Path(mount.host_path) for mount in manager.allocate(request).mounts}
    assert places["/run/tessera/tile/region"] == run.region("uid-1", "main")
    assert places[f"/run/tessera/cards/{card.uuid}"] == run.cards / card.uuid
    assert places["/run/tessera/agent"] == run.socket.parent


def test_files_of_cards_are_made_for_anybody_and_never_emptied(tmp_path: Path):
    run = RunDirectory(tmp_path)
    run.make_cards(["GPU-0", "GPU-1"])
    (run.cards / "GPU-0").write_text("turns")
    run.make_cards(["GPU-0"])
    assert (run.cards / "GPU-0").read_text() == "turns"
    assert stat.S_IMODE((run.cards / "GPU-1").stat().st_mode) == 0o666


def test_users_of_the_machine_do_not_get_at_what_containers_may_write(tmp_path: Path):
    run = RunDirectory(tmp_path / "run")
    run.make()
    assert stat.S_IMODE(run.root.stat().st_mode) == 0o700
    assert run.socket.parent.is_dir()


def test_a_link_that_somebody_put_there_is_not_followed(tmp_path: Path):
    (tmp_path / "region").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic link"):
        make_shared_file(tmp_path / "region")
    assert not (tmp_path / "elsewhere").exists()
