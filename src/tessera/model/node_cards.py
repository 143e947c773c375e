"""The cards of a node: from our own inventory, from registers, or from what the kubelet counts.

One broken card never hides the others: a card that nobody could place work on is left out, and told.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tessera.errors import InvalidAnnotation, InvalidQuantity
from tessera.model.annotations import keys
from tessera.model.annotations.registers import RegisterReading, read_register
from tessera.model.annotations.versioned import decode_inventory
from tessera.model.catalogue import Catalogue, Vendor
from tessera.model.devices import Device
from tessera.model.mismatches import show
from tessera.model.quantities import count_of

Amounts = Mapping[str, Any]

MOST_MEMORY_MIB = 2**24
MOST_SLOTS = MOST_CORES_PERCENT = 10_000
MOST_CARDS = 256
_NO_NUMA = -1


def read_cards(
    node: str, annotations: Mapping[str, str], capacity: Amounts, allocatable: Amounts, vendors: Catalogue
) -> RegisterReading:
    """Every card that work can be placed on, and a sentence for each that is left out.

    `capacity` says which cards there are where a vendor has no register, `allocatable` how many of them still work.
    """
    unread = RegisterReading()
    if keys.INVENTORY in annotations:
        where = f"node {node}: {keys.INVENTORY}"
        try:
            return _keep_usable(where, [RegisterReading(decode_inventory(annotations[keys.INVENTORY], where))])
        except InvalidAnnotation as error:
            unread = RegisterReading(complaints=(str(error),))
    return _keep_usable(f"node {node}", [unread, *_read_vendors(node, annotations, capacity, allocatable, vendors)])


def _read_vendors(
    node: str, annotations: Mapping[str, str], capacity: Amounts, allocatable: Amounts, vendors: Catalogue
) -> Iterator[RegisterReading]:
    for vendor in vendors:
        if vendor.annotations.register is None:
            yield _read_capacity(node, vendor, capacity, allocatable)
            continue
        key = next((key for key in vendor.annotations.registers() if annotations.get(key)), None)
        if key is not None:
            counts = vendor.annotations.register_cores
            where = f"node {node}: {key}"
            yield read_register(annotations[key], vendor=vendor.name, where=where, node=node, cores=counts)


def _read_capacity(node: str, vendor: Vendor, capacity: Amounts, allocatable: Amounts) -> RegisterReading:
    """Which of the cards broke nobody says, only how many still work: the last ones count as unhealthy."""
    where = f"node {node}: capacity"
    try:
        count = _count_cards(vendor, {**allocatable, **capacity}, where)
        working = _count_cards(vendor, {**capacity, **allocatable}, f"node {node}: allocatable")
        memory_mib = _memory_of_one(vendor, {**allocatable, **capacity}, count, where)
    except InvalidQuantity as error:
        return RegisterReading(complaints=(str(error),))
    if not count:
        return RegisterReading()
    if count > MOST_CARDS:
        said = f"{where} {vendor.resources.count} is {count}, expected at most {MOST_CARDS} cards on one node"
        return RegisterReading(complaints=(said,))
    if not memory_mib:
        size = vendor.resources.memory or "memory"
        said = (
            f"{where} has {count} cards of {vendor.name} but no {size}, expected their memory; "
            "have its plugin report it or set assumed_memory_mib in the vendor file"
        )
        return RegisterReading(complaints=(said,))
    return RegisterReading(
        tuple(
            Device(
                uuid=vendor.card_id.format(node=node, vendor=vendor.name, index=index, uuid=index),
                index=index,
                vendor=vendor.name,
                model=vendor.name,
                slots=vendor.slots,
                memory_mib=memory_mib,
                healthy=index < working,
            )
            for index in range(count)
        )
    )


def _count_cards(vendor: Vendor, amounts: Amounts, where: str) -> int:
    names = vendor.resources
    if vendor.capacity_counts == "cores" and names.cores and names.cores in amounts:
        return -(-_amount(amounts, names.cores, where) // vendor.cores_per_card)
    return max((_amount(amounts, key, where) for key in names.of_role("count")), default=0)


def _memory_of_one(vendor: Vendor, capacity: Amounts, count: int, where: str) -> int:
    key = vendor.resources.memory
    total = _amount(capacity, key, where) * vendor.memory_unit_mib if key else 0
    return total // count if total and count else vendor.assumed_memory_mib


def _amount(amounts: Amounts, key: str, where: str) -> int:
    value = amounts.get(key, 0)
    try:
        return count_of(value)
    except InvalidQuantity:
        raise InvalidQuantity(f"{where} {key} is {show(value)}, expected a whole number such as 8") from None


def _keep_usable(where: str, readings: Iterable[RegisterReading]) -> RegisterReading:
    kept: dict[str, Device] = {}
    complaints: list[str] = []
    for reading in readings:
        complaints += reading.complaints
        for device in reading.devices:
            problem = _problem_with(device, kept)
            if problem:
                complaints.append(f"{where}: card {device.uuid} is left out: {problem}")
            else:
                kept[device.uuid] = device
    return RegisterReading(tuple(kept.values()), tuple(complaints))


def _problem_with(device: Device, kept: Mapping[str, Device]) -> str:
    if device.uuid in kept:
        first = kept[device.uuid].vendor
        return f"{device.vendor} has the UUID of a card of {first}, expected one that no other card of the node has"
    figures: Sequence[tuple[str, int, int, int, str]] = (
        ("slots", device.slots, 1, MOST_SLOTS, "set how many containers may share it"),
        ("memory", device.memory_mib, 1, MOST_MEMORY_MIB, "set the memory to assume for it, in MiB"),
        ("cores", device.cores_percent, 1, MOST_CORES_PERCENT, "set its cores, 100 for a whole card"),
        ("numa", device.numa, _NO_NUMA, 2**31 - 1, "set -1 for none"),
    )
    for what, value, least, most, advice in figures:
        if not least <= value <= most:
            return f"{what} is {value}, expected {least} to {most}; {advice}"
    return ""
