"""Peculiarities that data cannot say: each is a name in a vendor's file and one function here.

A rule sees what the container asked for and returns what that means on this vendor's cards, or refuses. It never looks
at a node: whether the result fits anywhere is for the engine. Refusals name the resource; the reader adds the pod. A
rule applied to its own result changes nothing, because a webhook writes results back and they are read again.
"""

from collections.abc import Callable

import msgspec

from tessera.errors import InvalidRequest
from tessera.model.catalogue import ResourceRole, Vendor
from tessera.model.requests import DeviceRequest

Apply = Callable[[Vendor, DeviceRequest], DeviceRequest]


class Rule(msgspec.Struct, frozen=True):
    """`needs` are the fields of the vendor without which the rule could do nothing."""

    apply: Apply
    needs: tuple[str, ...] = ()


def refine(vendor: Vendor, request: DeviceRequest) -> DeviceRequest:
    """What the request means on this vendor's cards, its rules applied in the order of the file."""
    for name in vendor.rules:
        request = RULES[name].apply(vendor, request)
    return request


def memory_from_template(vendor: Vendor, request: DeviceRequest) -> DeviceRequest:
    """Memory becomes that of the smallest template that has it; above the largest it is a whole card."""
    if request.selector.mode == "hami-core":
        return request  # cut by software, not by template
    template = vendor.template_for(request.memory_mib) if not request.memory_percent else None
    cores = template.cores * 100 // vendor.cores_per_card if template else 100
    if request.cores_percent not in (0, 100, cores):
        mode = vendor.annotations.mode or "its mode"
        raise InvalidRequest(f'{_key(vendor, "cores")} is set, expected it only with {mode} "hami-core"')
    if template is None:
        return _whole(request)
    if request.count > 1:
        raise InvalidRequest(
            f'{_key(vendor, "memory")} is "{request.memory_mib}", expected none beside {request.count} cards;'
            " several cards are only given whole"
        )
    return msgspec.structs.replace(request, memory_mib=template.memory_mib, cores_percent=cores)


def even_count(vendor: Vendor, request: DeviceRequest) -> DeviceRequest:
    """Cards come in pairs on one module: one means two, and other odd numbers leave half a module over."""
    if request.count == 1:
        return msgspec.structs.replace(request, count=2)
    if request.count % 2:
        expected = f'an even number such as "{request.count + 1}"; its cards come in pairs'
        raise InvalidRequest(f'{_key(vendor, "count")} is "{request.count}", expected {expected}')
    return request


def memory_steps_exact(vendor: Vendor, request: DeviceRequest) -> DeviceRequest:
    """Only certain sizes exist; another one is refused."""
    if request.memory_percent or request.memory_mib in vendor.memory_steps_mib:
        return request
    units = request.memory_mib // vendor.memory_unit_mib
    legal = ", ".join(str(step // vendor.memory_unit_mib) for step in vendor.memory_steps_mib)
    raise InvalidRequest(f'{_key(vendor, "memory")} is "{units}", expected one of {legal}')


def memory_steps_up(vendor: Vendor, request: DeviceRequest) -> DeviceRequest:
    """Only certain sizes exist; one gets the next larger, and the share of cores that goes with it."""
    if request.memory_percent:
        return request
    largest = max(vendor.memory_steps_mib)
    if request.memory_mib > largest:
        raise InvalidRequest(f'{_key(vendor, "memory")} is "{request.memory_mib}", expected at most {largest}')
    step = min(step for step in vendor.memory_steps_mib if step >= request.memory_mib)
    return msgspec.structs.replace(request, memory_mib=step, cores_percent=step * 100 // largest)


def whole_cards_when_several(_vendor: Vendor, request: DeviceRequest) -> DeviceRequest:
    """One card may be shared; several are given whole."""
    return _whole(request) if request.count > 1 else request


def cores_make_cards(vendor: Vendor, request: DeviceRequest) -> DeviceRequest:
    """Cores are asked for across cards: one core is a part of a card, more are whole cards."""
    cores = request.cores_percent * vendor.cores_per_card // 100
    if cores <= 1:
        share = request.cores_percent or 100
        return msgspec.structs.replace(request, memory_mib=0, memory_percent=share, cores_percent=share)
    cards, left_over = divmod(cores, vendor.cores_per_card)
    if left_over:
        expected = f"1 or a multiple of {vendor.cores_per_card}, the cores of a card"
        raise InvalidRequest(f'{_key(vendor, "cores")} is "{cores}", expected {expected}')
    return _whole(msgspec.structs.replace(request, count=max(cards, request.count)))


RULES: dict[str, Rule] = {
    "cores-make-cards": Rule(cores_make_cards),
    "even-count": Rule(even_count),
    "memory-from-template": Rule(memory_from_template, needs=("templates",)),
    "memory-steps-exact": Rule(memory_steps_exact, needs=("memory_steps_mib",)),
    "memory-steps-up": Rule(memory_steps_up, needs=("memory_steps_mib",)),
    "whole-cards-when-several": Rule(whole_cards_when_several),
}


def _whole(request: DeviceRequest) -> DeviceRequest:
    return msgspec.structs.replace(request, memory_mib=0, memory_percent=100, cores_percent=100)


def _key(vendor: Vendor, role: ResourceRole) -> str:
    keys = vendor.resources.of_role(role)
    return keys[0] if keys else vendor.resources.count
