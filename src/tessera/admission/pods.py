"""A pod as it reaches the webhook: what admission reads of it beyond what it asks for."""

from collections.abc import Iterator
from operator import itemgetter
from typing import NamedTuple

import msgspec

from tessera.admission.patching import Path
from tessera.errors import InvalidRequest
from tessera.model import pod_documents
from tessera.model.catalogue import Catalogue, Vendor
from tessera.model.mismatches import explain_mismatch
from tessera.model.pod_documents import NO_METADATA, NO_RESOURCES, Metadata, Values
from tessera.model.requests import ContainerRequest, DeviceRequest, PodRef, PodRequest


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class EnvironmentVariable(_Part, frozen=True, kw_only=True):
    name: str
    value: str | None = None
    value_from: Values | None = None


class SecurityContext(_Part, frozen=True, kw_only=True):
    privileged: bool | None = None


class Container(pod_documents.Container, frozen=True, kw_only=True):
    name: str | None = None
    env: tuple[EnvironmentVariable, ...] | None = None
    security_context: SecurityContext | None = None

    @property
    def is_privileged(self) -> bool:
        return bool(self.security_context and self.security_context.privileged)

    @property
    def figures(self) -> Values:
        return (self.resources or NO_RESOURCES).first_of_limits()

    def last_variable(self, name: str) -> tuple[int, EnvironmentVariable] | None:
        """Where the variable stands that counts, and what it is: of several with one name it is the last."""
        named = ((index, one) for index, one in enumerate(self.env or ()) if one.name == name)
        return max(named, key=itemgetter(0), default=None)

    def keys_of(self, vendor: Vendor) -> tuple[str, ...]:
        """The vendor's resources that this container names, its count first."""
        figures = self.figures
        return tuple(key for key in vendor.resources.by_key if key in figures)


class Spec(pod_documents.Spec, frozen=True, kw_only=True):
    containers: tuple[Container, ...]
    init_containers: tuple[Container, ...] | None = None
    scheduler_name: str | None = None
    node_name: str | None = None
    runtime_class_name: str | None = None


class Document(pod_documents.PodDocument, frozen=True, kw_only=True):
    metadata: Metadata | None = None
    spec: Spec


class Asking(NamedTuple):
    """A container, where it stands in the pod, and what it asks for."""

    path: Path
    container: Container
    request: ContainerRequest

    @property
    def label(self) -> str:
        return f"container {self.container.name or self.path[-1]}"

    def by_vendor(self, catalogue: Catalogue) -> Iterator[tuple[Vendor, DeviceRequest]]:
        for device in self.request.devices:
            vendor = catalogue.by_name(device.vendor)
            if vendor is not None:
                yield vendor, device


class ArrivingPod(NamedTuple):
    ref: PodRef
    document: Document

    @property
    def metadata(self) -> Metadata:
        return self.document.metadata or NO_METADATA

    @property
    def spec(self) -> Spec:
        return self.document.spec

    def has_label(self, key: str, value: str) -> bool:
        return (self.metadata.labels or {}).get(key) == value

    @property
    def annotations(self) -> dict[str, str]:
        return {key: value for key, value in (self.metadata.annotations or {}).items() if isinstance(value, str)}

    def says(self, annotation: str) -> bool:
        """Whether the annotation is there and not empty."""
        return bool(self.annotations.get(annotation))

    def asking(self, request: PodRequest) -> Iterator[Asking]:
        """Every container with its part of the pod's request, init containers first as the request has them."""
        groups = (("initContainers", self.spec.init_containers or ()), ("containers", self.spec.containers))
        placed = [(("spec", field, index), one) for field, group in groups for index, one in enumerate(group)]
        for (path, container), wanted in zip(placed, request.containers, strict=True):
            yield Asking(path, container, wanted)


def read_arriving_pod(pod: object, ref: PodRef) -> ArrivingPod:
    try:
        document = msgspec.convert(pod, Document)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"{ref}: {explain_mismatch(error, pod)}") from None
    return ArrivingPod(ref, document)
