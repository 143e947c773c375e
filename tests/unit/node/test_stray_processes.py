"""Processes on cards that no region accounts for: found, told once each, and never by mistake of the moment."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tessera.model.requests import PodRef
from tessera.node.mapped_files import names_of_files
from tessera.node.regions import RegionProcess
from tessera.node.run_directory import RunDirectory
from tessera.node.stray_processes import (
    Account,
    StrayProcess,
    StrayProcesses,
    explain_stray,
    find_stray_processes,
    pod_of_process,
)
from tessera.node.using import ContainerKey, ContainerUses
from tessera.vendors.usage import CardProcess

MIB = 2**20
UID = "0a1b2c3d-0000-1111-2222-333344445555"
LISTED = {"GPU-0": (CardProcess(10, 5 * MIB), CardProcess(11, 7 * MIB)), "GPU-1": (CardProcess(10, MIB),)}


HERE, THERE = "00:1a 7", "00:1a 8"


def account(*named: int, has_nameless: bool = False, region: str | None = HERE) -> Account:
    return Account(pod_uid=UID, region=region, named=frozenset(named), has_nameless=has_nameless)


def found(
    *accounts: Account,
    pods: Mapping[int, str | None] | None = None,
    mapped: Mapping[int, str] | None = None,
) -> list[tuple[str, int]]:
    """By default nothing is known of what processes have mapped."""
    owners = {10: "", 11: "", **(pods or {})}

    def files_of(pid: int) -> frozenset[str] | None:
        return None if mapped is None else frozenset({"fe:00 1", mapped.get(pid, "fe:00 2")})

    return [(stray.uuid, stray.pid) for stray in find_stray_processes(LISTED, accounts, owners.get, files_of)]


def test_a_process_that_a_region_names_is_nobodys_stray_on_any_card():
    assert found(account(10)) == [("GPU-0", 11)]
    assert found(account(10), account(11)) == []


def test_a_process_that_a_region_names_and_that_is_not_in_it_is_a_stray_all_the_same():
    assert found(account(10, 11), mapped={10: HERE}) == [("GPU-0", 11)]
    assert found(account(10, 11), mapped={10: HERE, 11: THERE}) == [("GPU-0", 11)]


def test_a_region_that_cannot_be_named_is_believed_of_its_own_pod_and_of_processes_in_none():
    assert found(account(10, 11, region=None), pods={10: UID}, mapped={}) == []


def test_a_process_of_another_pod_is_hidden_by_no_region_also_where_the_kernel_does_not_tell():
    assert found(account(10, 11), pods={10: UID, 11: UID.replace("0a", "ff")}) == [("GPU-0", 11)]


def test_a_process_that_is_in_a_region_and_does_not_know_its_number_is_no_stray_in_whichever_pod():
    assert found(account(10, has_nameless=True), mapped={10: HERE, 11: HERE}) == []
    assert found(account(10), mapped={10: HERE, 11: HERE}) == [("GPU-0", 11)], "it has no slot there"


def test_a_process_of_a_container_that_knows_no_numbers_is_taken_for_its_own_where_the_kernel_does_not_tell():
    assert found(account(has_nameless=True), pods={11: UID}) == [("GPU-0", 10), ("GPU-1", 10)]
    assert found(account(has_nameless=True), pods={11: UID}, mapped={}) == [("GPU-0", 10), ("GPU-0", 11), ("GPU-1", 10)]


def test_a_process_of_a_container_whose_region_does_not_have_it_is_a_stray():
    (stray,) = find_stray_processes({"GPU-0": (CardProcess(11, 3 * MIB),)}, (), lambda _: UID, lambda _: None)
    assert stray == StrayProcess(uuid="GPU-0", pid=11, memory_bytes=3 * MIB, pod_uid=UID)
    assert explain_stray(stray).startswith(f"process 11 of the pod with UID {UID} has 3 MiB of GPU-0")


def test_a_process_that_cannot_be_seen_is_not_judged():
    assert found(pods={10: None}) == [("GPU-0", 11)]


@pytest.mark.parametrize(
    "group",
    [
        f"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID.replace('-', '_')}.slice/cri-1.scope",
        f"0::/kubepods/burstable/pod{UID}/abc",
        f"12:cpu:/\n4:memory:/kubepods/pod{UID}/abc",
    ],
)
def test_the_pod_of_a_process_is_told_by_its_control_group(tmp_path: Path, group: str):
    (tmp_path / "10").mkdir()
    (tmp_path / "10" / "cgroup").write_text(f"{group}\n")
    assert pod_of_process(10, tmp_path) == UID


def test_a_process_of_the_node_is_in_no_pod_and_one_that_is_gone_is_not_known(tmp_path: Path):
    (tmp_path / "10").mkdir()
    (tmp_path / "10" / "cgroup").write_text("0::/system.slice/sshd.service\n")
    assert pod_of_process(10, tmp_path) == ""
    assert pod_of_process(11, tmp_path) is None


@pytest.fixture
def uses(tmp_path: Path) -> ContainerUses:
    return ContainerUses(RunDirectory(tmp_path), lambda: ())


def test_a_stray_is_told_once_and_only_when_it_was_found_twice(uses: ContainerUses):
    told: list[StrayProcess] = []
    strays = StrayProcesses(lambda: LISTED, uses, tell=told.append, pod_of=lambda _: "")
    strays.judge(strays.find())
    assert strays.strays == (), "its region may have been read a moment too early"
    strays.judge(strays.find())
    strays.judge(strays.find())
    assert [(stray.uuid, stray.pid) for stray in told] == [("GPU-0", 10), ("GPU-0", 11), ("GPU-1", 10)]
    strays.judge(())
    assert strays.strays == ()


def test_what_regions_name_is_taken_from_all_containers(uses: ContainerUses):
    holder = ContainerKey(PodRef("default", "train-0", UID), "main")
    uses.processes = {holder: (RegionProcess(1, 10), RegionProcess(2, 11))}
    region = uses.region_of(holder)
    region.parent.mkdir(parents=True)
    region.write_bytes(bytes(MIB))
    name = names_of_files([region])[region]
    mapped = frozenset({name})
    assert StrayProcesses(lambda: LISTED, uses, pod_of=lambda _: "", files_of=lambda _: mapped).find() == ()
    assert len(StrayProcesses(lambda: LISTED, uses, pod_of=lambda _: "", files_of=lambda _: frozenset()).find()) == 3
