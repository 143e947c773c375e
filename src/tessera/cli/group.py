"""The `tessera` command and how its errors look: one sentence on stderr, never a traceback.

Exit codes: 1 when something failed, 2 when the call itself was wrong, 130 after Ctrl-C.
"""

import importlib
import io
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, cast

import click

from tessera import __version__
from tessera.errors import TesseraError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

PROGRAM = "tessera"
INTERRUPTED = 130


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

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """By the table: to ask each command for its help would import all of them at each press of the key."""
        from click.shell_completion import CompletionItem

        found = [
            CompletionItem(name, help=it.help) for name, it in self._entries.items() if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

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
        PROGRAM,
        entries,
        callback=show_help,
        help="Share, schedule and drive accelerators.",
        invoke_without_command=True,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    return click.version_option(__version__, prog_name=PROGRAM)(group)


def run(group: click.Group) -> None:
    _print_what_the_encoding_has()
    try:
        status = group.main(prog_name=PROGRAM, standalone_mode=False)
        if sys.stdout:
            sys.stdout.flush()
        sys.exit(status if isinstance(status, int) else 0)
    except TesseraError as error:
        _end(f"{error}", 1)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        _end(error.format_message(), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        _end("interrupted", INTERRUPTED)
    except BrokenPipeError:  # while flushing; click and rich end as quietly when they meet it
        _drop_output()
        sys.exit(1)
    except OSError as error:
        _drop_output()
        _end(f"the output cannot be written: {error.strerror or error}", 1)


def _end(sentence: str, status: int) -> NoReturn:
    click.echo(f"{PROGRAM}: {sentence}", err=True)
    sys.exit(status)


def _print_what_the_encoding_has() -> None:
    """A file name that the encoding of stdout cannot spell is shown with question marks."""
    stdout: object = sys.stdout
    if isinstance(stdout, io.TextIOWrapper):
        cast("io.TextIOWrapper[Any]", stdout).reconfigure(errors="replace")


def _drop_output() -> None:
    """What is still in the buffer would fail once more when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
