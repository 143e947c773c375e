"""Services, and the endpoints behind them. Addresses are given by an allocator; here is only what they must be."""

import ipaddress
from collections.abc import Sequence

from tessera.embedded import causes
from tessera.embedded.documents import Document, Frozen
from tessera.embedded.refusals import Cause
from tessera.embedded.resources import metadata, names
from tessera.embedded.resources.container_rules import PROTOCOLS, check_number, check_port
from tessera.embedded.resources.parts import each, part_of, set_defaults
from tessera.embedded.resources.strategy import Strategy

HEADLESS = "None"
TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_EXPOSED = ("NodePort", "LoadBalancer")
_WRONG_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


class Services(Strategy):
    has_status = True

    def check_name(self, name: str) -> list[str]:
        return names.label(name)

    def default(self, document: Document) -> Document:
        spec = part_of(document, "spec")
        set_defaults(spec, type="ClusterIP", sessionAffinity="None")
        for port in each(spec, "ports"):
            set_defaults(port, protocol="TCP")
            if port.get("targetPort") in (None, 0, ""):
                port["targetPort"] = port.get("port")
        if spec["type"] != "ExternalName":
            set_defaults(spec, internalTrafficPolicy="Cluster")
        if spec["type"] in _EXPOSED:
            set_defaults(spec, externalTrafficPolicy="Cluster")
        return document

    def prepare_create(self, document: Document, now: str) -> Document:
        _agree_on_address(document["spec"])
        return super().prepare_create(document, now)

    def prepare_update(self, new: Document, old: Frozen) -> Document:
        """An address that is not mentioned stays, unless the Service stops having one."""
        spec: Document = new["spec"]
        if spec["type"] != "ExternalName":
            for name in ("clusterIP", "clusterIPs"):
                if not spec.get(name) and old["spec"].get(name):
                    spec[name] = old["spec"][name]
            _keep_node_ports(spec, old["spec"])
        _agree_on_address(spec)
        return super().prepare_update(new, old)

    def initial_status(self, document: Frozen, now: str) -> Document:
        del document, now
        return {"loadBalancer": {}}

    def check(self, document: Frozen) -> list[Cause]:
        spec: Frozen = document["spec"]
        found: list[Cause] = []
        if not spec.get("ports") and spec["type"] != "ExternalName" and spec.get("clusterIP") != HEADLESS:
            found.append(causes.required("spec.ports"))
        found += _check_ports(each(spec, "ports"))
        found += metadata.check_labels(spec.get("selector"), "spec.selector")
        found += causes.unsupported_choice("spec.sessionAffinity", spec["sessionAffinity"], ("ClientIP", "None"))
        found += causes.unsupported_choice("spec.type", spec["type"], TYPES)
        address = spec.get("clusterIP") or HEADLESS
        if address != HEADLESS and not _is_address(address):
            found.append(causes.invalid("spec.clusterIPs[0]", address, _WRONG_ADDRESS))
        return found

    def check_change(self, new: Frozen, old: Frozen) -> list[Cause]:
        before, after = old["spec"].get("clusterIP"), new["spec"].get("clusterIP")
        if not before or before == after or "ExternalName" in (new["spec"]["type"], old["spec"]["type"]):
            return []
        return [causes.invalid("spec.clusterIPs[0]", new["spec"].get("clusterIPs"), "may not change once set")]


def give_address(document: Document, address: str) -> Document:
    """The Service with the address that was allocated for it."""
    document["spec"]["clusterIP"] = address
    _agree_on_address(document["spec"])
    return document


def needs_address(document: Frozen) -> bool:
    spec: Frozen = document["spec"]
    return spec["type"] != "ExternalName" and not spec.get("clusterIP")


def _agree_on_address(spec: Document) -> None:
    """One address in the two fields that have it."""
    if spec["type"] == "ExternalName":
        for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            spec.pop(name, None)
        return
    if spec.get("clusterIP"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    elif spec.get("clusterIPs"):
        spec["clusterIP"] = spec["clusterIPs"][0]
    set_defaults(spec, ipFamilies=["IPv4"], ipFamilyPolicy="SingleStack")


def _keep_node_ports(spec: Document, old: Frozen) -> None:
    if spec["type"] not in _EXPOSED:
        return
    given = {(port["port"], port["protocol"]): port.get("nodePort") for port in each(old, "ports")}
    for port in each(spec, "ports"):
        if number := given.get((port.get("port"), port["protocol"])):
            set_defaults(port, nodePort=number)


def _check_ports(ports: Sequence[Frozen]) -> list[Cause]:
    found: list[Cause] = []
    taken: set[str] = set()
    for number, port in enumerate(ports):
        field, name = f"spec.ports[{number}]", port.get("name") or ""
        if not name and len(ports) > 1:
            found.append(causes.required(f"{field}.name"))
        elif name in taken:
            found.append(causes.duplicate(f"{field}.name", name))
        elif name:
            found += [causes.invalid(f"{field}.name", name, sentence) for sentence in names.label(name)]
        taken.add(name)
        if any((one.get("port"), one["protocol"]) == (port.get("port"), port["protocol"]) for one in ports[:number]):
            found.append(causes.duplicate(field, {"protocol": port["protocol"], "port": port.get("port")}))
        found += check_number(port.get("port", 0), f"{field}.port")
        found += causes.unsupported_choice(f"{field}.protocol", port["protocol"], PROTOCOLS)
        found += check_port(port.get("targetPort", 0), f"{field}.targetPort")
    return found


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


class Endpoints(Strategy):
    def default(self, document: Document) -> Document:
        for subset in each(document, "subsets"):
            for port in each(subset, "ports"):
                set_defaults(port, protocol="TCP")
        return document


class EndpointSlices(Strategy):
    counts_generation = True

    def default(self, document: Document) -> Document:
        set_defaults(document, endpoints=[])
        for endpoint in document["endpoints"]:
            set_defaults(endpoint, conditions={})
        for port in each(document, "ports"):
            set_defaults(port, name="", protocol="TCP")
        return document

    def check(self, document: Frozen) -> list[Cause]:
        found = causes.unsupported_choice("addressType", document.get("addressType"), ("FQDN", "IPv4", "IPv6"))
        for number, endpoint in enumerate(document["endpoints"]):
            if not endpoint.get("addresses"):
                field = f"endpoints[{number}].addresses"
                found.append(causes.required(field, "must contain at least 1 address"))
        return found

    def check_change(self, new: Frozen, old: Frozen) -> list[Cause]:
        kind = new.get("addressType")
        return [] if kind == old.get("addressType") else [causes.immutable("addressType", kind)]
