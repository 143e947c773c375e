"""What kube-scheduler and an extender say to each other.

The wire has Go's field names, capitalised. Go reads them in any case and so do we, because not everybody who speaks the
protocol is kube-scheduler; we write them as Go does.
"""

from typing import Any, TypeVar

import msgspec

from tessera.errors import InvalidRequest

Document = dict[str, Any]
NOT_JSON = (msgspec.DecodeError, UnicodeError, RecursionError)
MAX_SCORE = 1_000
"""kube-scheduler takes any whole number and multiplies it by ten; eleven levels would leave most choices to chance."""
CHOOSE = "/filter?choose"
"""As /filter, but where our scores decide alone only the best node is named: kube-scheduler need not look for it."""


class _Message(msgspec.Struct, frozen=True, kw_only=True, rename="pascal"):
    @property
    def is_complete(self) -> bool:
        """Not so where a field is missing that may have come under another spelling."""
        return True


class _Name(msgspec.Struct, frozen=True):
    name: str = ""


class _NamedNode(msgspec.Struct, frozen=True):
    metadata: _Name | None = None


class _NodeList(msgspec.Struct, frozen=True):
    """Lists of Kubernetes write `items`; what was made from the Go type by hand may write `Items`."""

    items: list[msgspec.Raw] | None = None
    capital: list[msgspec.Raw] | None = msgspec.field(default=None, name="Items")


class ExtenderArgs(_Message, frozen=True, kw_only=True):
    """What filter and prioritize are asked. Names alone travel where the extender keeps its own nodes; ours does."""

    pod: Document
    nodes: _NodeList | None = None
    node_names: list[str] | None = None

    @property
    def is_complete(self) -> bool:
        return self.nodes is not None or self.node_names is not None

    def names(self) -> list[str]:
        return self.node_names if self.node_names is not None else list(self.whole_nodes())

    def whole_nodes(self) -> dict[str, msgspec.Raw]:
        """The nodes themselves by name, as they came, where they did."""
        items = (self.nodes and (self.nodes.items or self.nodes.capital)) or []
        return {_name_of(item): item for item in items}


class BindingArgs(_Message, frozen=True, kw_only=True):
    pod_name: str
    pod_namespace: str
    pod_uid: str = msgspec.field(default="", name="PodUID")
    node: str

    @property
    def is_complete(self) -> bool:
        return bool(self.pod_uid)


class FilterResult(_Message, frozen=True, kw_only=True):
    """A node in none of the lists is dropped without a word, so each is in one.

    Whole nodes go back to whoever sent them.
    """

    nodes: dict[str, list[msgspec.Raw]] | None = None
    node_names: list[str] | None = None
    failed_nodes: dict[str, str] = {}
    failed_and_unresolvable_nodes: dict[str, str] = {}
    error: str = ""


class HostPriority(_Message, frozen=True):
    host: str
    score: int


class BindingResult(_Message, frozen=True, kw_only=True):
    error: str = ""


def _name_of(node: msgspec.Raw) -> str:
    try:
        metadata = msgspec.json.decode(node, type=_NamedNode).metadata
    except NOT_JSON as error:
        raise InvalidRequest(
            f"the body is no ExtenderArgs of kube-scheduler: one of Nodes is no node: {error}"
        ) from None
    return metadata.name if metadata else ""


MessageT = TypeVar("MessageT", bound=_Message)


def read_args(body: bytes, message: type[MessageT]) -> MessageT:
    try:
        args = msgspec.json.decode(body, type=message)
    except msgspec.ValidationError:
        return _read_in_any_case(body, message)
    except NOT_JSON as error:
        raise _refuse(message, error) from None
    return args if args.is_complete else _read_in_any_case(body, message)


def _read_in_any_case(body: bytes, message: type[MessageT]) -> MessageT:
    """Field by field, because Go takes their names in any case."""
    spelled = {field.encode_name.lower(): field.encode_name for field in msgspec.structs.fields(message)}
    try:
        fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        known = {spelled[key.lower()]: value for key, value in fields.items() if key.lower() in spelled}
        return msgspec.json.decode(msgspec.json.encode(known), type=message)
    except NOT_JSON as error:
        raise _refuse(message, error) from None


def _refuse(message: type[_Message], error: Exception) -> InvalidRequest:
    return InvalidRequest(f"the body is no {message.__name__} of kube-scheduler: {error}")
