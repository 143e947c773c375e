"""Shared memory as the wire sees it: one chunk without data, whose metadata tells the region and the place in it.

| Metadata | Means |
|---|---|
| shared.region, shared.offset | which region, and from which byte on |
| shared.given: true | it is a copy made for the receiver, who may give it back |
| shared.returned: true | the region is the receiver's own: it gets back, perhaps changed, what it had given |
"""

import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass

from kpu.errors import MalformedMessage
from kpu.sharing.greeting import SESSION_KEY
from kpu.sharing.lender import Handover
from kpu.sharing.link import Link
from kpu.sharing.located import locate
from kpu.sharing.mappings import Bytes
from kpu.sharing.regions import PAGE
from kpu.tensors import Taken, item_bytes
from kpu.tensors.dtypes import dtype_name
from kpu.wire.bypass import REFERENCE, Detour

PATH = "shared-memory"
REGION, OFFSET, GIVEN, RETURNED = REFERENCE, "shared.offset", "shared.given", "shared.returned"
TRUE = "true"
LONGEST_NUMBER = 20


@dataclass(frozen=True)
class _Span:
    """Where bytes lie in this process."""

    address: int
    nbytes: int


@dataclass(frozen=True)
class _Given:
    """A copy that was made for us; as long as its view lives, nothing else lies there."""

    view: weakref.ref[Bytes]
    region: int
    offset: int


class SharedMemory:
    """One call's use of a link. What comes in the call and goes back in it is not copied, but given back."""

    path = PATH
    avoids_pinning = False
    """Whether to copy a small part of a region rather than keep all of it in memory for as long as the part lives."""

    def __init__(self, link: Link, session: str) -> None:
        self.call_metadata = ((SESSION_KEY, session),)
        self._link = link
        self._offered: list[Handover] = []
        self._lock, self._over = threading.Lock(), False
        self._given: dict[_Span, _Given] = {}

    def offer_at_once(self, taken: Taken) -> Detour | None:
        """What came in this call goes back without a copy, and so goes what lies in shared memory already."""
        if taken.on_host is None:
            return None
        given = self._given.get(_span(taken.on_host))
        if given and given.view() is not None:
            self._link.give_back(given.region)
            return Detour({**_place(given.region, given.offset), RETURNED: TRUE}, 0)
        return None if _lies_askew(taken) else self._told(self._link.lend_at_once(taken.raw))

    def may_take(self, taken: Taken) -> bool:
        """Says at once whether `offer`, which may take long, is worth calling."""
        if taken.on_host is None:
            return self._link.may_lend_written(taken.size_bytes)
        return self._link.may_lend(taken.on_host) and not _lies_askew(taken)

    def offer(self, taken: Taken) -> Detour | None:
        """What has to be fetched is fetched to shared memory, and lies nowhere else meanwhile."""
        if taken.on_host is None:
            return self._told(self._link.lend_written(taken.size_bytes, taken.fetch_into))
        return self._told(self._link.lend(taken.on_host))

    def _told(self, handover: Handover | None) -> Detour | None:
        if handover is None:
            return None
        with self._lock:
            self._offered.append(handover)
            if self._over:
                self._write_off()
                return None
        terms = {GIVEN: TRUE} if handover.copied else {}
        return Detour({**_place(handover.region, handover.offset), **terms}, handover.copied)

    def accept(self, metadata: Mapping[str, str], size_bytes: int) -> Bytes:
        """The bytes themselves, writable; the sender has its region back when the last tensor there is gone."""
        region, offset = _number(metadata, REGION), _number(metadata, OFFSET)
        item = item_bytes(dtype_name(metadata["dtype"]))
        if offset % item:
            raise MalformedMessage(f'{OFFSET} is "{offset}", expected a multiple of the {item} bytes of an element')
        if metadata.get(RETURNED) == TRUE:
            return self._link.get_back(region, offset, size_bytes)
        view = self._link.borrow(region, offset, size_bytes)
        if self.avoids_pinning and self._link.borrowed_size(region) > max(2 * size_bytes, PAGE):
            return view.copy()
        if metadata.get(GIVEN) == TRUE:
            self._given[_span(view)] = _Given(weakref.ref(view), region, offset)
        return view

    def failed(self) -> None:
        """The call did not end well: what was offered in it may or may not be in use, so it is not used again."""
        with self._lock:
            self._over = True
            self._write_off()

    def _write_off(self) -> None:
        for handover in self._offered:
            self._link.write_off(handover)
        self._offered.clear()


def _span(raw: Bytes) -> _Span:
    return _Span(raw.ctypes.data, raw.nbytes)


def _lies_askew(taken: Taken) -> bool:
    """Whether it lies in a region already, but between the places where its elements could begin."""
    is_askew = taken.raw.ctypes.data % item_bytes(taken.description.dtype) != 0
    return is_askew and locate(taken.raw) is not None


def _place(region: int, offset: int) -> dict[str, str]:
    return {REGION: str(region), OFFSET: str(offset)}


def _number(metadata: Mapping[str, str], key: str) -> int:
    text = metadata.get(key, "")
    if not (text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER):
        raise MalformedMessage(f'{key} is "{text[:32]}", expected a whole number')
    return int(text)
