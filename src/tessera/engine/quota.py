"""How much of each vendor's cards a namespace may hold.

Limits come from ordinary ResourceQuota objects (`limits.nvidia.com/gpumem` and the like). What a namespace holds is the
sum of its pods' charges, which the ledger keeps. A limit of zero blocks; no limit means no bound.
"""

from collections.abc import Mapping

from tessera.engine.charges import NOTHING, Charge
from tessera.engine.ledger import Ledger
from tessera.model.allocations import Allocation
from tessera.model.quotas import Limits
from tessera.model.refusals import Reason, Refusal
from tessera.model.requests import ClaimRequest, DeviceRequest, PodRequest, Role


def check_request(ledger: Ledger, namespace: str, request: PodRequest, limits: Mapping[str, Limits]) -> Refusal | None:
    """Before a node is chosen: percentages are taken of the smallest card that the vendor has."""
    for vendor, bounds in sorted(limits.items()):
        refusal = _check(ledger, namespace, vendor, _least_charge(request, vendor, ledger), bounds)
        if refusal is not None:
            return refusal
    return None


def check_allocation(
    ledger: Ledger, namespace: str, request: PodRequest, allocation: Allocation, limits: Mapping[str, Limits]
) -> Refusal | None:
    """Once the cards are chosen, exactly."""
    for vendor, bounds in sorted(limits.items()):
        wanted = ledger.charge_of(request, allocation.of_vendor(vendor))
        refusal = _check(ledger, namespace, vendor, wanted, bounds)
        if refusal is not None:
            return refusal
    return None


def _check(ledger: Ledger, namespace: str, vendor: str, wanted: Charge, limits: Limits) -> Refusal | None:
    held = ledger.held(namespace, vendor)
    for field, have, more, limit in zip(Limits._fields, held, wanted, limits, strict=True):
        if limit is not None and more and have + more > limit:
            return Refusal(Reason.QUOTA, need=have + more, have=limit, where=namespace, detail=f"{vendor} {field}")
    return None


def _least_charge(request: PodRequest, vendor: str, ledger: Ledger) -> Charge:
    steady, peak = _least_claimed(request.claim, vendor, ledger), NOTHING
    for container in request.containers:
        own = NOTHING
        for device in container.devices:
            if device.vendor == vendor:
                own = own.plus(_least(device, ledger))
        if container.role is Role.INIT:
            peak = peak.at_least(steady.plus(own))
        else:
            steady = steady.plus(own)
    return steady.at_least(peak)


def _least_claimed(claim: ClaimRequest | None, vendor: str, ledger: Ledger) -> Charge:
    if claim is None or claim.card.vendor != vendor:
        return NOTHING
    least = _least(claim.card, ledger)
    if not claim.is_exclusive:
        return least
    cores = [kind.cores_percent for kind in ledger.fleet.kinds if kind.vendor == vendor]
    return least._replace(cores_percent=claim.card.count * min(cores, default=0))


def _least(device: DeviceRequest, ledger: Ledger) -> Charge:
    sizes = [kind.memory_mib for kind in ledger.fleet.kinds if kind.vendor == device.vendor]
    memory = device.memory_on(min(sizes, default=0))
    return Charge(device.count, device.count * memory, device.count * device.cores_percent)
