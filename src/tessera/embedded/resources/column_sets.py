"""The columns of each built-in kind, as kubectl has always shown them."""

from collections.abc import Callable, Mapping, Sequence

from tessera.embedded.documents import Frozen
from tessera.embedded.kinds import Kind
from tessera.embedded.resources import event_columns, pod_columns, table, workload_columns
from tessera.embedded.resources.columns import AGE, CREATED, NAME, NONE, UNKNOWN, Column, at, text
from tessera.embedded.resources.label_selectors import written
from tessera.embedded.resources.parts import each, inside

_ROLE = "node-role.kubernetes.io/"
_SHOWN_ENDPOINTS = 3


def columns_of(kind: Kind) -> Sequence[Column]:
    return _SETS.get(kind.resource, (NAME, AGE))


def _count(*fields: str) -> Callable[[Frozen], int]:
    return lambda document: sum(len(document.get(field) or ()) for field in fields)


def _node_status(node: Frozen) -> str:
    conditions = {one.get("type"): one.get("status") for one in each(inside(node, "status"), "conditions")}
    word = {"True": "Ready", None: "Unknown"}.get(conditions.get("Ready"), "NotReady")
    return f"{word},SchedulingDisabled" if node["spec"].get("unschedulable") else word


def _node_roles(node: Frozen) -> str:
    labels = inside(node["metadata"], "labels")
    roles = sorted(label.removeprefix(_ROLE) for label in labels if label.startswith(_ROLE))
    return ",".join(role for role in roles if role) or NONE


def _node_address(kind: str) -> Callable[[Frozen], str]:
    def cell(node: Frozen) -> str:
        addresses = each(inside(node, "status"), "addresses")
        return next((one["address"] for one in addresses if one.get("type") == kind), NONE)

    return cell


def _node_fact(field: str, absent: str = UNKNOWN) -> Callable[[Frozen], str]:
    return lambda node: inside(inside(node, "status"), "nodeInfo").get(field) or absent


def _service_ports(service: Frozen) -> str:
    ports = each(service["spec"], "ports")
    shown = [
        f"{one['port']}{':' + str(one['nodePort']) if one.get('nodePort') else ''}/{one['protocol']}" for one in ports
    ]
    return ",".join(shown) or NONE


def _service_outside(service: Frozen) -> str:
    spec: Frozen = service["spec"]
    if spec["type"] == "ExternalName":
        return str(spec.get("externalName") or NONE)
    given = [
        one.get("ip") or one.get("hostname")
        for one in each(inside(inside(service, "status"), "loadBalancer"), "ingress")
    ]
    addresses = [*given, *each(spec, "externalIPs")]
    return ",".join(addresses) or ("<pending>" if spec["type"] == "LoadBalancer" else NONE)


def _quota(document: Frozen, *, is_limit: bool) -> str:
    hard, used = inside(document["spec"], "hard"), inside(inside(document, "status"), "used")
    names = sorted(name for name in hard if name.startswith("limits.") is is_limit)
    return ", ".join(f"{name}: {used.get(name, '0')}/{hard[name]}" for name in names)


def _subjects(kind: str) -> Callable[[Frozen], str]:
    def cell(binding: Frozen) -> str:
        named = [one for one in each(binding, "subjects") if one.get("kind") == kind]
        return ", ".join(f"{one['namespace']}/{one['name']}" if one.get("namespace") else one["name"] for one in named)

    return cell


def _first(values: Sequence[str], absent: str) -> str:
    more = len(values) - _SHOWN_ENDPOINTS
    shown = ",".join(values[:_SHOWN_ENDPOINTS]) or absent
    return f"{shown} + {more} more..." if more > 0 else shown


def _endpoints(document: Frozen) -> str:
    found: list[str] = []
    for subset in each(document, "subsets"):
        addresses = [one["ip"] for one in each(subset, "addresses")]
        ports = [port["port"] for port in each(subset, "ports")]
        found += [f"{ip}:{port}" for port in ports for ip in addresses] if ports else addresses
    return _first(found, NONE)


def _slice_ports(document: Frozen) -> str:
    ports = [str(port.get("port", "*")) for port in each(document, "ports")]
    return _first(ports, "<unset>")


def _slice_endpoints(document: Frozen) -> str:
    return _first([address for one in each(document, "endpoints") for address in one["addresses"]], "<unset>")


_BINDING = (
    NAME,
    text("Role", lambda binding: f"{binding['roleRef']['kind']}/{binding['roleRef']['name']}"),
    AGE,
    text("Users", _subjects("User"), wide=True),
    text("Groups", _subjects("Group"), wide=True),
    text("ServiceAccounts", _subjects("ServiceAccount"), wide=True),
)
_WEBHOOKS = (NAME, text("Webhooks", _count("webhooks"), type="integer"), AGE)
_SETS: Mapping[str, Sequence[Column]] = {
    table.PODS.resource: pod_columns.COLUMNS,
    table.EVENTS.resource: event_columns.COLUMNS,
    table.NEW_EVENTS.resource: event_columns.COLUMNS,
    table.NODES.resource: (
        NAME,
        text("Status", _node_status),
        text("Roles", _node_roles),
        AGE,
        text("Version", _node_fact("kubeletVersion", absent="")),
        text("Internal-IP", _node_address("InternalIP"), wide=True),
        text("External-IP", _node_address("ExternalIP"), wide=True),
        text("OS-Image", _node_fact("osImage"), wide=True),
        text("Kernel-Version", _node_fact("kernelVersion"), wide=True),
        text("Container-Runtime", _node_fact("containerRuntimeVersion"), wide=True),
    ),
    table.NAMESPACES.resource: (NAME, text("Status", at("status", "phase")), AGE),
    table.CONFIG_MAPS.resource: (NAME, text("Data", _count("data", "binaryData")), AGE),
    table.SECRETS.resource: (NAME, text("Type", at("type")), text("Data", _count("data")), AGE),
    table.SERVICES.resource: (
        NAME,
        text("Type", at("spec", "type")),
        text("Cluster-IP", at("spec", "clusterIP", absent=NONE)),
        text("External-IP", _service_outside),
        text("Port(s)", _service_ports),
        AGE,
        text("Selector", lambda one: written({"matchLabels": inside(one["spec"], "selector")}), wide=True),
    ),
    table.ENDPOINTS.resource: (NAME, text("Endpoints", _endpoints), AGE),
    table.ENDPOINT_SLICES.resource: (
        NAME,
        text("AddressType", at("addressType")),
        text("Ports", _slice_ports),
        text("Endpoints", _slice_endpoints),
        AGE,
    ),
    table.RESOURCE_QUOTAS.resource: (
        NAME,
        text("Request", lambda quota: _quota(quota, is_limit=False)),
        text("Limit", lambda quota: _quota(quota, is_limit=True)),
        AGE,
    ),
    table.PERSISTENT_VOLUME_CLAIMS.resource: (
        NAME,
        text("Status", at("status", "phase")),
        text("Volume", at("spec", "volumeName")),
        text("Capacity", at("status", "capacity", "storage")),
        text("Access Modes", lambda claim: ",".join(each(inside(claim, "status"), "accessModes"))),
        text("StorageClass", at("spec", "storageClassName")),
        text("VolumeAttributesClass", at("spec", "volumeAttributesClassName", absent="<unset>")),
        AGE,
        text("VolumeMode", at("spec", "volumeMode", absent="<unset>"), wide=True),
    ),
    **workload_columns.SETS,
    table.LEASES.resource: (NAME, text("Holder", at("spec", "holderIdentity")), AGE),
    table.NETWORK_POLICIES.resource: (
        NAME,
        text("Pod-Selector", lambda policy: written(policy["spec"].get("podSelector"))),
        AGE,
    ),
    table.DISRUPTION_BUDGETS.resource: (
        NAME,
        text("Min Available", lambda budget: str(budget["spec"].get("minAvailable", "N/A"))),
        text("Max Unavailable", lambda budget: str(budget["spec"].get("maxUnavailable", "N/A"))),
        text("Allowed Disruptions", at("status", "disruptionsAllowed", absent=0), type="integer"),
        AGE,
    ),
    table.PRIORITY_CLASSES.resource: (
        NAME,
        text("Value", at("value", absent=0), type="integer"),
        text("Global-Default", at("globalDefault", absent=False), type="boolean"),
        AGE,
        text("PreemptionPolicy", at("preemptionPolicy")),
    ),
    table.RUNTIME_CLASSES.resource: (NAME, text("Handler", at("handler")), AGE),
    table.ROLES.resource: (NAME, CREATED),
    table.CLUSTER_ROLES.resource: (NAME, CREATED),
    table.DEFINITIONS.resource: (NAME, CREATED),
    table.ROLE_BINDINGS.resource: _BINDING,
    table.CLUSTER_ROLE_BINDINGS.resource: _BINDING,
    table.MUTATING_WEBHOOKS.resource: _WEBHOOKS,
    table.VALIDATING_WEBHOOKS.resource: _WEBHOOKS,
    table.ADMISSION_POLICIES.resource: (
        NAME,
        text("Validations", lambda policy: len(each(policy["spec"], "validations")), type="integer"),
        text("ParamKind", lambda policy: _reference(inside(policy["spec"], "paramKind"), "apiVersion", "kind")),
        AGE,
    ),
    table.ADMISSION_POLICY_BINDINGS.resource: (
        NAME,
        text("PolicyName", at("spec", "policyName")),
        text("ParamRef", lambda binding: _reference(inside(binding["spec"], "paramRef"), "namespace", "name")),
        AGE,
    ),
}


def _reference(reference: Frozen, first: str, second: str) -> str:
    if not reference:
        return "<unset>"
    return f"{reference.get(first, '*')}/{reference.get(second, '*')}"
