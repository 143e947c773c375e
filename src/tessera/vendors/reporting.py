"""What an agent says about its node's cards in annotations, in the form that each vendor's readers expect.

The cards change seldom and the handshake often, so they are two reports: whoever writes them writes the first only when
it says something new, because every change of a node wakes the pods that wait for one.
"""

from datetime import datetime

from msgspec.structs import replace

from tessera.model.annotations.handshakes import Handshake, HandshakeState, HandshakeStyle, encode_handshake
from tessera.model.annotations.keys import INVENTORY
from tessera.model.annotations.links import encode_links
from tessera.model.annotations.registers import RegisterFormat, encode_register
from tessera.model.annotations.versioned import encode_inventory
from tessera.model.catalogue import Catalogue, Vendor
from tessera.model.devices import Device, Link
from tessera.vendors.managers import Inventory
from tessera.vendors.rendering import compute_units


def report_cards(node: str, inventory: Inventory, catalogue: Catalogue) -> dict[str, str]:
    """The register and the links of each vendor that has cards here, and all cards in our own form."""
    report = {INVENTORY: encode_inventory(inventory.devices)}
    for vendor, devices in _by_vendor(inventory, catalogue):
        keys = vendor.annotations
        if keys.register:
            by_unit = keys.register_cores == "units"
            units = {device.uuid: compute_units(vendor, device) for device in devices} if by_unit else {}
            report[keys.register] = encode_register(devices, keys.register_format, node=node, units=units)
        links = _links_among(devices, inventory)
        if keys.links and links:
            report[keys.links] = encode_links(links)
    return report


def in_form(catalogue: Catalogue, form: RegisterFormat) -> Catalogue:
    """The catalogue for an agent that is to write NVIDIA's register as HAMi's releases do, and its handshake."""
    return Catalogue(_in_form(vendor, form) for vendor in catalogue)


def _in_form(vendor: Vendor, form: RegisterFormat) -> Vendor:
    keys = vendor.annotations
    if keys.register_format is not RegisterFormat.SEED or form is RegisterFormat.SEED:
        return vendor
    handshake, *aliases = (*keys.handshake_aliases, keys.handshake)
    changed = replace(keys, register_format=form, handshake=handshake, handshake_aliases=tuple(aliases))
    return replace(vendor, annotations=changed)


def report_alive(
    inventory: Inventory, catalogue: Catalogue, at: datetime, style: HandshakeStyle = HandshakeStyle.SEED
) -> dict[str, str]:
    """One handshake for each vendor that has cards here and readers who look for one."""
    handshake = encode_handshake(Handshake(HandshakeState.REPORTED, at), style)
    vendors = [vendor for vendor, _ in _by_vendor(inventory, catalogue)]
    return {vendor.annotations.handshake: handshake for vendor in vendors if vendor.annotations.handshake}


def report_capacity(inventory: Inventory, catalogue: Catalogue) -> dict[str, str]:
    """How many shares of cards the node can hold, by the resource that counts them."""
    return {
        vendor.resources.count: str(sum(device.slots for device in devices))
        for vendor, devices in _by_vendor(inventory, catalogue)
    }


def _links_among(devices: list[Device], inventory: Inventory) -> list[Link]:
    uuids = {device.uuid for device in devices}
    return [link for link in inventory.links if {link.one, link.other} <= uuids]


def _by_vendor(inventory: Inventory, catalogue: Catalogue) -> list[tuple[Vendor, list[Device]]]:
    devices: dict[str, list[Device]] = {}
    for device in inventory.devices:
        devices.setdefault(device.vendor, []).append(device)
    return [(vendor, devices[vendor.name]) for vendor in catalogue.vendors if vendor.name in devices]
