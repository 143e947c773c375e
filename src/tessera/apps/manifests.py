"""`tessera manifests`: the objects that follow from the vendor catalogue, for the Helm chart and for hands.

Which resources concern us, and which annotations are ours, is known to the catalogue alone. So these objects are made
here and not written by hand; the chart keeps what `--chart` writes, and a test fails when that is out of date.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import yaml

from tessera.admission import DEFAULT_SETTINGS
from tessera.admission.confining import agent_policy_manifests
from tessera.admission.guarding import Writers, policy_manifests, service_account
from tessera.admission.manifests import ServiceAddress, webhook_manifest
from tessera.model.catalogue import Catalogue
from tessera.scheduler.configuration import Endpoint, scheduler_configuration
from tessera.vendors.loading import load_catalogue

Document = dict[str, Any]
NAMESPACE = "kube-system"
SCHEDULER = service_account(NAMESPACE, "hami-scheduler")
AGENT = service_account(NAMESPACE, "hami-device-plugin")
OTHER_SCHEDULERS = "OTHER-SCHEDULERS"
"""What the chart puts the user names of other schedulers in the place of."""
IN_POD = Endpoint("https://127.0.0.1:8443", "/run/tessera/tls/ca.crt")
MADE = "# Made by `make chart` from the vendor catalogue; do not edit.\n"


@click.command("manifests")
@click.option(
    "--other-scheduler", "others", multiple=True, help="A user who may write allocations too, such as Volcano."
)
@click.option("--chart", type=click.Path(path_type=Path), help="Write the files of the Helm chart to this directory.")
def command(others: tuple[str, ...], chart: Path | None) -> None:
    """Print the webhook's configuration and the admission policies as YAML."""
    if chart is None:
        click.echo(_as_yaml(*admission_documents(load_catalogue(), others)), nl=False)
        return
    for name, text in chart_files(load_catalogue()).items():
        (chart / name).write_text(text)


def admission_documents(catalogue: Catalogue, other_schedulers: tuple[str, ...]) -> tuple[Document, ...]:
    writers = Writers(schedulers=(SCHEDULER, *other_schedulers), agents=(AGENT,))
    return (
        webhook_manifest(catalogue, DEFAULT_SETTINGS, ServiceAddress()),
        *policy_manifests(catalogue, writers),
        *agent_policy_manifests(catalogue, writers.agents),
    )


def chart_files(catalogue: Catalogue) -> Mapping[str, str]:
    """What the chart's templates read, by file name."""
    webhook, *policies = admission_documents(catalogue, (OTHER_SCHEDULERS,))
    documents = {
        "webhook.yaml": (webhook,),
        "policies.yaml": tuple(policies),
        "kube-scheduler.yaml": (scheduler_configuration(catalogue, IN_POD),),
    }
    return {name: MADE + _as_yaml(*content) for name, content in documents.items()}


class _Plain(yaml.SafeDumper):
    """Repeats what stands in two places, where YAML would refer from one to the other."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002
        return True


def _as_yaml(*documents: Document) -> str:
    return yaml.dump_all(documents, Dumper=_Plain, sort_keys=False, width=120)
