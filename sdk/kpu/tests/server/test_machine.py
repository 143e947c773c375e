"""How much memory a server may take: the smallest limit of the control groups that it is in, of either kind."""

import pytest

from kpu import machine

GIB = 1 << 30


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """Writes limits by the path of their file, and which groups this process is in."""
    monkeypatch.setattr(machine, "_CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(machine, "_OWN_GROUPS", tmp_path / "own")

    def write(own, **limits):
        (tmp_path / "own").write_text(own)
        for path, limit in limits.items():
            file = tmp_path / "cgroup" / path.replace("__", "/").replace("max", "memory.max")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{limit}\n")
        for file in (tmp_path / "cgroup" / "memory").rglob("limit"):
            file.rename(file.with_name("memory.limit_in_bytes"))

    return write


def test_the_smallest_limit_around_us_holds(groups):
    groups("0::/pods/one\n", pods__one__max=2 * GIB, pods__max=GIB, max="max")
    assert machine.memory_bytes() == GIB


def test_groups_of_the_first_kind_are_found_among_others(groups):
    groups("9:name=systemd:/x\n4:cpu,cpuacct:/x\n3:memory:/pods/one\n0::/\n", memory__pods__one__limit=GIB)
    assert machine.memory_bytes() == GIB


def test_in_a_container_that_sees_only_its_own_group_that_one_holds(groups):
    groups("3:memory:/of/the/host\n", memory__limit=GIB)
    assert machine.memory_bytes() == GIB


def test_without_a_limit_there_is_the_machine(groups):
    groups("0::/\n", max="max")
    assert machine.memory_bytes() > GIB
