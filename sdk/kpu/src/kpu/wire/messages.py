"""The three messages of service.proto."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kpu.errors import MalformedMessage
from kpu.wire.fields import (
    add_map_entry,
    as_bytes,
    as_text,
    as_uint32,
    length_header,
    map_field,
    number_field,
    read_fields,
    text_field,
)

MAX_ID_BYTES = 1024


@dataclass(slots=True)
class TensorChunk:
    """One piece of a tensor. `data` views the message that it came in."""

    tensor_id: str = ""
    chunk_number: int = 0
    data: memoryview | bytes = b""
    total_chunks: int = 0
    is_last: bool = False
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])

    def encode(self) -> bytes:
        return self.encode_with(map_field(6, self.metadata))

    def encode_with(self, metadata: bytes) -> bytes:
        """Everything in one join, so that the payload is copied once. `metadata` is encoded already."""
        parts: list[bytes | memoryview] = [
            text_field(1, self.tensor_id),
            number_field(2, self.chunk_number),
            number_field(4, self.total_chunks),
            number_field(5, self.is_last),
            metadata,
        ]
        if len(self.data):
            parts += length_header(3, len(self.data)), self.data
        return b"".join(parts)

    @classmethod
    def decode(cls, message: bytes) -> "TensorChunk":
        chunk = cls()
        metadata: dict[str, str] = {}
        for number, value in read_fields(message):
            match number:
                case 1:
                    chunk.tensor_id = as_text(value)
                case 2:
                    chunk.chunk_number = as_uint32(value)
                case 3:
                    chunk.data = as_bytes(value)
                case 4:
                    chunk.total_chunks = as_uint32(value)
                case 5:
                    chunk.is_last = bool(as_uint32(value))
                case 6:
                    add_map_entry(metadata, value)
                case _:
                    pass
        if len(chunk.tensor_id) > MAX_ID_BYTES:
            raise MalformedMessage(
                f"a tensor_id has {len(chunk.tensor_id)} characters, expected {MAX_ID_BYTES} at most"
            )
        chunk.metadata = metadata
        return chunk


@dataclass(frozen=True, slots=True)
class TensorRequest:
    """How many tensors to make, and how."""

    count: int = 0
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])

    def encode(self) -> bytes:
        return number_field(1, self.count) + map_field(2, self.parameters)

    @classmethod
    def decode(cls, message: bytes) -> "TensorRequest":
        count = 0
        parameters: dict[str, str] = {}
        for number, value in read_fields(message):
            if number == 1:
                count = as_uint32(value)
            elif number == 2:
                add_map_entry(parameters, value)
        return cls(count, parameters)


@dataclass(frozen=True, slots=True)
class TensorResponse:
    """What became of the tensors that were sent."""

    success: bool = False
    message: str = ""
    received_tensor_ids: tuple[str, ...] = ()

    def encode(self) -> bytes:
        # An empty id is an element like any other, so it is written even though proto3 leaves out empty scalars.
        ids = [tensor_id.encode() for tensor_id in self.received_tensor_ids]
        listed = b"".join(length_header(3, len(encoded)) + encoded for encoded in ids)
        return number_field(1, self.success) + text_field(2, self.message) + listed

    @classmethod
    def decode(cls, message: bytes) -> "TensorResponse":
        success, text = False, ""
        ids: list[str] = []
        for number, value in read_fields(message):
            if number == 1:
                success = bool(as_uint32(value))
            elif number == 2:
                text = as_text(value)
            elif number == 3:
                ids.append(as_text(value))
        return cls(success, text, tuple(ids))
