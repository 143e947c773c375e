"""A tensor is cut into chunks, one at a time, so that no more than one of them is in memory beside the tensor."""

from collections.abc import Iterator, Mapping
from functools import lru_cache

from kpu.tensors import Description, Taken
from kpu.wire.bypass import InThread
from kpu.wire.fields import map_field
from kpu.wire.messages import TensorChunk

# Bigger chunks fall out of the processor's cache, smaller ones cost more calls than they save.
CHUNK_BYTES = 1 << 20
SMALLEST_CHUNK_BYTES = 1 << 10
# Receivers that are not ours take 4 MiB by default, ours this much and a header.
LARGEST_CHUNK_BYTES = 16 << 20
LARGEST_MESSAGE_BYTES = LARGEST_CHUNK_BYTES + (1 << 20)


async def bring_to_host(taken: Taken, in_thread: InThread) -> None:
    """Before a tensor is split: what has to be fetched is fetched beside the event loop."""
    if taken.on_host is None and taken.size_bytes:
        await in_thread(lambda: taken.raw)


def split(tensor_id: str, taken: Taken, chunk_bytes: int) -> Iterator[bytes]:
    """The encoded chunks of a tensor. An empty one still takes a chunk, to tell its shape."""
    data = taken.view
    total = max(1, -(-len(data) // chunk_bytes))
    for number in range(total):
        start = number * chunk_bytes
        yield TensorChunk(
            tensor_id=tensor_id,
            chunk_number=number,
            data=data[start : start + chunk_bytes],
            total_chunks=total,
            is_last=number == total - 1,
        ).encode_with(b"" if number else _encoded(taken.description))


def refer(tensor_id: str, taken: Taken, where: Mapping[str, str]) -> bytes:
    """The one chunk of a tensor whose bytes go another way: `where` tells the receiver how to find them."""
    metadata = {**taken.description.metadata(), **where}
    return TensorChunk(tensor_id=tensor_id, total_chunks=1, is_last=True, metadata=metadata).encode()


@lru_cache(maxsize=1024)
def _encoded(description: Description) -> bytes:
    return map_field(6, description.metadata())
