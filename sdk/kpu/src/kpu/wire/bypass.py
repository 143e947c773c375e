"""The seam for tensors whose bytes go another way than through gRPC, such as the shared memory of one host.

Such a tensor is one chunk without data, whose metadata tells where the bytes lie. Each side of a call may have a
bypass; without one, or when it answers None, the bytes go as chunks.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kpu.tensors import Taken


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

    def recognises(self, metadata: Mapping[str, str]) -> bool:
        """Whether a first chunk says that its bytes came this way."""
        ...

    def accept(self, metadata: Mapping[str, str], size_bytes: int) -> NDArray[np.uint8]:
        """The bytes that the peer put there. A peer that lies about them gets a MalformedMessage."""
        ...

    def failed(self) -> None:
        """The call did not end well: what was offered in it may never have been looked at."""
        ...
