"""A container's environment, mounts and device files, rendered from its vendor's data.

Templates are `str.format` with a fixed set of words and no attribute access, and are tried out when a file is loaded,
so that a slip in a vendor file is found at start and not when a container does.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from string import Formatter

import msgspec

from tessera.errors import InvalidCatalogue
from tessera.model.allocations import CardShare
from tessera.model.catalogue import Model, MountPoint, Variable, Vendor
from tessera.model.devices import Device
from tessera.model.requests import PodRef

DEFAULT_HOOK_PATH = "/usr/local"
DEFAULT_RUN_PATH = "/run/tessera"
_FIRST_RENDER_MINOR = 128

CONTAINER_WORDS = frozenset(
    {"count", "container", "hook", "namespace", "node", "pod", "pod_uid", "priority", "run", "vendor"}
)
CARD_WORDS = frozenset(
    {
        "cores_percent",
        "index",
        "last_unit",
        "memory_mib",
        "memory_units",
        "position",
        "render_minor",
        "template",
        "uuid",
    }
)
ID_WORDS = frozenset({"index", "node", "uuid", "vendor"})


class AllocationRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which container gets which shares. `shares` are of one vendor, in the order in which the container sees them.

    Memory of 0 is no limit. `claimed` are cards of the pod as a whole, of which each container sees all. `hook_path` is
    where the host keeps libraries for containers, `run_path` what containers and the agent share while the host is up.
    """

    pod: PodRef
    container: str
    shares: tuple[CardShare, ...]
    claimed: bool = False
    node: str = ""
    priority: int = 0
    hook_path: str = DEFAULT_HOOK_PATH
    run_path: str = DEFAULT_RUN_PATH


class Mount(msgspec.Struct, frozen=True):
    """What is not read-only is made before the container is: a directory, or an empty file."""

    container_path: str
    host_path: str
    read_only: bool
    is_file: bool = False


class ContainerEdits(msgspec.Struct, frozen=True, kw_only=True):
    """What a container needs to see its cards and stay within its share."""

    environment: dict[str, str] = {}
    mounts: tuple[Mount, ...] = ()
    device_paths: tuple[str, ...] = ()

    def joined(self, other: "ContainerEdits") -> "ContainerEdits":
        return ContainerEdits(
            environment={**self.environment, **other.environment},
            mounts=(*self.mounts, *other.mounts),
            device_paths=(*self.device_paths, *other.device_paths),
        )


class _Card(msgspec.Struct, frozen=True):
    share: CardShare
    device: Device
    words: Mapping[str, object]
    claimed: bool

    @property
    def is_shared(self) -> bool:
        return self.share.memory_mib < self.device.memory_mib or self.share.cores_percent % 100 > 0

    def suits(self, entry: Variable | MountPoint) -> bool:
        match entry.when:
            case "always":
                return True
            case "shared":
                return self.is_shared
            case "soft":
                return self.is_shared and not self.words["template"]
            case "limited":
                return self.share.memory_mib > 0
            case "template":
                return bool(self.words["template"])
            case "claimed":
                return self.claimed


def render_edits(
    vendor: Vendor,
    request: AllocationRequest,
    devices: Mapping[str, Device],
    exists: Callable[[str], bool] = lambda _: True,
) -> ContainerEdits:
    """The edits for cards that are all in `devices`; nothing at all for a container without cards.

    `exists` says whether the host has a file.
    """
    if not request.shares:
        return ContainerEdits()
    common = _container_words(vendor, request)
    cards = tuple(
        _Card(share, device, common | _card_words(vendor, position, share, device), request.claimed)
        for position, share in enumerate(request.shares)
        for device in (devices[share.uuid],)
    )
    mounts = _render_mounts(vendor, common, cards, exists)
    paths = (path.format_map(card.words) for path in vendor.device_paths for card in cards)
    return ContainerEdits(
        environment=dict(_render_environment(vendor, cards, frozenset(mounts))),
        mounts=tuple(mounts.values()),
        device_paths=tuple(dict.fromkeys(paths)),
    )


def _render_mounts(
    vendor: Vendor, words: Mapping[str, object], cards: tuple[_Card, ...], exists: Callable[[str], bool]
) -> dict[str, Mount]:
    """By the container's path."""
    mounts: dict[str, Mount] = {}
    for point in vendor.mounts:
        told = [card.words for card in cards if card.suits(point)]
        if not told or not _is_wanted(point, mounts):
            continue
        for those in told if point.per == "card" else [words]:
            rendered = _render_mount(point, those)
            if rendered.container_path not in mounts and (not point.read_only or exists(rendered.host_path)):
                mounts[rendered.container_path] = rendered
    return mounts


def _render_mount(point: MountPoint, words: Mapping[str, object]) -> Mount:
    container, host = point.container.format_map(words), point.host.format_map(words)
    return Mount(container, host, point.read_only, is_file=point.made_as == "file")


def _is_wanted(entry: MountPoint | Variable, mounted: Collection[str]) -> bool:
    return (not entry.needs or entry.needs in mounted) and entry.unless not in mounted


def check_placeholders(vendor: Vendor, place: str) -> None:
    """Refuse a template that uses a word which its place does not have."""
    card = CONTAINER_WORDS | CARD_WORDS
    for index, variable in enumerate(vendor.environment):
        # A list has one name for all its cards, so only its value may speak of a card.
        names = CONTAINER_WORDS if variable.per == "list" else card
        _check(variable.name, names, f"{place}.environment[{index}].name")
        _check(variable.value, card, f"{place}.environment[{index}].value")
    for index, mount in enumerate(vendor.mounts):
        words = card if mount.per == "card" else CONTAINER_WORDS
        _check(mount.container, words, f"{place}.mounts[{index}].container")
        _check(mount.host, words, f"{place}.mounts[{index}].host")
    for index, path in enumerate(vendor.device_paths):
        _check(path, card, f"{place}.device_paths[{index}]")
    _check(vendor.card_id, ID_WORDS, f"{place}.card_id")


def _check(template: str, words: frozenset[str], where: str) -> None:
    known = ", ".join(sorted(words))
    try:
        used = {field for _, field, _, _ in Formatter().parse(template) if field is not None}
    except ValueError:
        raise InvalidCatalogue(f'{where} is "{template}", expected braces around one of {known}') from None
    if used - words:
        wrong = sorted(used - words)[0]
        raise InvalidCatalogue(f'{where} is "{template}", expected one of {known} in place of "{wrong}"')


def _render_environment(vendor: Vendor, cards: tuple[_Card, ...], mounted: frozenset[str]) -> Iterator[tuple[str, str]]:
    for variable in vendor.environment:
        told = [card for card in cards if card.suits(variable)]
        if not told or not _is_wanted(variable, mounted):
            continue
        if variable.per == "list":
            values = variable.separator.join(variable.value.format_map(card.words) for card in told)
            yield variable.name.format_map(told[0].words), values
            continue
        for card in told if variable.per == "card" else told[:1]:
            yield variable.name.format_map(card.words), variable.value.format_map(card.words)


def _container_words(vendor: Vendor, request: AllocationRequest) -> dict[str, object]:
    return {
        "count": len(request.shares),
        "container": request.container,
        "hook": request.hook_path,
        "namespace": request.pod.namespace,
        "node": request.node,
        "pod": request.pod.name,
        "pod_uid": request.pod.uid,
        "priority": request.priority,
        "run": request.run_path,
        "vendor": vendor.name,
    }


def _card_words(vendor: Vendor, position: int, share: CardShare, device: Device) -> dict[str, object]:
    template = next((template.name for template in vendor.templates if template.memory_mib == share.memory_mib), "")
    units = compute_units(vendor, device)
    # No cores asked for means no limit on them, so all units stay visible.
    visible = max(1, units * share.cores_percent // 100) if share.cores_percent else units
    return {
        "cores_percent": share.cores_percent,
        "index": device.index,
        "last_unit": visible - 1,
        "memory_mib": share.memory_mib,
        "memory_units": share.memory_mib // vendor.memory_unit_mib,
        "position": position,
        "render_minor": _FIRST_RENDER_MINOR + device.index,
        "template": template,
        "uuid": share.uuid,
    }


def compute_units(vendor: Vendor, device: Device) -> int:
    model: Model | None = next(
        (model for model in vendor.models if device.model in (model.name, model.reported_as)), None
    )
    return model.compute_units if model else vendor.cores_per_card
