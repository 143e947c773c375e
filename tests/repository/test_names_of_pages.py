"""What a page tells its readers to run, open or import is there."""

import pkgutil
import re
from pathlib import Path

import click
import pytest

from tessera.apps.cli import COMMANDS
from tessera.cli.group import make_group
from tests.repository.files import ROOT, own_files
from tests.repository.pages import PAGES, commands_of, quotes_of

TARGETS = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
FILES = [str(path.relative_to(ROOT)) for path in own_files()]


def unknown_targets(page: Path) -> list[str]:
    calls = [re.match(r"(?:\w+=\S+ )*make ([a-z][\w-]*)", line) for line in commands_of(page)]
    return [call[1] for call in calls if call and call[1] not in TARGETS]


def unknown_modules(page: Path) -> list[str]:
    """Those of ours that cannot be run; others' are their own affair."""
    named = [name for line in commands_of(page) for name in re.findall(r"python3? -m ([\w.]*\w)", line)]
    ours = [name for name in named if re.match(r"(tessera|testbed|benchmarks|kpu|openshift_ai_sdk)\b", name)]
    return [name for name in ours if not _is_run(name.replace(".", "/"))]


def _is_run(path: str) -> bool:
    return any(re.search(rf"(^|/){path}(/__main__)?\.py$", file) for file in FILES)


def unknown_names(page: Path) -> list[str]:
    """`tessera.h` is C, and what gRPC calls its services is no name of Python's."""
    named = [quote for quote in quotes_of(page) if re.fullmatch(r"(tessera|testbed|openshift_ai_sdk)(\.\w+)+", quote)]
    return [name for name in named if not name.endswith(".h") and not _resolves(name)]


def _resolves(name: str) -> bool:
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


def unknown_paths(page: Path) -> list[str]:
    """Paths from the root of the repository or from the page's own directory, into what is kept in it."""
    kept = {file.partition("/")[0] for file in FILES if "/" in file}
    named = [quote for quote in quotes_of(page) if re.fullmatch(r"[\w.-]+(/[\w.*-]+)+/?", quote)]
    return [path for path in named if path.partition("/")[0] in kept and not _is_there(page, path)]


def _is_there(page: Path, path: str) -> bool:
    return any(any(base.glob(path)) for base in (ROOT, page.parent))


def wrong_calls(page: Path) -> list[str]:
    """Calls of `tessera` with a command or a flag that it does not have."""
    call = re.compile(r"(?<![\w/-])(?:\.venv/bin/)?tessera ([a-z][^|;)\"]*)")
    return [words for line in commands_of(page) for words in call.findall(line) if not _is_taken(words.split())]


def _is_taken(words: list[str]) -> bool:
    command: click.Command | None = make_group(COMMANDS)
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        command = command.get_command(click.Context(command), words.pop(0))
    flags = {word.partition("=")[0] for word in words if word.startswith("--")}
    return command is not None and flags <= _flags(command)


def _flags(command: click.Command) -> set[str]:
    options = [option for option in command.params if isinstance(option, click.Option)]
    return {"--help", *(flag for option in options for flag in (*option.opts, *option.secondary_opts))}


CHECKS = [unknown_targets, unknown_modules, unknown_names, unknown_paths, wrong_calls]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_everything_that_a_page_names_is_there(page: Path):
    assert {check.__name__: found for check in CHECKS if (found := check(page))} == {}


def test_what_is_not_there_is_found(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(
        "Run `make tea`, `python -m benchmarks.tea`, `tessera brew` and `tessera up --tea`;"
        " see `tessera.model.tea` and `docs/tea.md`.\n"
        "```bash\nmake test\nmake coffee\npython -m http.server\n.venv/bin/tessera down --coffee\n```\n"
    )
    assert {check.__name__: check(page) for check in CHECKS} == {
        "unknown_targets": ["coffee", "tea"],
        "unknown_modules": ["benchmarks.tea"],
        "unknown_names": ["tessera.model.tea"],
        "unknown_paths": ["docs/tea.md"],
        "wrong_calls": ["down --coffee", "brew", "up --tea"],
    }
