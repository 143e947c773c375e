"""Cards that do not exist, for laptops, tests and questions of the form "what if we had".

A node is described in a few characters, `8xA100-SXM4-80GB`, or in a file that may say more. Known models come from the
vendor files, so whatever vendor is in the catalogue can be simulated. Same node name, same description, same UUIDs.
"""

import re
import tomllib
import uuid
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tessera.errors import InvalidInventory
from tessera.model.catalogue import Catalogue, Count, Entry, Model, Size, Vendor, Word
from tessera.model.devices import Device, Link, MigProfile
from tessera.model.mismatches import explain_mismatch, show
from tessera.vendors.managers import Inventory

MOST_CARDS = 1024
SAME_NUMA_SCORE, CROSS_NUMA_SCORE = 20, 10

_SHORT = re.compile(r"(?P<count>[1-9]\d{0,3})x(?P<model>[A-Za-z0-9][A-Za-z0-9_.-]*)")
_PROFILE = re.compile(r"(?P<slices>\d)g\.(?P<gib>\d+)gb")
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "simulated.tessera")


class CardGroup(Entry, frozen=True, kw_only=True):
    """Some cards of one model. A model that no vendor file knows needs its vendor and its memory."""

    model: Word
    count: Size = 1
    vendor: str = ""
    memory_mib: Count = 0
    slots: Count = 0
    island_size: Count = 0
    numa_size: Count = 0
    link_score: Count = 0
    bandwidth_gbps: Count = 0
    unhealthy: tuple[Count, ...] = ()


class LinkScore(Entry, frozen=True, kw_only=True):
    """A pair of cards by their position on the node, where it differs from what the models say."""

    one: Count
    other: Count
    score: Count


class NodePlan(Entry, frozen=True, kw_only=True):
    cards: tuple[CardGroup, ...] = ()
    links: tuple[LinkScore, ...] = ()


class SimulatedBackend:
    """Finds one vendor's cards in an inventory made up beforehand."""

    def __init__(self, inventory: Inventory, vendor: Vendor) -> None:
        devices = tuple(device for device in inventory.devices if device.vendor == vendor.name)
        mine = {device.uuid for device in devices}
        links = tuple(link for link in inventory.links if link.one in mine and link.other in mine)
        self._inventory = Inventory(devices, links)

    def read(self) -> Inventory:
        return self._inventory


def parse_plan(text: str) -> NodePlan:
    """A description such as "8xA100-SXM4-80GB", or several with commas between them; empty is a node without cards."""
    groups: list[CardGroup] = []
    for part in (part.strip() for part in text.split(",") if part.strip()):
        match = _SHORT.fullmatch(part)
        if match is None:
            raise InvalidInventory(f'cards is {show(part)}, expected a number and a model such as "8xA100-SXM4-80GB"')
        groups.append(CardGroup(model=match["model"], count=int(match["count"])))
    return NodePlan(cards=tuple(groups))


def load_plan(path: Path) -> NodePlan:
    """A description in a TOML file: `[[cards]]` and, where the models do not say it, `[[links]]`."""
    content: object = None
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        return msgspec.convert(content, NodePlan)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInventory(f"{path}: cannot be read ({error}), expected a description of a node") from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidInventory(f"{path}: is not TOML, expected a description of a node: {error}") from None
    except msgspec.ValidationError as error:
        raise InvalidInventory(f"{path}: {explain_mismatch(error, content)}") from None


def simulate(node: str, plan: NodePlan, catalogue: Catalogue) -> Inventory:
    """The node's cards, of all vendors together; positions count on per vendor, as drivers count."""
    total = sum(group.count for group in plan.cards)
    if total > MOST_CARDS:
        raise InvalidInventory(f"{node}: cards is {total}, expected at most {MOST_CARDS} on one node")
    devices: list[Device] = []
    fast: dict[tuple[int, int], int] = {}
    for number, group in enumerate(plan.cards):
        vendor, model = _find_model(group, catalogue)
        first, seen = len(devices), sum(device.vendor == vendor.name for device in devices)
        devices += _make_cards(node, number, group, vendor, model, seen)
        fast |= _island_scores(first, group.count, model)
    return Inventory(tuple(devices), tuple(_make_links(devices, fast, _said_scores(node, plan, total))))


def _said_scores(node: str, plan: NodePlan, total: int) -> dict[tuple[int, int], int]:
    said: dict[tuple[int, int], int] = {}
    for index, link in enumerate(plan.links):
        if link.one == link.other or max(link.one, link.other) >= total:
            pair = f"{link.one} and {link.other}"
            raise InvalidInventory(f"{node}: links[{index}] is {pair}, expected two of the cards 0 to {total - 1}")
        said[min(link.one, link.other), max(link.one, link.other)] = link.score
    return said


def _find_model(group: CardGroup, catalogue: Catalogue) -> tuple[Vendor, Model]:
    """The known model with what the description says over it, or one that the description says in full."""
    wanted = group.model.lower()
    known = [
        (vendor, model)
        for vendor in catalogue
        for model in vendor.models
        if not group.vendor or vendor.name == group.vendor
    ]
    for vendor, model in known:
        if wanted in (model.name.lower(), model.reported_as.lower()):
            return vendor, _override(model, group)
    vendor = catalogue.by_name(group.vendor)
    if vendor and group.memory_mib:
        return vendor, _override(Model(name=group.model, memory_mib=group.memory_mib), group)
    if group.vendor and not vendor:
        names = ", ".join(vendor.name for vendor in catalogue)
        raise InvalidInventory(f"vendor is {show(group.vendor)}, expected one of {names}")
    names = ", ".join(model.name for _, model in known)
    raise InvalidInventory(
        f"model is {show(group.model)}, expected one of {names}; or a file that gives its vendor and memory_mib"
    )


def _override(model: Model, group: CardGroup) -> Model:
    fields = ("memory_mib", "island_size", "numa_size", "link_score", "bandwidth_gbps")
    said = {field: getattr(group, field) for field in fields}
    return msgspec.structs.replace(model, **{field: value for field, value in said.items() if value})


def _make_cards(node: str, number: int, group: CardGroup, vendor: Vendor, model: Model, seen: int) -> Iterator[Device]:
    is_joined = model.island_size > 1
    for position in range(group.count):
        index = seen + position
        name = uuid.uuid5(_NAMESPACE, f"{node}/{vendor.name}/{index}")
        yield Device(
            uuid=vendor.card_id.format(node=node, vendor=vendor.name, index=index, uuid=name),
            index=index,
            vendor=vendor.name,
            model=model.reported_as or model.name,
            slots=group.slots or vendor.slots,
            memory_mib=model.memory_mib,
            numa=position // model.numa_size if model.numa_size else 0,
            island=f"{vendor.name}-{number}-{position // model.island_size}" if is_joined else "",
            bandwidth_gbps=model.bandwidth_gbps if is_joined else 0,
            healthy=position not in group.unhealthy,
            mig_profiles=tuple(_make_profile(profile, model) for profile in model.mig_profiles),
        )


def _make_profile(name: str, model: Model) -> MigProfile:
    match = _PROFILE.fullmatch(name)
    slices, gib = (int(match["slices"]), int(match["gib"])) if match else (0, 0)
    most = max(int(profile[0]) for profile in model.mig_profiles if profile[0].isdecimal()) if slices else 1
    return MigProfile(
        name=name, memory_mib=min(gib * 1024, model.memory_mib), cores_percent=slices * 100 // most, slices=slices
    )


def _island_scores(first: int, count: int, model: Model) -> dict[tuple[int, int], int]:
    if not model.link_score:
        return {}
    return {
        (first + one, first + other): model.link_score
        for one in range(count)
        for other in range(one + 1, count)
        if one // model.island_size == other // model.island_size
    }


def _make_links(
    devices: list[Device], fast: dict[tuple[int, int], int], said: dict[tuple[int, int], int]
) -> Iterator[Link]:
    """Every pair of one vendor's cards; a fast link adds to the distance, as HAMi sums what lies between two cards."""
    for one, first in enumerate(devices):
        for other in range(one + 1, len(devices)):
            second = devices[other]
            if first.vendor == second.vendor:
                distance = SAME_NUMA_SCORE if first.numa == second.numa else CROSS_NUMA_SCORE
                score = said.get((one, other), fast.get((one, other), 0) + distance)
                yield Link(first.uuid, second.uuid, score)
