"""What cards do at this moment, as their driver tells it."""

import msgspec


class CardUsage(msgspec.Struct, frozen=True, kw_only=True):
    """`busy_percent` is None where the driver does not tell."""

    memory_used_mib: int
    busy_percent: int | None = None


class CardProcess(msgspec.Struct, frozen=True):
    """A process that computes on a card, by its number on the node, and the memory that it has there."""

    pid: int
    memory_bytes: int


class Fault(msgspec.Struct, frozen=True):
    """Something went wrong on a card; `number` is what the driver calls it, an XID."""

    uuid: str
    number: int
