"""The flags about the webhook, which `tessera run extender` and `tessera run webhook` share.

They are read and checked in `webhook_options`.
"""

from pathlib import Path
from typing import TypedDict

import click

from tessera.apps.flags import CommandT, with_flags


class WebhookFlags(TypedDict):
    """As click gives them. Empty is as good as not there."""

    webhook: str
    webhook_tls_dir: Path | None
    webhook_secret: str
    webhook_configuration: str
    webhook_host: tuple[str, ...]


def webhook_flags(command: CommandT) -> CommandT:
    directory = click.Path(path_type=Path)
    return with_flags(
        command,
        click.option("--webhook", default="", help="Where to serve the webhook alone, over TLS."),
        click.option("--webhook-tls-dir", type=directory, help="The webhook's tls.crt and tls.key; read anew."),
        click.option(
            "--webhook-secret", default="", help="NAMESPACE/NAME of the Secret where we keep its certificate."
        ),
        click.option("--webhook-configuration", default="", help="The MutatingWebhookConfiguration that trusts it."),
        click.option("--webhook-host", multiple=True, help="A name by which the API server calls it; may be repeated."),
    )
