"""A tree of files written as a layer and read back is the same tree."""

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from testbed.images.entries import entries_of
from testbed.images.layers import layer
from testbed.images.oci import Image, write_image
from tests.testbed.images.reading import read_image

NAMES = st.text(st.characters(categories=("L", "N", "P", "S"), exclude_characters="/"), min_size=1, max_size=60).filter(
    lambda name: name not in (".", "..") and not name.startswith(".wh.") and len(name.encode()) < 200
)
FILES = st.binary(max_size=1500)
LINKS = NAMES.map(lambda target: f"/{target}")
TREES = st.recursive(
    st.dictionaries(NAMES, FILES | LINKS, max_size=3),
    lambda children: st.dictionaries(NAMES, FILES | LINKS | children, max_size=3),
    max_leaves=12,
)


def plant(tree: dict, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for name, content in tree.items():
        match content:
            case bytes():
                (folder / name).write_bytes(content)
            case str():
                (folder / name).symlink_to(content)
            case _:
                plant(content, folder / name)


def flatten(tree: dict, at: str = "") -> dict[str, bytes | str | None]:
    flat: dict[str, bytes | str | None] = {}
    for name, content in tree.items():
        flat[at + name] = None if isinstance(content, dict) else content
        if isinstance(content, dict):
            flat |= flatten(content, f"{at}{name}/")
    return flat


@given(tree=TREES)
def test_a_tree_written_and_read_back_is_the_same(tree: dict):
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        plant(tree, root / "tree")
        image = Image(reference="docker.io/library/tree:testbed", layers=(layer("tree", entries_of(root / "tree")),))
        (found,) = read_image(write_image(image, root / "image.tar", root / "cache").path).layers
    assert {path: None if entry.kind == "directory" else entry.content for path, entry in found.items()} == flatten(
        tree
    )
