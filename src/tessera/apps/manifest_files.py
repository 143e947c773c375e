"""What the cluster is told that follows from the vendor catalogue, as documents and as files of the Helm chart.

Which resources concern us, and which annotations are ours, is known to the catalogue alone. So these objects are made
here and not written by hand; the chart keeps what `--chart` writes, and a test fails when that is out of date. The
definitions of our kinds are copied beside them: helm reads no file outside its chart.
"""

from collections.abc import Mapping
from typing import Any

from tessera.admission import DEFAULT_SETTINGS
from tessera.admission.confining import agent_policy_manifests
from tessera.admission.guarding import Writers, policy_manifests, service_account
from tessera.admission.manifests import ServiceAddress, webhook_manifest
from tessera.apps.plain_yaml import as_yaml
from tessera.model.catalogue import Catalogue
from tessera.model.definitions import definition_files
from tessera.scheduler.configuration import Endpoint, scheduler_configuration

Document = dict[str, Any]
NAMESPACE = "kube-system"
SCHEDULER = service_account(NAMESPACE, "hami-scheduler")
AGENT = service_account(NAMESPACE, "hami-device-plugin")
OTHER_SCHEDULERS = "OTHER-SCHEDULERS"
"""What the chart puts the user names of other schedulers in the place of."""
IN_POD = Endpoint("https://127.0.0.1:8443", "/run/tessera/tls/ca.crt")
MADE = "# Made by `make chart` from {source}; do not edit.\n"


def admission_documents(catalogue: Catalogue, other_schedulers: tuple[str, ...]) -> tuple[Document, ...]:
    writers = Writers(schedulers=(SCHEDULER, *other_schedulers), agents=(AGENT,))
    return (
        webhook_manifest(catalogue, DEFAULT_SETTINGS, ServiceAddress()),
        *policy_manifests(catalogue, writers),
        *agent_policy_manifests(catalogue, writers.agents),
    )


def chart_files(catalogue: Catalogue) -> Mapping[str, str]:
    """What the chart's templates read, by file name below its `files`."""
    webhook, *policies = admission_documents(catalogue, (OTHER_SCHEDULERS,))
    documents = {
        "webhook.yaml": (webhook,),
        "policies.yaml": tuple(policies),
        "kube-scheduler.yaml": (scheduler_configuration(catalogue, IN_POD),),
    }
    made, copied = MADE.format(source="the vendor catalogue"), MADE.format(source="tessera/model/definitions")
    return {
        **{name: made + as_yaml(*content) for name, content in documents.items()},
        **{f"crds/{name}": copied + text for name, text in definition_files().items()},
    }
