"""A Compute as the API server shows it, with the names that Kubernetes clients in Python use.

Fields that these classes do not know are kept, so `to_dict` of what `from_dict` made is what the server said.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from datetime import UTC, datetime
from typing import Any, ClassVar, Self

API_VERSION = "compute.kpu.dev/v1alpha1"
KIND = "Compute"


@dataclass(frozen=True, kw_only=True)
class Model:
    """snake_case attributes here, camelCase keys in JSON; what is not known lies in `additional_properties`."""

    additional_properties: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)

    _nested: ClassVar[Mapping[str, Any]] = {}
    """For attributes that are not plain JSON: how they are read."""

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        known = {_camel_case(one.name): one.name for one in fields(cls) if one.name != "additional_properties"}
        values = {known[key]: cls._read(known[key], value) for key, value in document.items() if key in known}
        rest = {key: value for key, value in document.items() if key not in known}
        return cls(**values, additional_properties=rest)

    @classmethod
    def _read(cls, name: str, value: Any) -> Any:
        read = cls._nested.get(name)
        return value if read is None or value is None else read(value)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it, without what is not set."""
        own = {
            _camel_case(one.name): _written(getattr(self, one.name))
            for one in fields(self)
            if one.name != "additional_properties" and _is_set(getattr(self, one.name), one)
        }
        return {**own, **self.additional_properties}


def _is_set(value: Any, of: Field[Any]) -> bool:
    default = of.default_factory() if callable(of.default_factory) else of.default
    return bool(value) or value != default


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _written(value: Any) -> Any:
    match value:
        case Model():
            return value.to_dict()
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case list() | tuple():
            return [_written(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value


def _list_of(model: type[Model]) -> Callable[[Sequence[Mapping[str, Any]]], Sequence[Model]]:
    return lambda documents: [model.from_dict(one) for one in documents]


@dataclass(frozen=True, kw_only=True)
class KpuV1Condition(Model):
    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    last_transition_time: datetime | None = None
    observed_generation: int | None = None

    _nested: ClassVar[Mapping[str, Any]] = {"last_transition_time": datetime.fromisoformat}


@dataclass(frozen=True, kw_only=True)
class KpuV1alpha1Address(Model):
    """Where the server of a Compute can be reached; `type` is Hostname or IPAddress."""

    type: str | None = None
    value: str = ""
    port: int | None = None


@dataclass(frozen=True, kw_only=True)
class KpuV1alpha1ComputeStatus(Model):
    conditions: Sequence[KpuV1Condition] = field(default_factory=list[KpuV1Condition])
    addresses: Sequence[KpuV1alpha1Address] = field(default_factory=list[KpuV1alpha1Address])
    observed_generation: int | None = None

    _nested: ClassVar[Mapping[str, Any]] = {
        "conditions": _list_of(KpuV1Condition),
        "addresses": _list_of(KpuV1alpha1Address),
    }

    def condition(self, of_type: str) -> KpuV1Condition | None:
        return next((one for one in self.conditions if one.type == of_type), None)


@dataclass(frozen=True, kw_only=True)
class KpuV1alpha1ComputeSpec(Model):
    image: str | None = None
    command: Sequence[str] | None = None
    args: Sequence[str] | None = None
    env: Sequence[Mapping[str, Any]] | None = None
    labels: Mapping[str, str] | None = None
    annotations: Mapping[str, str] | None = None
    suspend: bool | None = None
    resources: Mapping[str, Any] | None = None
    tls: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class KpuV1ObjectMeta(Model):
    name: str = ""
    namespace: str = ""
    uid: str | None = None
    generation: int | None = None
    resource_version: str | None = None
    labels: Mapping[str, str] | None = None
    annotations: Mapping[str, str] | None = None
    finalizers: Sequence[str] | None = None
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None

    _nested: ClassVar[Mapping[str, Any]] = {
        "creation_timestamp": datetime.fromisoformat,
        "deletion_timestamp": datetime.fromisoformat,
    }


@dataclass(frozen=True, kw_only=True)
class KpuV1alpha1Compute(Model):
    api_version: str = API_VERSION
    kind: str = KIND
    metadata: KpuV1ObjectMeta = field(default_factory=KpuV1ObjectMeta)
    spec: KpuV1alpha1ComputeSpec = field(default_factory=KpuV1alpha1ComputeSpec)
    status: KpuV1alpha1ComputeStatus | None = None

    _nested: ClassVar[Mapping[str, Any]] = {
        "metadata": KpuV1ObjectMeta.from_dict,
        "spec": KpuV1alpha1ComputeSpec.from_dict,
        "status": KpuV1alpha1ComputeStatus.from_dict,
    }

    def condition(self, of_type: str) -> KpuV1Condition | None:
        return self.status.condition(of_type) if self.status else None
