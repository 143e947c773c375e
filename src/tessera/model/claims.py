"""A GpuClaim as the API has it, and what it adds to the request of the pod that names it.

A claim is for the pod as a whole. What the pod's containers say of the same cards therefore asks for no more cards: the
figures for memory and cores limit a claim to shared cards, and the count is the claim's.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated

import msgspec

from tessera.errors import InvalidRequest
from tessera.model.annotations import keys
from tessera.model.annotations.claims import Pin
from tessera.model.mismatches import explain_mismatch
from tessera.model.pod_hosts import NODE_NAME_FIELD, restrict_nodes
from tessera.model.requests import (
    ANY_CARD,
    CardSelector,
    ClaimPolicy,
    ClaimRequest,
    ContainerRequest,
    DeviceRequest,
    LabelRule,
    PodRequest,
    Role,
    TopologyMode,
)

CLAIMABLE = "NVIDIA"
"""The vendor whose cards a claim is for: its containers are told by CUDA_VISIBLE_DEVICES."""
WHOLE = 100


class Exclusivity(StrEnum):
    EXCLUSIVE = "Exclusive"
    SHARED = "Shared"
    MIG = "MIG"


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class Devices(_Part, frozen=True, kw_only=True):
    count: Annotated[int, msgspec.Meta(ge=1)]
    policy: ClaimPolicy = ClaimPolicy.ANY
    prefer_ids: tuple[Annotated[int, msgspec.Meta(ge=0)], ...] = ()
    exclusivity: Exclusivity = Exclusivity.EXCLUSIVE


class Selector(_Part, frozen=True, kw_only=True):
    match_labels: dict[str, str] = {}


class Topology(_Part, frozen=True, kw_only=True):
    mode: TopologyMode = TopologyMode.PREFERRED
    min_bandwidth_gbps: Annotated[int, msgspec.Meta(ge=0)] = msgspec.field(default=0, name="minBandwidthGBps")


NO_SELECTOR = Selector()
NO_TOPOLOGY = Topology(mode=TopologyMode.IGNORE)


class ClaimSpec(_Part, frozen=True, kw_only=True):
    devices: Devices
    selector: Selector | None = None
    topology: Topology | None = None
    gang_ref: str = ""


def read_claim_spec(spec: object, where: str) -> ClaimSpec:
    """`where` names the claim."""
    try:
        return msgspec.convert(spec, ClaimSpec)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"{where}: spec: {explain_mismatch(error, spec)}") from None


def join_claim(
    request: PodRequest, spec: ClaimSpec, where: str, *, pin: Pin | None = None, selector: CardSelector = ANY_CARD
) -> PodRequest:
    """What a pod with a claim asks for. `where` names the claim, `selector` is the pod's own choice of cards."""
    devices, topology = spec.devices, spec.topology or NO_TOPOLOGY
    if devices.exclusivity is Exclusivity.MIG:
        raise InvalidRequest(
            f"{where}: spec.devices.exclusivity is MIG, which is not supported yet, expected Exclusive or Shared"
        )
    if pin is not None and len(pin.ids) != devices.count:
        raise InvalidRequest(
            f"{where}: spec.devices.count is {devices.count}, expected {len(pin.ids)}, as many as the cards that"
            f" the pod's {keys.PIN} names ({pin})"
        )
    is_shared = devices.exclusivity is Exclusivity.SHARED
    card = _shared_card(request, where) if is_shared else WHOLE_CARD
    claim = ClaimRequest(
        card=msgspec.structs.replace(card, count=devices.count, selector=selector),
        policy=devices.policy,
        prefer_ids=devices.prefer_ids,
        topology=topology.mode,
        min_bandwidth_gbps=topology.min_bandwidth_gbps,
        pinned_ids=pin.ids if pin else (),
    )
    labels = (spec.selector or NO_SELECTOR).match_labels
    rules = [LabelRule(key, "In", (value,)) for key, value in sorted(labels.items())]
    if pin is not None:
        rules.append(LabelRule(NODE_NAME_FIELD, "In", (pin.node,)))
    return msgspec.structs.replace(without_claimable(request), claim=claim, host=restrict_nodes(request.host, rules))


def pinned_spec(pin: Pin) -> ClaimSpec:
    """What a pod asks for that is pinned to cards and names no claim: those cards, for itself."""
    return ClaimSpec(devices=Devices(count=len(pin.ids)))


def without_claimable(request: PodRequest) -> PodRequest:
    """The same request without what its containers say of cards that a claim is for."""
    containers = tuple(
        ContainerRequest(container.role, tuple(one for one in container.devices if one.vendor != CLAIMABLE))
        for container in request.containers
    )
    return msgspec.structs.replace(request, containers=containers)


WHOLE_CARD = DeviceRequest(vendor=CLAIMABLE, count=1, memory_percent=WHOLE, cores_percent=WHOLE)


def _shared_card(request: PodRequest, where: str) -> DeviceRequest:
    """What the containers ask of each card together. All of a card's memory is what they get without asking."""
    asked = [
        (container.role, device)
        for container in request.containers
        for device in container.devices
        if device.vendor == CLAIMABLE
    ]
    memory_mib = _together((role, one.memory_mib) for role, one in asked if not one.memory_percent)
    percent = _together((role, one.memory_percent % WHOLE) for role, one in asked)
    if memory_mib and percent:
        raise InvalidRequest(
            f"{where}: the pod's containers ask for memory in MiB and in percent, expected one of the two throughout"
        )
    cores = _together((role, one.cores_percent % WHOLE) for role, one in asked)
    return DeviceRequest(
        vendor=CLAIMABLE,
        count=1,
        memory_mib=memory_mib,
        memory_percent=min(percent, WHOLE),
        cores_percent=min(cores, WHOLE - 1),
    )


def _together(figures: Iterable[tuple[Role, int]]) -> int:
    """The most at any moment: init containers come one by one, the others run side by side."""
    steady = peak = 0
    for role, figure in figures:
        if role is Role.INIT:
            peak = max(peak, steady + figure)
        else:
            steady += figure
    return max(peak, steady)
