"""Cards, pods and quotas under the names that HAMi's dashboards and alerts ask for, new and old.

A cluster of 5,000 nodes with eight cards each has half a million lines, over which the client library would sit for
many seconds. So they are made by filling in templates, a slice at a time, and others get their turn between two slices.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from math import ceil
from operator import itemgetter
from typing import Any, TypeVar

from tessera.engine.fleet import Fleet
from tessera.engine.ledger import Holding
from tessera.errors import InvalidInput
from tessera.kube.pods import Pod
from tessera.model.annotations.keys import MIG_ALLOCATIONS
from tessera.model.annotations.mig import decode_mig_allocations
from tessera.model.catalogue import ResourceRole
from tessera.model.requests import Role
from tessera.scheduler.hami_names import CARDS, QUOTAS, SHARES, SLICES, Table
from tessera.scheduler.world import World

MIB = 2**20
SLICE = 1000
NODES_AT_ONCE = 100
ZONE = 'zone="vGPU"'
Row = tuple[Any, ...]
T = TypeVar("T")
NO_NAMES: Mapping[str, str] = {}


class HamiPage:
    """`pods` are those of the cache, `namespaces` those that have quotas."""

    def __init__(
        self,
        world: World,
        pods: Iterable[Pod],
        namespaces: Callable[[], Iterable[str]],
        *,
        old_names: bool,
    ) -> None:
        self._world = world
        self._pods = pods
        self._namespaces = namespaces
        self._old_names = old_names

    async def text(self) -> AsyncIterator[str]:
        """The page in parts, none of which takes long to make."""
        ledger = self._world.ledger
        rows_of: tuple[tuple[Table, Iterator[list[Row]]], ...] = (
            (CARDS, card_rows(ledger.fleet)),
            (SHARES, ([row for holding in some for row in share_rows(holding)] for some in sliced(list(ledger)))),
            (SLICES, (list(slice_rows(some, ledger.fleet)) for some in sliced(list(self._pods)))),
            (QUOTAS, iter([list(quota_rows(self._world, self._namespaces()))])),
        )
        for table, slices in rows_of:
            rows = list[Row]()
            for some in slices:
                rows += some
                await asyncio.sleep(0)
            for part in render_table(table, rows, old_names=self._old_names):
                yield part
                await asyncio.sleep(0)


def render_table(table: Table, rows: Sequence[Row], *, old_names: bool) -> Iterator[str]:
    for family in table.families:
        yield from _render(table, family.name, family.help, family.labels, family.value, NO_NAMES, rows)
        if old_names and family.old_name:
            labels, value = family.old_labels or family.labels, family.old_value or family.value
            yield from _render(table, family.old_name, family.help, labels, value, table.old_labels, rows)


def _render(
    table: Table,
    name: str,
    help: str,
    labels: Sequence[str],
    value: str,
    called: Mapping[str, str],
    rows: Sequence[Row],
) -> Iterator[str]:
    yield f"# HELP {name} {help}\n# TYPE {name} gauge\n"
    pairs = ",".join((ZONE, *(f'{called.get(label, label)}="%s"' for label in labels)))
    template = f"{name}{{{pairs}}} %s\n"
    pick = itemgetter(*map(table.columns.index, (*labels, value)))
    for some in sliced(rows):
        yield "".join([template % pick(row) for row in some])


def sliced(things: Sequence[T]) -> Iterator[Sequence[T]]:
    return (things[begin : begin + SLICE] for begin in range(0, len(things), SLICE))


def card_rows(fleet: Fleet) -> Iterator[list[Row]]:
    """The cards of some nodes at a time, each in the order of its node."""
    names = list(fleet.row_of)
    for begin in range(0, len(names), NODES_AT_ONCE):
        rows = [fleet.row_of.get(name) for name in names[begin : begin + NODES_AT_ONCE]]
        yield [card for row in rows if row is not None for card in _cards_of(fleet, row)]


def _cards_of(fleet: Fleet, row: int) -> Iterator[Row]:
    node = escaped(fleet.names[row])
    kinds: list[int] = fleet.kind[row].tolist()
    slots, memory, cores = (free[row].tolist() for free in (fleet.free_slots, fleet.free_memory, fleet.free_cores))
    for column, uuid in enumerate(fleet.uuids[row]):
        kind = fleet.kinds[kinds[column]]
        used_mib, used_cores = kind.memory_mib - memory[column], kind.cores_percent - cores[column]
        yield (
            node,
            escaped(uuid),
            column,
            escaped(kind.model),
            kind.cores_percent,
            kind.memory_mib,
            kind.memory_mib * MIB,
            used_mib * MIB,
            used_mib / kind.memory_mib,
            kind.slots - slots[column],
            used_cores,
            ceil(100 * used_cores / kind.cores_percent),
            100,
        )


def share_rows(holding: Holding) -> Iterator[Row]:
    """What a pod holds by a claim is told of its first app container: all of them use it, and it is there once."""
    ref, allocation = holding.ref, holding.allocation
    roles = [container.role for container in holding.request.containers]
    first = roles.index(Role.APP) if Role.APP in roles else 0
    for position, shares in (*enumerate(allocation.containers), (first, allocation.claimed)):
        for share in shares:
            memory = share.memory_mib * MIB
            yield ref.namespace, allocation.node, ref.name, position, escaped(share.uuid), memory, share.cores_percent


def slice_rows(pods: Iterable[Pod], fleet: Fleet) -> Iterator[Row]:
    for pod in pods:
        text, node = (pod.metadata.annotations or {}).get(MIG_ALLOCATIONS), pod.spec.node_name
        if not isinstance(text, str) or not node:
            continue
        try:
            allocations = decode_mig_allocations(text, f"pod {pod.metadata.namespace}/{pod.metadata.name}")
        except InvalidInput:
            continue  # the world has told of it
        row = fleet.row_of.get(node)
        for allocation in allocations:
            made = allocation.instance
            index = fleet.column_of(row, allocation.gpu_uuid) if row is not None else None
            if made is None or index is None:
                continue
            card, profile = (node, escaped(allocation.gpu_uuid), index), escaped(allocation.profile)
            ids, placement = (made.gpu_instance_id, made.compute_instance_id), allocation.placement
            name = f"{profile}-{made.gpu_instance_id}"
            yield *card, escaped(made.uuid), profile, *ids, placement.start, placement.size, name, 1


_ROLES: tuple[ResourceRole, ...] = ("count", "memory", "cores")


def quota_rows(world: World, namespaces: Iterable[str]) -> Iterator[Row]:
    """In the units of the resource, as the quota has them."""
    for namespace in sorted(set(namespaces)):
        for name, limits in sorted(world.limits_of(namespace).items()):
            vendor, held = world.catalogue.by_name(name), world.ledger.held(namespace, name)
            if vendor is None:
                continue
            units = ((1, 1), (1, vendor.memory_unit_mib), (vendor.cores_per_card, 100))
            for role, limit, used, (times, per) in zip(_ROLES, limits, held, units, strict=True):
                if limit is not None:
                    key = next(iter(vendor.resources.of_role(role)), f"{name} {role}")
                    yield namespace, key, limit * times // per, used * times // per


def escaped(text: str) -> str:
    """As a label's value may be written."""
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
