"""Whether a card can be given to anybody: what faults mean, and how long a card must be quiet after one.

NVIDIA's driver tells faults as numbered XIDs. Many are the fault of a program and say nothing about the card; some go
away by themselves; some need the card to be reset. A card that faults again and again is trusted again later each time,
so that pods are not sent to it in turns.
"""

from enum import StrEnum

import msgspec

from tessera.model.devices import Device

LOST = "does not answer, or its driver calls it unusable"


class Severity(StrEnum):
    PROGRAM = "program"  # a program's own fault
    PASSING = "passing"  # the card is usable again once it has been quiet
    RESET = "reset"  # the card must be reset first


# From NVIDIA's public XID catalogue; what is not listed counts as passing.
XIDS: dict[int, tuple[Severity, str]] = {
    8: (Severity.PROGRAM, "a kernel ran too long"),
    13: (Severity.PROGRAM, "graphics engine exception"),
    31: (Severity.PROGRAM, "memory page fault"),
    32: (Severity.PASSING, "invalid push buffer"),
    43: (Severity.PROGRAM, "a program was stopped"),
    45: (Severity.PROGRAM, "a program's channels were removed"),
    46: (Severity.RESET, "the card stopped processing"),
    48: (Severity.RESET, "double-bit memory error"),
    62: (Severity.RESET, "internal micro-controller halt"),
    63: (Severity.PASSING, "memory row remapped"),
    64: (Severity.RESET, "memory row could not be remapped"),
    68: (Severity.PROGRAM, "video processor exception"),
    74: (Severity.RESET, "NVLink error"),
    79: (Severity.RESET, "the card has fallen off the bus"),
    92: (Severity.PASSING, "high rate of single-bit memory errors"),
    94: (Severity.PASSING, "contained memory error"),
    95: (Severity.RESET, "uncontained memory error"),
    109: (Severity.PROGRAM, "context switch timeout"),
    119: (Severity.RESET, "the card's firmware does not answer"),
    120: (Severity.RESET, "the card's firmware failed"),
    140: (Severity.RESET, "unrecovered memory error"),
}


class Damping(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds. What happened within `memory_s` counts; each time the wait doubles, from `first_s` to `most_s`."""

    first_s: float = 30.0
    most_s: float = 3600.0
    memory_s: float = 6 * 3600.0

    def quiet_s(self, times: int) -> float:
        return min(self.first_s * 2.0 ** min(times - 1, 60), self.most_s) if times else 0.0


class _Fault(msgspec.Struct, frozen=True):
    at_s: float
    number: int
    title: str


class _Record:
    """What is held against one card."""

    __slots__ = ("awaits_reset", "faults", "is_lost", "losses")

    def __init__(self) -> None:
        self.faults: list[_Fault] = []
        self.losses: list[float] = []
        self.awaits_reset: _Fault | None = None
        self.is_lost = False

    def forget(self, before_s: float) -> None:
        self.faults = [fault for fault in self.faults if fault.at_s >= before_s]
        self.losses = [at_s for at_s in self.losses if at_s >= before_s]


class Health:
    """Judges cards. One that its driver calls unusable, or that does not answer, is lost whatever else is known.

    A card that comes back counts as reset. It is trusted at once the first time, later each time after that.
    """

    def __init__(self, damping: Damping | None = None, *, ignored: frozenset[int] = frozenset()) -> None:
        self._damping = damping or Damping()
        self._ignored = ignored
        self._records: dict[str, _Record] = {}

    def note(self, uuid: str, number: int, now_s: float) -> None:
        """The driver has told of a fault."""
        severity, title = XIDS.get(number, (Severity.PASSING, "a fault that is not in the list"))
        if number in self._ignored or severity is Severity.PROGRAM:
            return
        record, fault = self._records.setdefault(uuid, _Record()), _Fault(now_s, number, title)
        if record.faults and now_s - record.faults[-1].at_s < self._damping.first_s:
            record.faults[-1] = fault  # what comes together counts once
        else:
            record.faults.append(fault)
        if severity is Severity.RESET:
            record.awaits_reset = fault

    def why_unhealthy(self, device: Device, now_s: float) -> str:
        """Why the card may not be used, or nothing."""
        record = self._records.setdefault(device.uuid, _Record())
        record.forget(now_s - self._damping.memory_s)
        if not device.healthy:
            if not record.is_lost:
                record.is_lost = True
                record.losses.append(now_s)
            return LOST
        if record.is_lost:
            record.is_lost, record.awaits_reset = False, None
            record.losses[-1:] = [now_s]
        return self._why_distrusted(record, now_s)

    def _why_distrusted(self, record: _Record, now_s: float) -> str:
        if record.awaits_reset is not None:
            fault = record.awaits_reset
            return f"XID {fault.number}, {fault.title}; the card must be reset"
        quiet_s = self._damping.quiet_s(len(record.faults))
        if record.faults and now_s - record.faults[-1].at_s < quiet_s:
            fault = record.faults[-1]
            return f"XID {fault.number}, {fault.title}; trusted again after {quiet_s:.0f} quiet seconds"
        quiet_s = self._damping.quiet_s(len(record.losses) - 1)
        if record.losses and now_s - record.losses[-1] < quiet_s:
            return f"came back {len(record.losses)} times lately; trusted again after {quiet_s:.0f} quiet seconds"
        return ""
