"""What the API server asks and refuses for us: the objects that the chart installs, made for this machine."""

from tessera.admission import DEFAULT_SETTINGS
from tessera.admission.guarding import Writers, policy_manifests, service_account
from tessera.admission.manifests import UrlAddress, webhook_manifest
from tessera.kube.client import Client
from tessera.kube.kinds import kind_of
from tessera.kube.objects import Document
from tessera.model.catalogue import Catalogue

NAMESPACE = "kube-system"
SCHEDULER = service_account(NAMESPACE, "hami-scheduler")
MANAGER = "tessera-up"
GROUP = "admissionregistration.k8s.io"
KINDS = {
    name: kind_of(GROUP, "v1", plural, name, namespaced=False)
    for name, plural in (
        ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
        ("ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
        ("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
    )
}


async def install_admission(client: Client, catalogue: Catalogue, url: str, authority: bytes) -> None:
    """The address may be another one than at the last start."""
    webhook = webhook_manifest(catalogue, DEFAULT_SETTINGS, UrlAddress(url=url), authority=authority)
    for manifest in (webhook, *policy_manifests(catalogue, Writers(schedulers=(SCHEDULER,)))):
        await apply(client, manifest)


async def apply(client: Client, manifest: Document) -> None:
    kind = KINDS[manifest["kind"]]
    await client.apply(kind, manifest["metadata"]["name"], manifest, manager=MANAGER, force=True)
