"""The MutatingWebhookConfiguration: which pods the API server asks us about.

It has two entries: one for pods that claim cards as a whole, one for pods whose containers ask for cards, as HAMi has
it. The same review stands behind both, and a second one changes nothing; so a pod that is both may be asked about
twice, and one that another webhook makes a claiming one after our first look is looked at again.

The API server itself decides, by CEL, that only pods that concern us are sent. So `failurePolicy: Fail` is safe: when
nobody answers, pods that ask for cards wait, and all others start as if we were not there. Namespaces of the control
plane and our own are left out, so that we can always be started again.
"""

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

import msgspec

from tessera.admission.expressions import asks_for, either, has_annotation, is_one_of
from tessera.admission.reviewing import IGNORE, IGNORE_LABEL
from tessera.admission.settings import Settings
from tessera.model.annotations import keys
from tessera.model.catalogue import Catalogue

Document = dict[str, Any]
WEBHOOK, PATH = "vgpu.hami.io", "/webhook"
CLAIM_WEBHOOK, CLAIM_PATH = "claims.gpu.scheduling", "/mutate"
SERVICE_PORTS: Mapping[str, int] = {PATH: 443, CLAIM_PATH: 8443}
NAMESPACE_NAME = "kubernetes.io/metadata.name"
CONTROL_PLANE = "kube-system"
NO_ANNOTATIONS: Mapping[str, str] = {}


class ServiceAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Where the API server finds us inside the cluster."""

    namespace: str = "kube-system"
    name: str = "hami-scheduler"

    def client_config(self, path: str) -> Document:
        return {"service": {"namespace": self.namespace, "name": self.name, "port": SERVICE_PORTS[path], "path": path}}


class UrlAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Where the API server finds us outside of the cluster, such as `https://10.0.0.7:8443`."""

    url: str

    def client_config(self, path: str) -> Document:
        return {"url": f"{self.url.rstrip('/')}{path}"}


def webhook_manifest(
    catalogue: Catalogue,
    settings: Settings,
    address: ServiceAddress | UrlAddress,
    *,
    name: str = "hami-webhook",
    timeout_s: int = 5,
    left_alone: tuple[str, ...] = (),
    annotations: Mapping[str, str] = NO_ANNOTATIONS,
    authority: bytes = b"",
) -> Document:
    """`left_alone` are namespaces beside kube-system in which nobody is asked: the one that we run in belongs there.

    `annotations` let cert-manager put its authority in. Without it, and without `authority`, the `caBundle` is written
    by `certificates`.
    """
    common: Document = {
        "rules": [_POD_CREATION],
        "namespaceSelector": {"matchExpressions": [_NOT_IGNORED, _not_named(CONTROL_PLANE, *left_alone)]},
        "objectSelector": {"matchExpressions": [_NOT_IGNORED]},
        "matchPolicy": "Equivalent",
        "failurePolicy": "Fail",
        "reinvocationPolicy": "IfNeeded",
        "sideEffects": "None",
        "timeoutSeconds": timeout_s,
        "admissionReviewVersions": ["v1", "v1beta1"],
    }
    bundle = {"caBundle": b64encode(authority).decode()} if authority else {}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name, "annotations": dict(annotations)},
        "webhooks": [
            {
                "name": hook,
                "clientConfig": address.client_config(path) | bundle,
                "matchConditions": [{"name": condition, "expression": expression}],
                **common,
            }
            for hook, path, condition, expression in (
                (WEBHOOK, PATH, "concerns-our-cards", concerns_us(catalogue, settings)),
                (CLAIM_WEBHOOK, CLAIM_PATH, "claims-cards", claims_cards_or_joins()),
            )
        ],
    }


def concerns_us(catalogue: Catalogue, settings: Settings) -> str:
    """A CEL expression over a pod: it names our scheduler or asks for one of our resources."""
    return either(
        is_one_of("object.spec.schedulerName", settings.schedulers),
        asks_for("object.spec", (*catalogue.managed_resources(), keys.CLAIM)),
    )


def claims_cards_or_joins() -> str:
    """A CEL expression over a pod: it refers to a claim, wants certain cards, or is one of a gang."""
    return either(*(has_annotation("object", key) for key in (keys.CLAIM, keys.PIN, keys.GANG)))


_POD_CREATION: Document = {
    "operations": ["CREATE"],
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "resources": ["pods"],
    "scope": "*",
}
_NOT_IGNORED: Document = {"key": IGNORE_LABEL, "operator": "NotIn", "values": [IGNORE]}


def _not_named(*namespaces: str) -> Document:
    return {"key": NAMESPACE_NAME, "operator": "NotIn", "values": list(dict.fromkeys(namespaces))}
