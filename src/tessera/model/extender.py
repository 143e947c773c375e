"""What kube-scheduler and an extender say to each other.

The wire has Go's field names, capitalised. Go reads them in any case and so do we, because not everybody who speaks the
protocol is kube-scheduler; we write them as Go does.
"""

from typing import Any, TypeVar

import msgspec

from tessera.errors import InvalidRequest

Document = dict[str, Any]
MAX_SCORE = 1_000
"""kube-scheduler takes any whole number and multiplies it by ten; eleven levels would leave most choices to chance."""


class _Message(msgspec.Struct, frozen=True, kw_only=True, rename="pascal"):
    pass


class _Name(msgspec.Struct, frozen=True):
    name: str = ""


class _NamedNode(msgspec.Struct, frozen=True):
    metadata: _Name = _Name()


class _NodeList(msgspec.Struct, frozen=True):
    items: list[_NamedNode] | None = None


class ExtenderArgs(_Message, frozen=True, kw_only=True):
    """What filter and prioritize are asked. Names alone travel where the extender keeps its own nodes; ours does."""

    pod: Document
    nodes: _NodeList | None = None
    node_names: list[str] | None = None

    def names(self) -> list[str]:
        if self.node_names is not None:
            return self.node_names
        return [node.metadata.name for node in (self.nodes and self.nodes.items) or []]


class BindingArgs(_Message, frozen=True, kw_only=True):
    pod_name: str
    pod_namespace: str
    pod_uid: str = msgspec.field(default="", name="PodUID")
    node: str


class FilterResult(_Message, frozen=True, kw_only=True):
    """A node in none of the lists is dropped without a word, so each is in one."""

    node_names: list[str] | None = None
    failed_nodes: dict[str, str] = {}
    failed_and_unresolvable_nodes: dict[str, str] = {}
    error: str = ""


class HostPriority(_Message, frozen=True, kw_only=True):
    host: str
    score: int


class BindingResult(_Message, frozen=True, kw_only=True):
    error: str = ""


MessageT = TypeVar("MessageT", bound=_Message)


def read_args(body: bytes, message: type[MessageT]) -> MessageT:
    try:
        return msgspec.json.decode(body, type=message)
    except msgspec.ValidationError:
        return _read_in_any_case(body, message)
    except msgspec.DecodeError as error:
        raise InvalidRequest(f"the body is not JSON: {error}; expected {message.__name__} of kube-scheduler") from None


def _read_in_any_case(body: bytes, message: type[MessageT]) -> MessageT:
    spelled = {field.encode_name.lower(): field.encode_name for field in msgspec.structs.fields(message)}
    try:
        document = msgspec.json.decode(body, type=Document)
        return msgspec.convert({spelled.get(key.lower(), key): said for key, said in document.items()}, message)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"the body is no {message.__name__}: {error}") from None
