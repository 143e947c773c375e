"""How every command behaves, whatever it is about."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tessera.apps.cli import COMMANDS
from tessera.apps.run import COMPONENTS
from tessera.cli.group import make_group
from tests.repository.files import ROOT

TESSERA = (sys.executable, "-m", "tessera.apps.cli")
HEAVY = {"aiohttp", "asyncio", "cryptography", "grpc", "msgspec", "numpy", "rich", "starlette", "structlog", "yaml"}
SLOW = {"aiohttp", "cryptography", "grpc", "numpy", "prometheus_client", "rich", "starlette", "structlog", "uvicorn"}
NOBODY = {"KUBECONFIG": "", "HOME": "/nowhere"}


def tessera(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    around = {key: it for key, it in os.environ.items() if key != "KUBERNETES_SERVICE_HOST"} | environment
    return subprocess.run([*TESSERA, *arguments], capture_output=True, text=True, timeout=60, check=False, env=around)


def imported_by(*arguments: str) -> set[str]:
    """The packages that a call imports."""
    command = [sys.executable, "-X", "importtime", *TESSERA[1:], *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}


@pytest.mark.parametrize(
    "arguments",
    [
        *([], ["--help"], ["nodes", "--help"], ["pods", "--help"], ["doctor", "--help"], ["version", "--help"]),
        *(["completion", "--help"], ["completion", "bash"], ["run", "--help"], ["--version"]),
        *(["run", name, "--help"] for name in COMPONENTS),
    ],
    ids=" ".join,
)
def test_help_imports_nothing_that_takes_long(arguments: list[str]):
    imported = imported_by(*arguments)

    assert "click" in imported
    assert not imported & HEAVY


def every_command(group: click.Group, *above: str) -> Iterator[tuple[str, ...]]:
    for name in group.list_commands(click.Context(group)):
        yield (*above, name)
        found = group.get_command(click.Context(group), name)
        if isinstance(found, click.Group):
            yield from every_command(found, *above, name)


ALL_COMMANDS = list(every_command(make_group(COMMANDS)))


@pytest.mark.parametrize("path", ALL_COMMANDS, ids=" ".join)
def test_nobody_who_asks_for_help_waits_for_what_is_slow_to_import(path: tuple[str, ...]):
    imported = imported_by(*path, "--help")

    assert "click" in imported
    assert not imported & SLOW


def test_the_page_of_the_command_line_names_every_command():
    page = (ROOT / "docs/cli.md").read_text()
    groups = {path[:-1] for path in ALL_COMMANDS}
    named = {" ".join(path) for path in ALL_COMMANDS if path not in groups}

    assert {name for name in named if not re.search(rf"^\|.*`tessera {name}\b.*`", page, re.MULTILINE)} == set()


def test_help_names_every_command_of_the_base():
    helped = tessera("--help").stdout

    assert all(f"\n  {name} " in helped for name in ("nodes", "pods", "doctor", "version", "completion", "simulate"))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("nodes", "--bad"), "No such option '--bad'."),
        (("nodez",), "No such command 'nodez'."),
        (("pods", "-o", "xml"), "'xml' is not one of 'wide', 'json', 'yaml', 'name'."),
        (("completion", "tcsh"), "'tcsh' is not one of 'bash', 'zsh', 'fish'."),
        (("run", "operators"), "No such command 'operators'."),
    ],
)
def test_a_wrong_call_is_one_sentence_and_code_2(arguments: tuple[str, ...], sentence: str):
    done = tessera(*arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("tessera: ")
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_group_without_a_command_shows_its_help_on_stderr():
    done = tessera("run")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: tessera run ")


@pytest.mark.parametrize("command", ["nodes", "pods"])
def test_without_a_cluster_there_is_one_sentence_and_code_1(command: str):
    done = tessera(command, **NOBODY)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("tessera: no cluster is named: ")
    assert done.stderr.count("\n") == 1


def test_a_context_that_is_not_there_is_named(tmp_path: Path):
    (tmp_path / "config").write_text("{apiVersion: v1, kind: Config, contexts: [], clusters: [], users: []}")
    done = tessera("nodes", "--kubeconfig", str(tmp_path / "config"), "--context", "prod")

    assert done.returncode == 1
    assert '"prod"' in done.stderr


def test_the_doctor_finds_that_there_is_no_cluster():
    done = tessera("doctor", "-o", "json", **NOBODY)
    (finding,) = json.loads(done.stdout)["items"]

    assert done.returncode == 1
    assert (finding["check"], finding["level"]) == ("cluster", "problem")


def test_the_version_is_told_without_a_cluster():
    done = tessera("version", "-o", "json", **NOBODY)

    assert done.returncode == 0
    assert json.loads(done.stdout) == {"client": tessera("--version").stdout.split()[-1], "kubernetes": None} | {
        "schedulers": None
    }
    assert "the cluster's version is unknown: no cluster is named" in done.stderr


def test_whoever_asks_for_the_client_alone_is_told_nothing_of_clusters():
    done = tessera("version", "--client", **NOBODY)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("client: ")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_is_told_how_to_complete(shell: str):
    done = tessera("completion", shell)

    assert done.returncode == 0, done.stderr
    assert f"_TESSERA_COMPLETE={shell}_complete" in done.stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [(["no"], ["nodes"]), (["pods", "--name"], ["--namespace"]), (["run", "a"], ["agent"])],
)
def test_words_are_completed(words: list[str], expected: list[str]):
    asked = {"COMP_WORDS": " ".join(["tessera", *words]), "COMP_CWORD": str(len(words))}
    done = tessera(_TESSERA_COMPLETE="bash_complete", **asked)

    assert [line.partition(",")[2] for line in done.stdout.splitlines()] == expected
