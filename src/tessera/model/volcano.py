"""What Volcano's extender plugin and an extender say to each other.

Volcano sends its own view of a task and of nodes, which is large: a node comes with everything that runs on it. We read
the pod, the names, and for what has been allocated the node. Task and node have Go's field names, replies their own.
"""

from typing import Any, TypeVar

import msgspec

from tessera.errors import InvalidRequest

Document = dict[str, Any]


class Task(msgspec.Struct, frozen=True, kw_only=True, rename="pascal"):
    """`node_name` is where the task goes, once that is decided."""

    pod: Document
    node_name: str = ""


class NodeInfo(msgspec.Struct, frozen=True, kw_only=True, rename="pascal"):
    name: str


class PredicateRequest(msgspec.Struct, frozen=True, kw_only=True):
    task: Task
    node: NodeInfo


class PredicateResponse(msgspec.Struct, frozen=True, kw_only=True):
    """`status` is empty where the task fits; `code` is one of kube-scheduler's, as Volcano counts them."""

    status: str = ""
    code: int = 0


class PrioritizeRequest(msgspec.Struct, frozen=True, kw_only=True):
    task: Task
    nodes: list[NodeInfo]


class PrioritizeResponse(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    node_score: dict[str, float] | None = None
    error_message: str = ""


class EventRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A task was put on a node in this session, or taken off it again."""

    task: Task


class EventResponse(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    error_message: str = ""


SUCCESS, ERROR, UNSCHEDULABLE = 0, 1, 2
MessageT = TypeVar("MessageT", bound=msgspec.Struct)


def read_message(body: bytes, message: type[MessageT]) -> MessageT:
    try:
        return msgspec.json.decode(body, type=message)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise InvalidRequest(f"the body is no {message.__name__} of Volcano: {error}") from None
