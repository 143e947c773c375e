"""The `tessera` command and how its errors look: one sentence on stderr, exit code 1, never a traceback."""

import importlib
import sys
from collections.abc import Mapping

import click

from tessera import __version__
from tessera.errors import TesseraError

COMMANDS: Mapping[str, str] = {"simulate": "Replay a trace, a cluster dump or a made-up cluster through the engine."}


class LazyGroup(click.Group):
    """Imports the module of a command only when that command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"tessera.cli.{cmd_name}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tessera")
def tessera() -> None:
    """Share, schedule and drive accelerators."""


def main() -> None:
    try:
        tessera.main(standalone_mode=False)
    except TesseraError as error:
        sys.exit(f"tessera: {error}")
    except click.ClickException as error:
        sys.exit(f"tessera: {error.format_message()}")
    except (click.Abort, KeyboardInterrupt):
        sys.exit("tessera: interrupted")
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)
