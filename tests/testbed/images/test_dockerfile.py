"""The Dockerfile makes the image that the recipe makes."""

import re
import subprocess
from importlib.metadata import requires
from pathlib import Path

import pytest

from tessera.vendors.guard import IN_IMAGE
from testbed.fixtures import require
from testbed.images.cache import default_cache
from testbed.images.recipes import tessera
from testbed.images.wheels import own_package
from tests.repository.files import ROOT
from tests.testbed.images.dockerfile import Stage, read_stages

KEYWORDS = {"RUN", "COPY", "ENV", "LABEL", "WORKDIR", "USER", "ENTRYPOINT"}
INSTALLED = re.compile(r"apt-get install --yes --no-install-recommends ([\w+.\- ]+?) +&&")
PIP_INSTALL = re.compile(r"python3 -m pip install [^&]*")


@pytest.fixture(scope="module")
def stages() -> list[Stage]:
    return read_stages(ROOT / "Dockerfile")


@pytest.fixture(scope="module")
def final(stages: list[Stage]) -> Stage:
    return stages[-1]


def test_it_has_two_stages_on_one_release_of_debian_and_copies_between_them(stages: list[Stage]):
    build, final = stages
    assert build.base == final.base == "debian:bookworm-slim"
    assert [rest.split()[0] for rest in final.all("COPY")] == [f"--from={build.name}"]


def test_every_instruction_is_one_we_know(stages: list[Stage]):
    assert {keyword for stage in stages for keyword, _ in stage.instructions} <= KEYWORDS


def test_every_copied_path_exists_and_is_let_through(stages: list[Stage]):
    ignore = (ROOT / ".dockerignore").read_text().splitlines()
    allowed = {line[1:] for line in ignore if line.startswith("!")}
    copied = {path for stage in stages for path in stage.copied()}
    assert "*" in ignore
    assert copied == allowed
    assert [path for path in sorted(copied) if not (ROOT / path).exists()] == []


def test_it_installs_the_packages_of_the_recipe(final: Stage):
    (installed,) = INSTALLED.findall(final.only("RUN"))
    assert tuple(installed.split()) == tessera.PACKAGES


def test_it_runs_the_same_program_as_the_same_user_in_the_same_place(final: Stage):
    assert final.listed("ENTRYPOINT") == tessera.ENTRYPOINT
    assert final.only("USER") == tessera.USER
    assert final.only("WORKDIR") == "/"
    assert final.pairs("ENV") == tessera.ENVIRONMENT


def test_its_user_is_made_as_the_recipe_has_it(final: Stage):
    made = re.search(r"useradd --uid (\d+) --gid (\d+) .*--home-dir (\S+) --shell (\S+) (\w+)", final.only("RUN"))
    assert made
    uid, gid, home, shell, name = made.groups()
    assert f"{name}:x:{uid}:{gid}:{name}:{home}:{shell}\n".encode() in tessera.PASSWD
    assert f"{uid}:{gid}" == tessera.USER


def test_the_library_for_containers_lies_where_the_agent_looks_for_it(stages: list[Stage]):
    (command,) = (run for run in stages[0].all("RUN") if "install -D" in run)
    assert command.endswith(f" /{tessera.LIBRARY}")
    assert f"/{tessera.LIBRARY}" == str(IN_IMAGE)


def test_its_labels_are_those_of_our_wheel(final: Stage):
    about = tessera.distribution(own_package(ROOT, default_cache()))
    assert final.pairs("LABEL") == tessera.labels(about)


def test_nothing_is_installed_from_an_index_without_a_hash(stages: list[Stage]):
    commands = [command for run in stages[0].all("RUN") for command in PIP_INSTALL.findall(run)]
    assert len(commands) == 4
    assert all("--require-hashes" in command or "--no-index" in command for command in commands)


def test_the_build_backend_is_taken_whole_from_the_pinned_requirements(stages: list[Stage]):
    (script,) = (run for run in stages[0].all("RUN") if run.startswith("awk"))
    program = re.search(r"awk '([^']*)'", script)
    assert program
    taken = subprocess.run(
        ["awk", program[1], ROOT / "requirements/dev.txt"], check=True, capture_output=True, text=True
    ).stdout
    names = set(re.findall(r"^([a-z-]+)==", taken, re.MULTILINE))
    read_as_files = {"kubernetes"}  # its models are read, and nothing of it is run
    assert names == with_what_they_need("hatchling", "grpcio-tools") | read_as_files
    assert taken.count("--hash=sha256:") >= len(names)


def with_what_they_need(*packages: str) -> set[str]:
    """Without what only other Pythons or extras need."""
    found = set(packages)
    for package in packages:
        lines = [line for line in requires(package) or () if ";" not in line]
        found |= with_what_they_need(*(re.split(r"[^\w-]", line)[0] for line in lines))
    return found


def test_the_recipe_uses_the_python_that_the_dockerfile_gets():
    release = Path("/etc/os-release").read_text()
    require("bookworm" in release, "the Dockerfile's Debian is bookworm, and this machine has another")
    image = tessera.tessera_image(ROOT, default_cache())
    assert "usr/bin/python3.11" in {entry.path for entry in image.layers[0].entries}
