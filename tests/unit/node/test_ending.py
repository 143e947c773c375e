"""Which pods have really ended: by the kernel's control groups, whoever named them."""

import os
from pathlib import Path

import pytest

from tessera.kube.caching import Change
from tessera.kube.objects import ObjectKey
from tessera.node.ending import Endings, PodGroups
from tessera.node.pods import Pod
from tessera.node.tiles import Tile
from tests.builders import a_share
from tests.unit.node.making import a_pod, a_tile

UID = "5f1c6c9e-0000-4000-8000-0123456789ab"
SYSTEMD = UID.replace("-", "_")
GROUPS = {
    "v2, systemd": f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{SYSTEMD}.slice",
    "v2, systemd, guaranteed": f"kubepods.slice/kubepods-pod{SYSTEMD}.slice",
    "v2, cgroupfs": f"kubepods/besteffort/pod{UID}",
    "v2, cgroupfs, guaranteed": f"kubepods/pod{UID}",
    "v2, below a node's own group": f"kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{SYSTEMD}.slice",
    "v1, systemd": f"systemd/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{SYSTEMD}.slice",
    "v1, cgroupfs": f"memory/kubepods/burstable/pod{UID}",
}


def make_group(root: Path, name: str, processes: str = "", container: str = "cri-containerd-1.scope") -> Path:
    """A pod's group with a container's in it; a pod's own group has no processes."""
    group = root / name
    (group / container).mkdir(parents=True)
    (group / "cgroup.procs").write_text("")
    (group / container / "cgroup.procs").write_text(processes)
    return group


def end(group: Path) -> None:
    """Its processes are gone, and the kubelet has removed it."""
    for path in sorted(group.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    group.rmdir()


@pytest.mark.parametrize("name", GROUPS.values(), ids=GROUPS.keys())
def test_a_pod_is_alive_while_its_control_group_holds_processes(tmp_path: Path, name: str):
    groups = PodGroups(tmp_path)
    assert not groups.alive({UID})
    group = make_group(tmp_path, name, "123\n")
    assert groups.alive({UID})
    assert groups.alive({UID}), "and so when it is asked again"
    end(group)
    assert not groups.alive({UID})


def test_a_group_without_processes_is_not_alive(tmp_path: Path):
    make_group(tmp_path, GROUPS["v2, systemd"])
    assert not PodGroups(tmp_path).alive({UID})


def test_a_group_whose_processes_ended_is_not_alive_although_it_is_still_there(tmp_path: Path):
    groups = PodGroups(tmp_path)
    group = make_group(tmp_path, GROUPS["v2, systemd"], "123\n")
    assert groups.alive({UID})
    (group / "cri-containerd-1.scope" / "cgroup.procs").write_text("")
    assert not groups.alive({UID})


def test_one_living_container_among_several_is_enough(tmp_path: Path):
    make_group(tmp_path, GROUPS["v2, cgroupfs"], "")
    make_group(tmp_path, GROUPS["v2, cgroupfs"] + "/deeper", "7\n")
    assert PodGroups(tmp_path).alive({UID})


def test_a_group_under_one_controller_of_the_old_kernel_is_enough(tmp_path: Path):
    make_group(tmp_path, f"cpu/kubepods/burstable/pod{UID}")
    make_group(tmp_path, f"memory/kubepods/burstable/pod{UID}", "9\n")
    assert PodGroups(tmp_path).alive({UID})


def test_another_pods_group_does_not_count(tmp_path: Path):
    other = UID.replace("5f", "6f")
    make_group(tmp_path, f"kubepods/pod{other}", "123\n")
    make_group(tmp_path, f"kubepods.slice/kubepods-pod{other.replace('-', '_')}.slice", "123\n")
    assert not PodGroups(tmp_path).alive({UID})


def test_a_machine_without_control_groups_has_no_living_pods(tmp_path: Path):
    assert not PodGroups(tmp_path / "nowhere").alive({UID})


class Bed:
    def __init__(self, *tiles: Tile) -> None:
        self.tiles = tiles
        self.alive: set[str] = set()
        self.known: set[str] = set()
        self.told = 0
        self.endings = Endings(lambda: self.tiles, self.alive.intersection, self.known.__contains__, told=self._hear)

    def _hear(self) -> None:
        self.told += 1

    def vanish(self, uid: str) -> None:
        self.known.discard(uid)
        self.endings.pod_changed(Change(KEY, a_pod(uid=uid), None))


KEY = ObjectKey("default", "train-0")


def test_a_pod_that_vanished_and_has_no_processes_has_ended():
    bed = Bed(a_tile())
    bed.vanish("uid-1")
    bed.endings.look()
    assert bed.endings.ended == ("uid-1",)
    assert bed.told == 1
    bed.endings.look()
    assert (bed.endings.ended, bed.told) == (("uid-1",), 1), "told once"


def test_a_pod_deleted_by_force_has_ended_only_when_its_processes_have():
    bed = Bed(a_tile())
    bed.alive.add("uid-1")
    bed.vanish("uid-1")
    bed.endings.look()
    assert bed.endings.ended == ()
    bed.alive.discard("uid-1")
    bed.endings.look()
    assert bed.endings.ended == ("uid-1",)


@pytest.mark.parametrize(
    "change",
    [Change(KEY, None, a_pod()), Change(KEY, a_pod(), a_pod(given := (a_share("GPU-0", 1, 1),)))],
    ids=["added", "changed"],
)
def test_a_pod_that_is_there_has_not_ended(change: Change[Pod]):
    bed = Bed(a_tile())
    bed.known.add("uid-1")
    bed.endings.pod_changed(change)
    bed.endings.look()
    assert bed.endings.ended == ()


def test_a_pod_that_was_made_again_under_its_name_is_another():
    bed = Bed(a_tile())
    bed.vanish("uid-1")
    bed.endings.pod_changed(Change(KEY, None, a_pod(uid="uid-2")))
    bed.endings.look()
    assert bed.endings.ended == ("uid-1",)


def test_all_pods_of_a_node_may_end_at_once():
    bed = Bed()
    for number in range(200):
        bed.vanish(f"uid-{number}")
    bed.endings.look()
    assert len(bed.endings.ended) == 200


def test_a_pod_that_vanished_while_no_agent_was_here_has_ended_too():
    bed = Bed(a_tile(uid="uid-1"), a_tile(uid="uid-2"), a_tile(uid="uid-3"))
    bed.known.add("uid-2")
    bed.alive.add("uid-3")
    bed.endings.look()
    assert bed.endings.ended == ("uid-1",)


def test_all_control_groups_are_walked_once_however_many_pods_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    make_group(tmp_path, GROUPS["v2, systemd"], "1\n")
    walks: list[Path] = []
    walk = os.walk
    monkeypatch.setattr(os, "walk", lambda root: walks.append(root) or walk(root))
    assert PodGroups(tmp_path).alive([UID, *(UID.replace("5f", f"{number:02}") for number in range(50))]) == {UID}
    assert walks.count(tmp_path) == 1


def test_only_the_latest_are_told_the_last_one_last():
    bed = Bed(a_tile())
    for number in range(400):
        bed.tiles = (a_tile(uid=f"uid-{number}"),)
        bed.vanish(f"uid-{number}")
        bed.endings.look()
    assert bed.endings.ended[-1] == "uid-399"
    assert len(bed.endings.ended) < 400


def test_tiles_linger_while_their_pod_is_unknown_and_runs():
    bed = Bed(*(a_tile(uid, uid=uid) for uid in ("known", "unknown", "over", "quiet")))
    bed.known.update(("known", "quiet"))
    bed.alive.update(("known", "unknown"))
    assert [tile.token for tile in bed.endings.lingering()] == ["unknown"]


def test_what_an_earlier_agent_told_stays_told_and_what_it_told_may_be_forgotten():
    endings = Endings(lambda: (), lambda _: set(), lambda _: False)
    endings.recall(["uid-1", "uid-2"])
    assert endings.ended == ("uid-1", "uid-2")
    assert endings.is_told("uid-2")


def test_a_pod_that_ended_is_told_only_once_somebody_has_passed_it_on():
    endings = Endings(lambda: [a_tile("t", uid="uid-1")], lambda _: set(), lambda _: False)
    endings.look()
    assert endings.ended == ("uid-1",)
    assert not endings.is_told("uid-1")
    endings.confirm(endings.ended)
    assert endings.is_told("uid-1")
