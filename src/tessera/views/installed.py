"""What an installation of ours leaves in a cluster, and what it is called there."""

import base64

import msgspec

from tessera.kube.kinds import CONFIG_MAPS, SECRETS, kind_of
from tessera.kube.objects import ObjectMeta

NAMESPACE = "kube-system"
SCHEDULER = "hami-scheduler"
AGENT = "hami-device-plugin"
SECRET = "hami-scheduler-tls"
WEBHOOKS_OF_OURS = ("vgpu.hami.io", "claims.gpu.scheduling")
NAME_LABEL = "app.kubernetes.io/name"
LEADER_LEASES = (SCHEDULER, "tessera-scheduler")  # kube-scheduler's beside us, and our own where there is none
DEFINITIONS = (
    "computes.compute.kpu.dev",
    "gpuclaims.gpu.scheduling",
    "gpugangs.gpu.scheduling",
    "gpunodestatuses.gpu.scheduling",
)


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class ClientConfig(_Part, frozen=True, kw_only=True):
    ca_bundle: str | None = None


class Webhook(_Part, frozen=True, kw_only=True):
    name: str
    client_config: ClientConfig = ClientConfig()
    failure_policy: str | None = None

    @property
    def authorities(self) -> str:
        return _decoded(self.client_config.ca_bundle)


class WebhookConfiguration(_Part, frozen=True, kw_only=True):
    metadata: ObjectMeta
    webhooks: tuple[Webhook, ...] | None = None


class KeptData(_Part, frozen=True, kw_only=True):
    """A Secret or a ConfigMap."""

    metadata: ObjectMeta
    data: dict[str, str] | None = None

    @property
    def authorities(self) -> str:
        """Of a Secret with a certificate: who signed it."""
        return _decoded((self.data or {}).get("ca.crt"))


class ReviewMetadata(_Part, frozen=True, kw_only=True):
    creation_timestamp: str | None = None


class SelfReview(_Part, frozen=True, kw_only=True):
    metadata: ReviewMetadata = ReviewMetadata()


WEBHOOKS = kind_of(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    namespaced=False,
).decoded_as(WebhookConfiguration)
SELF_REVIEWS = kind_of(
    "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False
).decoded_as(SelfReview)
KEPT_SECRETS = SECRETS.decoded_as(KeptData)
KEPT_CONFIG_MAPS = CONFIG_MAPS.decoded_as(KeptData)


def _decoded(data: str | None) -> str:
    try:
        return base64.b64decode(data or "", validate=True).decode("ascii", "replace")
    except ValueError:
        return ""
