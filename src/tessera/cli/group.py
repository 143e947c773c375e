"""The `tessera` command and how its errors look: one sentence on stderr, exit code 1, never a traceback."""

import importlib
import io
import os
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import click

from tessera import __version__
from tessera.errors import TesseraError


class Entry(NamedTuple):
    """A command: the module that has it as `command`, and one line of help."""

    module: str
    help: str


class LazyGroup(click.Group):
    """Imports the module of a command only when that command is called."""

    def __init__(self, name: str, entries: Mapping[str, Entry], **options: Any) -> None:
        super().__init__(name, **options)
        self._entries = entries

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return sorted(self._entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in self._entries:
            return None
        command: click.Command = importlib.import_module(self._entries[cmd_name].module).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(sorted((name, entry.help) for name, entry in self._entries.items()))


def make_group(entries: Mapping[str, Entry]) -> click.Group:
    """The `tessera` command with these below it; alone it shows its help."""

    @click.pass_context
    def show_help(ctx: click.Context) -> None:
        if ctx.invoked_subcommand is None:
            click.echo(ctx.get_help())

    group = LazyGroup(
        "tessera",
        entries,
        callback=show_help,
        help="Share, schedule and drive accelerators.",
        invoke_without_command=True,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    return click.version_option(__version__, prog_name="tessera")(group)


def run(group: click.Group) -> None:
    _print_what_the_encoding_has()
    try:
        group.main(standalone_mode=False)
        if sys.stdout:
            sys.stdout.flush()
    except TesseraError as error:
        sys.exit(f"tessera: {error}")
    except click.ClickException as error:
        sys.exit(f"tessera: {error.format_message()}")
    except (click.Abort, KeyboardInterrupt):
        sys.exit("tessera: interrupted")
    except BrokenPipeError:  # while flushing; click and rich end as quietly when they meet it
        _drop_output()
        sys.exit(1)
    except OSError as error:
        _drop_output()
        sys.exit(f"tessera: the output cannot be written: {error.strerror or error}")


def _print_what_the_encoding_has() -> None:
    """A file name that the encoding of stdout cannot spell is shown with question marks."""
    stdout: object = sys.stdout
    if isinstance(stdout, io.TextIOWrapper):
        cast("io.TextIOWrapper[Any]", stdout).reconfigure(errors="replace")


def _drop_output() -> None:
    """What is still in the buffer would fail once more when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
