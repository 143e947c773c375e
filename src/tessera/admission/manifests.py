"""The MutatingWebhookConfiguration: which pods the API server asks us about.

The API server itself decides, by CEL, that only pods that concern us are sent. So `failurePolicy: Fail` is safe: when
nobody answers, pods that ask for cards wait, and all others start as if we were not there. Namespaces of the control
plane and our own are left out, so that we can always be started again.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from tessera.admission.expressions import asks_for, either, has_annotation, is_one_of
from tessera.admission.reviewing import IGNORE, IGNORE_LABEL
from tessera.admission.settings import Settings
from tessera.model.annotations import keys
from tessera.model.catalogue import Catalogue

Document = dict[str, Any]
WEBHOOK = "vgpu.hami.io"
PATH = "/webhook"
NAMESPACE_NAME = "kubernetes.io/metadata.name"
CONTROL_PLANE = "kube-system"
NO_ANNOTATIONS: Mapping[str, str] = {}


class ServiceAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Where the API server finds us inside the cluster."""

    namespace: str = "kube-system"
    name: str = "hami-scheduler"
    port: int = 443

    def client_config(self) -> Document:
        return {"service": {"namespace": self.namespace, "name": self.name, "port": self.port, "path": PATH}}


class UrlAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Where the API server finds us outside of the cluster, such as `https://10.0.0.7:8443`."""

    url: str

    def client_config(self) -> Document:
        return {"url": f"{self.url.rstrip('/')}{PATH}"}


def webhook_manifest(
    catalogue: Catalogue,
    settings: Settings,
    address: ServiceAddress | UrlAddress,
    *,
    name: str = "hami-webhook",
    timeout_s: int = 5,
    left_alone: tuple[str, ...] = (),
    annotations: Mapping[str, str] = NO_ANNOTATIONS,
) -> Document:
    """`left_alone` are namespaces beside kube-system in which nobody is asked: the one that we run in belongs there.

    `annotations` let cert-manager put its authority in. Without it the `caBundle` is written by `certificates`.
    """
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name, "annotations": dict(annotations)},
        "webhooks": [
            {
                "name": WEBHOOK,
                "clientConfig": address.client_config(),
                "rules": [_POD_CREATION],
                "namespaceSelector": {"matchExpressions": [_NOT_IGNORED, _not_named(CONTROL_PLANE, *left_alone)]},
                "objectSelector": {"matchExpressions": [_NOT_IGNORED]},
                "matchConditions": [{"name": "concerns-our-cards", "expression": concerns_us(catalogue, settings)}],
                "matchPolicy": "Equivalent",
                "failurePolicy": "Fail",
                "reinvocationPolicy": "IfNeeded",
                "sideEffects": "None",
                "timeoutSeconds": timeout_s,
                "admissionReviewVersions": ["v1", "v1beta1"],
            }
        ],
    }


def concerns_us(catalogue: Catalogue, settings: Settings) -> str:
    """A CEL expression over a pod: it names our scheduler, refers to a claim, or asks for one of our resources."""
    return either(
        is_one_of("object.spec.schedulerName", settings.schedulers),
        has_annotation("object", keys.CLAIM),
        asks_for("object.spec", catalogue.managed_resources()),
    )


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
