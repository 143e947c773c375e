"""The schemas of built-in kinds are made anew from the installed client whenever the package is built."""

import runpy
import shutil
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import msgspec
import pytest

PROJECT = Path(__file__).parents[4]
SCHEMAS = Path("src/tessera/embedded/schemas")


@pytest.fixture
def generate():
    return runpy.run_path(str(PROJECT / "build_schemas.py"))["generate"]


@pytest.fixture
def root(tmp_path):
    (tmp_path / SCHEMAS).mkdir(parents=True)
    shutil.copy(PROJECT / SCHEMAS / "marks.toml", tmp_path / SCHEMAS)
    return tmp_path


def test_what_is_installed_is_what_would_be_generated_now(generate, root):
    (written,) = generate(root)
    installed = (files("tessera.embedded.schemas") / "kubernetes.json").read_bytes()
    assert (root / written).read_bytes() == installed, "run `make setup`"
    assert msgspec.json.decode(installed)["client"] == version("kubernetes")


def test_a_mark_on_something_that_the_client_does_not_have_is_refused(generate, root):
    marks = root / SCHEMAS / "marks.toml"
    marks.write_text(marks.read_text() + '\n[[marks]]\nsays = { format = "quantity" }\non = ["PodSpec.weight"]\n')
    with pytest.raises(SystemExit, match=r"marks\.toml speaks of what .* do not have: PodSpec\.weight;"):
        generate(root)
