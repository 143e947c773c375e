"""Our in-container library on a host: the agent's own, whole, and never changed under a container that has it."""

from pathlib import Path

import pytest

from tessera.vendors.guard import LIBRARY_IN_CONTAINER, find_guard, guard_process, install_guard


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "built").mkdir()
    (tmp_path / "built" / "libtessera.so").write_bytes(b"first")
    return tmp_path / "built" / "libtessera.so"


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    return tmp_path / "hook" / "tessera"


def test_the_library_and_the_loaders_file_are_put_where_containers_get_them_from(source: Path, installed: Path):
    install_guard(source, installed)
    library, preload = installed / "libtessera.so", installed / "ld.so.preload"
    assert library.read_bytes() == b"first"
    assert preload.read_text() == f"{LIBRARY_IN_CONTAINER}\n"
    assert [path.stat().st_mode & 0o005 for path in (library, preload)] == [0o005, 0o005], "any user loads it"


def test_another_one_is_another_file_and_the_same_is_left_alone(source: Path, installed: Path):
    install_guard(source, installed)
    library = installed / "libtessera.so"
    with library.open("rb") as mapped:
        before = library.stat().st_ino
        install_guard(source, installed)
        assert library.stat().st_ino == before
        source.write_bytes(b"second")
        install_guard(source, installed)
        assert mapped.read() == b"first", "containers that run have what they had"
    assert library.read_bytes() == b"second"


def test_the_first_place_that_has_it_counts(source: Path, tmp_path: Path):
    assert find_guard((tmp_path / "none", source)) == source
    assert find_guard((tmp_path / "none",)) is None


def test_a_process_without_a_container_is_told_everything_by_variables():
    edits = guard_process(
        Path("/lib.so"), limits=Path("/l"), region=Path("/r"), cards=Path("/c"), agent=Path("/a/socket")
    )
    assert edits.environment == {
        "LD_PRELOAD": "/lib.so",
        "TESSERA_LIMITS": "/l",
        "TESSERA_REGION": "/r",
        "TESSERA_CARDS": "/c",
        "TESSERA_AGENT": "/a/socket",
    }
