"""Pinned memory, with a driver that only notes what it is asked."""

# ruff: noqa: N802 - the driver names its entries so

import ctypes
import gc

import numpy as np
import pytest

from kpu.sharing.regions import make_region
from kpu.tensors.pinning import LEAST_BYTES, Pinning, mapping_of

CONTEXT = 7


class NotingDriver:
    """Has a current context, and does as it is told unless it is to refuse."""

    def __init__(self, refuses: bool = False, context: int | None = CONTEXT) -> None:
        self.calls: list[tuple] = []
        self._refuses, self._context = refuses, context

    def cuCtxGetCurrent(self, context):
        context._obj.value = self._context
        return 0

    def cuMemHostRegister_v2(self, address, size, flags):
        del flags
        self.calls.append(("pin", address.value, size.value))
        return int(self._refuses)

    def cuMemHostUnregister(self, address):
        self.calls.append(("unpin", address.value))
        return 0

    def cuCtxPushCurrent_v2(self, context):
        self.calls.append(("enter", context.value))
        return 0

    def cuCtxPopCurrent_v2(self, context):
        del context
        self.calls.append(("leave",))
        return 0


def test_a_region_is_pinned_once_and_as_a_whole():
    driver, region = NotingDriver(), make_region(2 * LEAST_BYTES)
    pinning = Pinning(driver)
    assert pinning.pin(region.memory[:LEAST_BYTES])
    assert pinning.pin(region.memory)
    assert driver.calls == [("pin", region.memory.ctypes.data, region.size)]


def test_it_is_unpinned_in_its_context_before_it_is_unmapped():
    driver, region = NotingDriver(), make_region(LEAST_BYTES)
    Pinning(driver).pin(region.memory)
    address = region.memory.ctypes.data
    del region
    gc.collect()
    assert driver.calls[1:] == [("enter", CONTEXT), ("unpin", address), ("leave",)]


@pytest.mark.parametrize("driver", [NotingDriver(refuses=True), NotingDriver(context=None)])
def test_what_cannot_be_pinned_stays_ordinary_memory(driver):
    region = make_region(LEAST_BYTES)
    assert not Pinning(driver).pin(region.memory)
    del region
    gc.collect()
    assert ("unpin",) not in [call[:1] for call in driver.calls]


def test_only_mappings_are_pinned_and_only_large_ones():
    driver = NotingDriver()
    pinning = Pinning(driver)
    assert not pinning.pin(np.empty(LEAST_BYTES, np.uint8))
    assert not pinning.pin(make_region(4096).memory)
    assert driver.calls == []


def test_a_mapping_is_found_through_views_of_views():
    region = make_region(8192)
    view = np.frombuffer(region.memory[4096:].data, np.uint8)[10:20]
    mapping = mapping_of(view)
    assert mapping is not None
    assert ctypes.addressof(mapping) == region.memory.ctypes.data
