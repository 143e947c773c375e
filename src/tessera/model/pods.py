"""A Kubernetes Pod, as JSON gives it, read into what it asks for.

Compatible with HAMi: limits win over requests, figures are per card, cores above a whole card mean a whole card. Where
HAMi guesses (a unit on a number, two figures that contradict), we refuse with one sentence, because a guess shows up
much later as a pod with the wrong card.
"""

from collections.abc import Callable, Mapping
from functools import partial

import msgspec

from tessera.errors import InvalidInput, InvalidQuantity, InvalidRequest
from tessera.model.annotations.selectors import read_policy, read_selector
from tessera.model.catalogue import Catalogue, ResourceRole, Vendor
from tessera.model.mismatches import show
from tessera.model.pod_documents import NO_METADATA, NO_RESOURCES, Container, Values, read_document, read_head
from tessera.model.pod_hosts import is_sidecar, read_host_request
from tessera.model.quantities import bytes_of, count_of
from tessera.model.requests import (
    ContainerRequest,
    DeviceRequest,
    PodRef,
    PodRequest,
    Role,
)

Refine = Callable[[Vendor, DeviceRequest], DeviceRequest]
Annotations = Mapping[str, str]

_LARGEST = 2**31 - 1
_MIB = 2**20


def read_pod_ref(pod: object) -> PodRef:
    """Which pod it is. Before the API server has named it, the prefix of its name serves."""
    try:
        head = read_head(pod)
    except InvalidRequest as error:
        raise InvalidRequest(f"pod: {error}") from None
    return PodRef(head.namespace or "default", head.name or head.generate_name or "(unnamed)", head.uid or "")


def read_pod_request(pod: object, vendors: Catalogue, refine: Refine) -> PodRequest:
    """What the pod asks for. `refine` applies the peculiarities that a vendor's file names."""
    return refine_request(read_pod_ref(pod), read_written_request(pod, vendors), vendors, refine)


def read_written_request(pod: object, vendors: Catalogue) -> PodRequest:
    """What the pod's figures say as they stand; cores may exceed a whole card.

    Memory of 0, in MiB or percent, is memory not given, as it is to HAMi: the container gets the vendor's default,
    which is a whole card unless the vendor's file says otherwise.
    """
    ref = read_pod_ref(pod)
    try:
        document = read_document(pod)
        annotations = _read_texts((document.metadata or NO_METADATA).annotations or {})
        spec = document.spec
        if not spec.containers:
            raise InvalidRequest("spec.containers is empty, expected at least one container")
        init = [(_init_role(container), container) for container in spec.init_containers or ()]
        apps = [(Role.APP, container) for container in spec.containers]
        return PodRequest(
            containers=tuple(
                ContainerRequest(role, _read_devices(container, vendors, annotations))
                for role, container in (*init, *apps)
            ),
            host=read_host_request(spec),
            policy=read_policy(annotations),
        )
    except InvalidInput as error:
        raise type(error)(f"{ref}: {error}") from None


def refine_request(ref: PodRef, written: PodRequest, vendors: Catalogue, refine: Refine) -> PodRequest:
    """What the figures mean on the vendors' cards."""

    def meant(device: DeviceRequest) -> DeviceRequest:
        vendor = vendors.by_name(device.vendor)
        refined = refine(vendor, device) if vendor else device
        return refined if refined.cores_percent <= 100 else msgspec.structs.replace(refined, cores_percent=100)

    try:
        containers = tuple(
            ContainerRequest(container.role, tuple(map(meant, container.devices))) for container in written.containers
        )
    except InvalidInput as error:
        raise type(error)(f"{ref}: {error}") from None
    return msgspec.structs.replace(written, containers=containers)


def _init_role(container: Container) -> Role:
    return Role.SIDECAR if is_sidecar(container) else Role.INIT


class _Figure(msgspec.Struct, frozen=True):
    """One resource as the pod has it: under which key, with which value."""

    key: str
    value: object


Figures = dict[ResourceRole, list[_Figure]]


def _read_devices(container: Container, vendors: Catalogue, annotations: Annotations) -> tuple[DeviceRequest, ...]:
    asked: dict[str, Figures] = {}
    for key, value in (container.resources or NO_RESOURCES).first_of_limits().items():
        use = vendors.by_resource(key)
        if use is not None:
            asked.setdefault(use.vendor.name, {}).setdefault(use.role, []).append(_Figure(key, value))
    found = (vendors.by_name(name) for name in sorted(asked))
    requests = (_read_device(vendor, asked[vendor.name], annotations) for vendor in found if vendor)
    return tuple(request for request in requests if request)


def _read_device(vendor: Vendor, figures: Figures, annotations: Annotations) -> DeviceRequest | None:
    """One vendor's figures as a request; None where nothing is asked for. Cores may still exceed a whole card."""
    count = _agreed(figures.get("count", []), partial(_read_whole, expected='a whole number of cards such as "1"'))
    memory_mib = _agreed(figures.get("memory", []), partial(_read_memory_mib, vendor)) or 0
    percent = _agreed(figures.get("memory_percent", []), _read_percent) or 0
    cores = _agreed(figures.get("cores", []), partial(_read_cores, vendor))
    priority = _agreed(figures.get("priority", []), partial(_read_whole, expected='a whole number such as "1"')) or 0
    wanted = _positive_figures(figures, memory_mib, percent, cores)
    if count == 0 and wanted:
        key = figures["count"][0].key
        raise InvalidRequest(f'{key} is "0", expected at least 1 beside {wanted[0].key}; raise it or drop the other')
    if memory_mib and percent:
        one, other = figures["memory"][0], figures["memory_percent"][0]
        raise InvalidRequest(f"{one.key} is {_quote(one)}, expected none beside {other.key}; keep one of the two")
    if not count and not wanted:
        return None
    if count is None and vendor.defaults.count == 0:
        raise InvalidRequest(f"{vendor.resources.count} is missing, expected a count beside {wanted[0].key}")
    if not memory_mib:
        percent = percent or vendor.defaults.memory_percent
    return DeviceRequest(
        vendor=vendor.name,
        count=count or vendor.defaults.count,
        memory_mib=memory_mib,
        memory_percent=percent,
        cores_percent=cores if cores is not None else 100 if percent == 100 else vendor.defaults.cores_percent,
        priority=priority,
        selector=read_selector(annotations, vendor.annotations.selector_keys),
    )


def _positive_figures(figures: Figures, memory_mib: int, percent: int, cores: int | None) -> list[_Figure]:
    """What asks for a part of a card: with it a count of 0 contradicts, and without a count one is meant."""
    amounts: tuple[tuple[ResourceRole, int], ...] = (
        ("memory", memory_mib),
        ("memory_percent", percent),
        ("cores", cores or 0),
    )
    return [figures[role][0] for role, amount in amounts if amount]


def _agreed(figures: list[_Figure], read: Callable[[_Figure], int]) -> int | None:
    """A figure under its key or an alias, None where it is under neither; both may stand there if they agree."""
    amounts = [(read(figure), figure) for figure in figures]
    for amount, figure in amounts[1:]:
        if amount != amounts[0][0]:
            first = amounts[0][1].key
            raise InvalidRequest(f"{figure.key} is {_quote(figure)}, expected the same as {first}; keep one of the two")
    return amounts[0][0] if amounts else None


def _read_memory_mib(vendor: Vendor, figure: _Figure) -> int:
    has_unit = isinstance(figure.value, str) and any(character.isalpha() for character in figure.value)
    if vendor.memory_takes_bytes and has_unit:
        return -(-_quantity_bytes(figure) // _MIB)
    unit = vendor.memory_unit_mib
    whole = _whole_of(figure.value)
    if whole is None or whole * unit > _LARGEST:
        of_what = "MiB" if unit == 1 else f"{unit} MiB units"
        hint = "; drop the unit" if has_unit and str(figure.value)[:1].isdecimal() else ""
        expected = f'a whole number of {of_what} such as "{_example(figure.value, unit)}"{hint}'
        raise InvalidRequest(f"{figure.key} is {_quote(figure)}, expected {expected}")
    return whole * unit


def _quantity_bytes(figure: _Figure) -> int:
    try:
        return bytes_of(str(figure.value))
    except InvalidQuantity:
        expected = 'a quantity such as "8Gi" or a whole number of GiB such as "8"'
        raise InvalidRequest(f"{figure.key} is {_quote(figure)}, expected {expected}") from None


def _example(value: object, unit_mib: int) -> str:
    """The number that somebody who wrote a unit, or plain bytes, most likely meant."""
    try:
        meant = bytes_of(value) // _MIB // unit_mib if isinstance(value, str) else 0
    except InvalidQuantity:
        meant = 0
    return str(meant if 0 < meant <= _LARGEST else max(1, 8000 // unit_mib))


def _read_percent(figure: _Figure) -> int:
    percent = _read_whole(figure, "a whole number from 0 to 100")
    if percent > 100:
        raise InvalidRequest(f"{figure.key} is {_quote(figure)}, expected a whole number from 0 to 100")
    return percent


def _read_cores(vendor: Vendor, figure: _Figure) -> int:
    """Percent of a card. Parts of a percent are dropped: sixteen sixteenths must still fit on one card."""
    units = _read_whole(figure, f"a whole number from 0 to {vendor.cores_per_card}")
    return max(1, units * 100 // vendor.cores_per_card) if units else 0


def _read_whole(figure: _Figure, expected: str) -> int:
    whole = _whole_of(figure.value)
    if whole is None:
        raise InvalidRequest(f"{figure.key} is {_quote(figure)}, expected {expected}")
    return whole


def _whole_of(value: object) -> int | None:
    """A count as the API server may rewrite it ("10000" becomes "10k"), but with no binary unit: that is a size."""
    if not isinstance(value, str | int | float) or (isinstance(value, str) and value.strip().endswith("i")):
        return None
    try:
        whole = count_of(value)
    except InvalidQuantity:
        return None
    return whole if whole <= _LARGEST else None


def _quote(figure: _Figure) -> str:
    value = figure.value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return show(str(value)) if is_number else show(value)


def _read_texts(annotations: Values) -> Annotations:
    for key, value in annotations.items():
        if not isinstance(value, str | None):
            raise InvalidRequest(f"{key} is {show(value)}, expected a string")
    return {key: value.strip() for key, value in annotations.items() if value is not None}
