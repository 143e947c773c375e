from pathlib import Path

from tessera.embedded.runtime.cgroups import Cgroups, Tree, read_trees

UNIFIED = "31 24 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
HYBRID = (
    "40 31 0:33 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "41 31 0:34 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "42 31 0:35 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
)


def test_the_unified_tree_is_found_with_our_own_group_in_it():
    own = Path("/sys/fs/cgroup/user.slice/app.scope")
    assert list(read_trees("0::/user.slice/app.scope\n", UNIFIED)) == [Tree(own, Path("/sys/fs/cgroup"), True)]


def test_in_the_older_layout_memory_has_a_tree_of_its_own():
    trees = list(read_trees("4:memory:/jobs/1\n3:cpu,cpuacct:/\n0::/\n", HYBRID))
    assert [(tree.own, tree.is_unified) for tree in trees] == [
        (Path("/sys/fs/cgroup/memory/jobs/1"), False),
        (Path("/sys/fs/cgroup/unified"), True),
    ]


def test_a_mount_that_shows_a_part_of_the_tree_is_understood():
    mounts = "31 24 0:27 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n"
    assert [tree.own for tree in read_trees("0::/docker/abc/inner\n", mounts)] == [Path("/sys/fs/cgroup/inner")]


def test_kills_for_want_of_memory_are_counted_in_either_layout(tmp_path):
    (tmp_path / "one").mkdir()
    for name, text in (("memory.events", "oom 1\noom_kill 1\n"), ("memory.oom_control", "under_oom 0\noom_kill 0\n")):
        (tmp_path / "one" / name).write_text(text)
    outcomes = {}
    for is_unified in (True, False):
        groups = Cgroups([(Tree(tmp_path, tmp_path, is_unified), tmp_path)])
        outcomes[is_unified] = groups.make("one", memory_bytes=None).was_out_of_memory()
    assert outcomes == {True: True, False: False}


def test_without_any_tree_a_container_has_no_group_and_no_limit():
    groups = Cgroups([])
    group = groups.make("one", memory_bytes=1)
    assert (groups.limits_memory, group.process_files, group.was_out_of_memory()) == (False, [], False)
