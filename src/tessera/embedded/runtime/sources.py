"""What a pod needs from elsewhere, and is handed by whoever runs the runtime: the app knows who has it."""

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from tessera.embedded.documents import Frozen
from tessera.embedded.runtime.namespaces import Shown


class Sources(Protocol):
    """Objects of the pod's namespace; None for one that is not there."""

    async def config_map(self, namespace: str, name: str) -> Frozen | None: ...

    async def secret(self, namespace: str, name: str) -> Frozen | None: ...

    async def token(self, pod: Frozen, audience: str, expires_s: int) -> str:
        """A token of the pod's ServiceAccount, bound to the pod."""
        ...


class Additions(msgspec.Struct, frozen=True, kw_only=True):
    """What a container is given besides what its pod says. Device files are this machine's own and are seen anyway."""

    environment: dict[str, str] = {}
    mounts: tuple[Shown, ...] = ()
    device_paths: tuple[str, ...] = ()


class Prepare(Protocol):
    """Called when a container is about to start, each time. StartRefused, if it must not, or not yet."""

    async def __call__(self, pod: Frozen, container: str) -> Additions: ...


async def add_nothing(pod: Frozen, container: str) -> Additions:  # noqa: ARG001
    return Additions()


class Event(msgspec.Struct, frozen=True):
    level: str
    reason: str
    message: str


Tell = Callable[[Event], None]
Names = Callable[[str], Sequence[tuple[str, str]]]
"""Addresses and the names they have in the cluster for pods of a namespace, as /etc/hosts lists them."""
