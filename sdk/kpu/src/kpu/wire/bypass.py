"""The seam for tensors whose bytes go another way than through gRPC, such as the shared memory of one host.

Such a tensor is one chunk without data, whose metadata tells where the bytes lie: there is always a `shared.region`
among them. Each side of a call may have a bypass; without one, or when it answers None, the bytes go as chunks.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kpu.tensors import Taken

InThread = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Does something that may take long beside the event loop."""

REFERENCE = "shared.region"
CLOSED = "the way that a tensor was to go beside gRPC is closed; send the call again without it"
"""What a `BypassClosed` says, word for word: by these details of a FAILED_PRECONDITION a client knows it."""


@dataclass(frozen=True, slots=True)
class Detour:
    """Bytes that lie where the other side can see them: the metadata to tell it so, and how many were copied there."""

    metadata: Mapping[str, str]
    copied_bytes: int


class Bypass(Protocol):
    """One call's use of the other way. `offer` may copy for long and is called in a worker thread."""

    @property
    def path(self) -> str:
        """What the statistics of a transfer call this way."""
        ...

    @property
    def call_metadata(self) -> tuple[tuple[str, str], ...]:
        """What a client's calls carry, so that the server finds its own end of this way."""
        ...

    def offer_at_once(self, taken: Taken) -> Detour | None:
        """As `offer`, but None rather than copy or wait: what is there already can be told about in the event loop."""
        ...

    def may_take(self, taken: Taken) -> bool:
        """Says at once whether `offer` is worth calling."""
        ...

    def offer(self, taken: Taken) -> Detour | None:
        """Put a tensor's bytes where the peer can see them, or None when they had better go as chunks."""
        ...

    def accept(self, metadata: Mapping[str, str], size_bytes: int) -> NDArray[np.uint8]:
        """The bytes that the peer put there. A peer that lies about them gets a MalformedMessage.

        Raises BypassClosed where that way is closed by now.
        """
        ...

    def failed(self) -> None:
        """The call did not end well: what was offered in it may never have been looked at."""
        ...


async def find_detour(bypass: Bypass | None, taken: Taken, in_thread: InThread) -> Detour | None:
    """Offer a tensor to the other way: at once if it lies there already, in a thread if it may have to get there."""
    if bypass is None:
        return None
    detour = bypass.offer_at_once(taken)
    if detour is None and bypass.may_take(taken):
        return await in_thread(partial(bypass.offer, taken))
    return detour
