"""`tessera completion`: what a shell must be told so that it completes our commands."""

import click
from click.shell_completion import get_completion_class

from tessera.cli.group import PROGRAM

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print what makes a shell complete commands and options.

    \b
    source <(tessera completion bash)
    source <(tessera completion zsh)
    tessera completion fish | source
    """
    completing = get_completion_class(shell)
    if completing is None:
        raise click.UsageError(f"{shell} is not known, expected one of {', '.join(SHELLS)}")
    root = ctx.find_root().command
    click.echo(completing(root, {}, PROGRAM, f"_{PROGRAM.upper()}_COMPLETE").source())
