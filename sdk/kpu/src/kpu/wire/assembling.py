"""Chunks become tensors. They may come interleaved and, where they are of one length, in any order.

A header is judged whole before room is made: its limits, its shape against its size, its count of chunks against
both. Chunks land at their place in the tensor's own memory. Whatever contradicts what was said before ends the call.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpu.errors import BypassClosed, MalformedMessage
from kpu.tensors import Description, give, make_room
from kpu.wire.bypass import CLOSED, REFERENCE, Bypass, InThread
from kpu.wire.limits import Limits
from kpu.wire.messages import TensorChunk

# Chunks that overtook the first one of their tensor wait for it, but not without bound.
EARLY_CHUNKS_LIMIT = 64
EARLY_BYTES_LIMIT = 32 << 20
# What takes longer than handing it to a thread does.
WORTH_A_THREAD_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Assembled:
    """A tensor that came whole: its description, the memory it lies in, and whether that came by the bypass."""

    tensor_id: str
    description: Description
    raw: NDArray[np.uint8]
    bypassed: bool

    def tensor(self) -> Any:
        return give(self.description, self.raw)

    async def materialised(self, in_thread: InThread) -> Any:
        """As `tensor`, in a thread where that takes long: what goes to a device is copied there."""
        if self.description.device == "cpu" or self.raw.nbytes < WORTH_A_THREAD_BYTES:
            return self.tensor()
        return await in_thread(self.tensor)


@dataclass(slots=True)
class _Opened:
    """A tensor some of whose chunks have come."""

    tensor_id: str
    description: Description
    raw: NDArray[np.uint8]
    total_chunks: int
    stride: int
    next_number: int = 0
    filled: int = 0
    arrived: bytearray | None = None

    def put(self, chunk: TensorChunk) -> bool:
        """Copy a chunk to its place; True when it was the last one missing."""
        number, length = chunk.chunk_number, len(chunk.data)
        self._check_totals(chunk)
        if number == self.next_number and self.arrived is None:
            start = self.filled
        else:
            self._arrive_out_of_order(number)
            start = number * self.stride
        if start + length > self.raw.size:
            raise self._contradiction(f"chunk {number} ends at byte {start + length} of {self.raw.size}")
        if self.arrived is not None and length != self._expected_length(number):
            raise self._contradiction(f"chunk {number} has {length} bytes, expected {self._expected_length(number)}")
        self.raw.data[start : start + length] = chunk.data
        self.next_number += 1
        self.filled += length
        return self._is_whole(chunk)

    def _check_totals(self, chunk: TensorChunk) -> None:
        number, total = chunk.chunk_number, self.total_chunks
        if chunk.total_chunks not in (0, total):
            raise self._contradiction(f"chunk {number} says total_chunks is {chunk.total_chunks}, chunk 0 said {total}")
        if total and number >= total:
            raise self._contradiction(f"chunk {number} is beyond its {total} chunks")
        if total and chunk.is_last and number != total - 1:
            raise self._contradiction(f"chunk {number} of {total} says that it is the last")

    def _arrive_out_of_order(self, number: int) -> None:
        """From here on places follow from the length that all chunks but the last must have."""
        if self.arrived is None:
            if self.filled != min(self.next_number * self.stride, self.raw.size) or not self._may_be_out_of_order():
                raise self._contradiction(
                    f"chunk {number} came when {self.next_number} was next; out of order, chunks must be of one "
                    "length, not tiny, and total_chunks must be told"
                )
            self.arrived = bytearray(self.total_chunks)
            self.arrived[: self.next_number] = b"\1" * self.next_number
        if self.arrived[number]:
            raise self._contradiction(f"chunk {number} came twice")
        self.arrived[number] = 1

    def _may_be_out_of_order(self) -> bool:
        """The book of what has arrived takes a byte a chunk: not for a tensor that was cut to dust."""
        return 0 < self.total_chunks <= max(EARLY_CHUNKS_LIMIT**2, self.raw.size // 64)

    def _expected_length(self, number: int) -> int:
        return max(0, min(self.stride, self.raw.size - number * self.stride))

    def _is_whole(self, chunk: TensorChunk) -> bool:
        ended = self.next_number == self.total_chunks if self.total_chunks else chunk.is_last
        if ended and self.filled != self.raw.size:
            raise self._contradiction(f"its chunks have {self.filled} bytes, its header said {self.raw.size}")
        return ended

    def _contradiction(self, what: str) -> MalformedMessage:
        return MalformedMessage(f'tensor "{self.tensor_id[:64]}": {what}')


@dataclass
class Assembler:
    """Of one call. Its user asks `announces` and `needs_bytes` first, and can so reserve what `add` will set aside.

    `early_bytes` are those of chunks that wait for the first one of their tensor. They are held as copies: a chunk as
    it came would keep all of its message in memory.
    """

    limits: Limits
    bypass: Bypass | None = None
    room: Callable[[Description], NDArray[np.uint8]] = make_room
    early_bytes: int = 0
    _opened: dict[str, _Opened] = field(default_factory=dict[str, _Opened])
    _early: dict[str, list[TensorChunk]] = field(default_factory=dict[str, list[TensorChunk]])

    def announces(self, chunk: TensorChunk) -> Description | None:
        """What a first chunk says of its tensor, judged by the limits; None for any other chunk."""
        if chunk.chunk_number or chunk.tensor_id in self._opened:
            return None
        others = len(self._opened) + len(self._early) - (chunk.tensor_id in self._early)
        if others >= self.limits.open_tensors:
            raise MalformedMessage(f"more than {self.limits.open_tensors} tensors of one call are under way at once")
        description = Description.read(chunk.metadata)
        self.limits.check(description)
        _check_count(chunk, description)
        return description

    def needs_bytes(self, chunk: TensorChunk, description: Description | None) -> int:
        """What `add` will set aside: for a tensor that is announced, or for a chunk that came before its first."""
        if description is not None:
            return description.size_bytes
        return 0 if chunk.tensor_id in self._opened else len(chunk.data)

    def add(self, chunk: TensorChunk, description: Description | None) -> Assembled | None:
        """Take a chunk in; the tensor when it is whole. `description` is what `announces` said of this chunk."""
        if description is None:
            return self._continue(chunk)
        if REFERENCE in chunk.metadata:
            if self.bypass is None:
                raise BypassClosed(CLOSED)
            raw = self.bypass.accept(chunk.metadata, description.size_bytes)
            return Assembled(chunk.tensor_id, description, raw, bypassed=True)
        raw = self.room(description)
        opened = _Opened(chunk.tensor_id, description, raw, chunk.total_chunks, len(chunk.data))
        early = self._early.pop(chunk.tensor_id, [])
        self.early_bytes -= sum(len(each.data) for each in early)
        self._opened[chunk.tensor_id] = opened
        whole = [self._put(opened, each) for each in (chunk, *early)]
        return next((assembled for assembled in whole if assembled), None)

    def finish(self) -> None:
        """The call has ended: nothing may be half there."""
        for tensor_id in (*self._opened, *self._early):
            raise MalformedMessage(f'tensor "{tensor_id[:64]}": the stream ended before all of its chunks had come')

    def _continue(self, chunk: TensorChunk) -> Assembled | None:
        opened = self._opened.get(chunk.tensor_id)
        if opened is not None:
            return self._put(opened, chunk)
        waiting = sum(map(len, self._early.values()))
        if waiting >= EARLY_CHUNKS_LIMIT or self.early_bytes + len(chunk.data) > EARLY_BYTES_LIMIT:
            raise MalformedMessage(
                f'tensor "{chunk.tensor_id[:64]}": chunk {chunk.chunk_number} came before chunk 0, and '
                f"{waiting} chunks of {self.early_bytes} bytes wait for theirs already"
            )
        copied = TensorChunk(chunk.tensor_id, chunk.chunk_number, bytes(chunk.data), chunk.total_chunks, chunk.is_last)
        self._early.setdefault(chunk.tensor_id, []).append(copied)
        self.early_bytes += len(copied.data)
        return None

    def _put(self, opened: _Opened, chunk: TensorChunk) -> Assembled | None:
        if not opened.put(chunk):
            return None
        self._opened.pop(opened.tensor_id, None)
        return Assembled(opened.tensor_id, opened.description, opened.raw, bypassed=False)


def _check_count(chunk: TensorChunk, description: Description) -> None:
    size, total, length = description.size_bytes, chunk.total_chunks, len(chunk.data)
    if total > max(1, size):
        raise MalformedMessage(f'tensor "{chunk.tensor_id[:64]}": {total} chunks for {size} bytes are too many')
    if length > size:
        raise MalformedMessage(f'tensor "{chunk.tensor_id[:64]}": chunk 0 has {length} bytes, its header said {size}')
