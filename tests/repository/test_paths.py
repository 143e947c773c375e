"""The project speaks of itself alone: no file tells whose machine it was written on."""

import re

from tests.repository.files import ROOT, own_files

# Written so that the patterns do not find themselves.
HOME_PATH = re.compile(rb"(?<![\w.])/(?:[h]ome|[U]sers)/[A-Za-z0-9_.-]+|(?<![\w.])/[r]oot/")


def test_no_file_holds_an_absolute_home_path():
    found = [
        f"{path.relative_to(ROOT)}: {match.group().decode()}"
        for path in own_files()
        for match in HOME_PATH.finditer(path.read_bytes())
    ]
    assert found == []


def test_a_home_path_is_recognised_and_a_mere_word_is_not():
    home = b"/".join([b"", b"home", b"ada", b"src"])
    assert HOME_PATH.search(b"see " + home)
    assert not HOME_PATH.search(b"docs/home/index.md and https://example.org/root")
