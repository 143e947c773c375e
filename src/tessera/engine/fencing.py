"""When a scheduler may write, and when its successor may.

A leader holds a lease that it renews. A write it starts may reach the API server up to `write_timeout` later, whatever
has happened to the leader meanwhile. So a leader starts no write that could land after its lease has run out, and a
successor reads the state it decides on only once every write of its predecessor has landed or failed. Clocks may
differ by `clock_skew`; both sides allow for it. A process that comes back under its own name is a successor too: what
it sent before it died may still land.

No wait outlasts a process that is stopped between asking `may_write` and sending. So a binding also carries the
resourceVersion that its pod had before `may_write` was asked, and a new leader rewrites every pod that is not bound yet
before it reads the state: what was decided earlier then meets another version and is refused.
"""

import msgspec


class Fence(msgspec.Struct, frozen=True, kw_only=True):
    """Durations in seconds; the same on every replica."""

    lease_duration: float = 15.0
    write_timeout: float = 5.0
    clock_skew: float = 1.0


class Term(msgspec.Struct, frozen=True, kw_only=True):
    """One holder's time as a leader, as the lease object shows it."""

    holder: str
    acquired_at: float
    renewed_at: float


def may_write(term: Term, holder: str, now: float, fence: Fence) -> bool:
    """Whether this holder may start a write now."""
    return (
        term.holder == holder and now + fence.write_timeout + fence.clock_skew < term.renewed_at + fence.lease_duration
    )


def may_take_over(term: Term, now: float, fence: Fence) -> bool:
    """Whether someone else may acquire the lease now."""
    return now >= term.renewed_at + fence.lease_duration + fence.clock_skew


def may_read_state(previous: Term | None, now: float, fence: Fence) -> bool:
    """Whether the new leader may read the state that it will decide on: nothing older can land any more."""
    if previous is None:
        return True
    return now >= previous.renewed_at + fence.lease_duration + fence.clock_skew
