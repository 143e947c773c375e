"""How a container is held to its limits: what it may choose by its variables, within what the node permits.

The words are HAMi's. A word that cannot be read is refused before the container starts, because whoever wrote it
believes that it holds.
"""

from collections.abc import Mapping
from typing import cast

import msgspec

from tessera.errors import InvalidRequest
from tessera.model.catalogue import TermVariables
from tessera.model.cores_policy import POLICIES, CoresPolicy
from tessera.node.pods import Container

MOST_DIGITS, MOST_SHOWN = 6, 40
SWITCH: Mapping[str, bool] = {"true": True, "1": True, "on": True, "false": False, "0": False, "off": False, "": False}


class Permitted(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator has chosen for a node: the policy of containers that name none, and how much of its memory a
    container may have again in the host's.
    """

    cores_policy: CoresPolicy = "force"
    spill_percent: int = 0


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """Priority 0 is the highest. `spill_percent` is of the container's memory, on top of it and in the host's."""

    cores_policy: CoresPolicy = "force"
    priority: int = 0
    spill_percent: int = 0
    ends_on_refusal: bool = False


STRICT = Terms()
NOTHING_MORE = Permitted()


def read_terms(container: Container, names: TermVariables, permitted: Permitted, priority: int = 0) -> Terms:
    """`priority` is what the container asks for as a resource, which goes before its variable."""
    policy = (container.variable(names.cores_policy) or permitted.cores_policy).strip().lower()
    if policy not in POLICIES:
        raise _unreadable(container, names.cores_policy, policy, f"one of {', '.join(POLICIES)}")
    return Terms(
        cores_policy=cast("CoresPolicy", policy),
        priority=priority or _read_priority(container, names.priority),
        spill_percent=permitted.spill_percent if _is_on(container, names.spill, unsaid=True) else 0,
        ends_on_refusal=_is_on(container, names.end_on_refusal, unsaid=False),
    )


def _read_priority(container: Container, name: str) -> int:
    said = (container.variable(name) or "0").strip()
    if not said.isdecimal() or len(said) > MOST_DIGITS:
        raise _unreadable(container, name, said, 'a whole number such as "1", of six digits at most')
    return int(said)


def _is_on(container: Container, name: str, *, unsaid: bool) -> bool:
    said = container.variable(name)
    if said is None:
        return unsaid
    if said.strip().lower() not in SWITCH:
        raise _unreadable(container, name, said, "true or false")
    return SWITCH[said.strip().lower()]


def _unreadable(container: Container, name: str, said: str, expected: str) -> InvalidRequest:
    shown = said if len(said) <= MOST_SHOWN else f"{said[:MOST_SHOWN]}…"
    return InvalidRequest(f'container {container.name} has {name} "{shown}", expected {expected}; correct the pod')
