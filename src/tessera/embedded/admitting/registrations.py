"""Webhooks and policies as their objects register them, read once for each version of such an object."""

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, cast

import msgspec

from tessera.embedded.documents import Frozen

GROUP = "admissionregistration.k8s.io"
MUTATING = f"mutatingwebhookconfigurations.{GROUP}"
VALIDATING = f"validatingwebhookconfigurations.{GROUP}"
POLICIES = f"validatingadmissionpolicies.{GROUP}"
BINDINGS = f"validatingadmissionpolicybindings.{GROUP}"

Read = TypeVar("Read")


class _Registered(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """As JSON has it."""


class ResourceRule(_Registered, frozen=True):
    """Which operations on which resources. `*` is every one; `pods/*` is pods and every subresource of them."""

    operations: Sequence[str] = ()
    api_groups: Sequence[str] = ()
    api_versions: Sequence[str] = ()
    resources: Sequence[str] = ()
    resource_names: Sequence[str] = ()
    scope: str = "*"


class Condition(_Registered, frozen=True):
    name: str
    expression: str


class ServiceReference(_Registered, frozen=True):
    namespace: str
    name: str
    path: str = "/"
    port: int = 443


class ClientConfig(_Registered, frozen=True):
    url: str = ""
    service: ServiceReference | None = None
    ca_bundle: str = ""

    def authorities(self) -> bytes:
        try:
            return base64.b64decode(self.ca_bundle, validate=True)
        except binascii.Error:
            return b"none that could be read"


class Webhook(_Registered, frozen=True):
    name: str
    client_config: ClientConfig
    rules: Sequence[ResourceRule] = ()
    namespace_selector: Frozen | None = None
    object_selector: Frozen | None = None
    match_conditions: Sequence[Condition] = ()
    failure_policy: str = "Fail"
    side_effects: str = "Unknown"
    timeout_seconds: int = 10


class Matching(_Registered, frozen=True):
    """What a policy, or its binding, is about."""

    resource_rules: Sequence[ResourceRule] = ()
    exclude_resource_rules: Sequence[ResourceRule] = ()
    namespace_selector: Frozen | None = None
    object_selector: Frozen | None = None


class Validation(_Registered, frozen=True):
    expression: str
    message: str = ""
    message_expression: str = ""
    reason: str = "Invalid"


class PolicySpec(_Registered, frozen=True):
    match_constraints: Matching = Matching()
    match_conditions: Sequence[Condition] = ()
    variables: Sequence[Condition] = ()
    validations: Sequence[Validation] = ()
    failure_policy: str = "Fail"


class BindingSpec(_Registered, frozen=True):
    policy_name: str
    validation_actions: Sequence[str] = ("Deny",)
    match_resources: Matching | None = None


class ReadOnce(Generic[Read]):
    """What was made of each object, until there is another version of it."""

    def __init__(self, make: Callable[[Frozen], Read]) -> None:
        self._make = make
        self._made: dict[tuple[str, str], Read] = {}

    def all(self, documents: Sequence[Frozen]) -> Sequence[Read]:
        keys = [_version(document) for document in documents]
        known, self._made = self._made, {}
        for key, document in zip(keys, documents, strict=True):
            self._made[key] = known[key] if key in known else self._make(document)
        return list(self._made.values())


def _version(document: Frozen) -> tuple[str, str]:
    metadata = document["metadata"]
    return metadata["name"], metadata.get("resourceVersion", "")


def webhooks_of(configuration: Frozen) -> Sequence[Webhook]:
    listed: Any = configuration.get("webhooks") or ()
    return msgspec.convert(_without_nulls(listed), tuple[Webhook, ...])


def spec_of(document: Frozen, kind: type[Read]) -> Read:
    return msgspec.convert(_without_nulls(document.get("spec") or {}), kind)


def _without_nulls(value: Any) -> Any:
    """Whoever writes null means that there is nothing."""
    if isinstance(value, dict):
        entries = cast("dict[str, Any]", value)
        return {key: _without_nulls(item) for key, item in entries.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in cast("list[Any]", value)]
    return value
