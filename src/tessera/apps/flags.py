"""Groups of flags that several commands share, each of them written once.

Whoever asks for help waits for what is imported here and by the modules of commands. So those have flags alone, and
what runs is imported when it is to run.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

CommandT = TypeVar("CommandT", bound=Callable[..., Any])
Flag = Callable[[Callable[..., Any]], Callable[..., Any]]

KUBECONFIG: Flag = click.option(
    "--kubeconfig", type=click.Path(path_type=Path), help="Which cluster; without it, as kubectl finds it."
)
LEASE_NAMESPACE: Flag = click.option(
    "--lease-namespace", default="default", show_default=True, help="Where the leases of claimed cards are."
)
SPILL_PERCENT = click.IntRange(0, 1000)
"""Of a container's memory, what it may have again in the host's."""


def with_flags(command: CommandT, *flags: Flag) -> CommandT:
    """Help shows them in this order."""
    for flag in reversed(flags):
        flag(command)
    return command
