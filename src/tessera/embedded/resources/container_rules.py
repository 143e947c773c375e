"""What one container must be like."""

from collections.abc import Mapping
from typing import Any

from tessera.embedded import causes
from tessera.embedded.documents import Frozen
from tessera.embedded.refusals import Cause
from tessera.embedded.resources import amounts, names
from tessera.embedded.resources.parts import each, inside

PROTOCOLS = ("SCTP", "TCP", "UDP")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("FallbackToLogsOnError", "File")
_OWN_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_PROBE_NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_FIELDS = frozenset(
    {
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "metadata.labels",
        "metadata.annotations",
        "spec.nodeName",
        "spec.serviceAccountName",
        "spec.restartPolicy",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    }
)


def check_container(container: Frozen, volumes: set[str], field: str) -> list[Cause]:
    """`volumes` are the names that it may mount."""
    found = _check_identity(container, field)
    for number, port in enumerate(each(container, "ports")):
        found += _check_port(port, f"{field}.ports[{number}]")
    for number, variable in enumerate(each(container, "env")):
        found += _check_variable(variable, f"{field}.env[{number}]")
    for number, mount in enumerate(each(container, "volumeMounts")):
        found += _check_mount(mount, volumes, f"{field}.volumeMounts[{number}]")
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(name) is not None:
            found += _check_probe(container[name], f"{field}.{name}", once=name != "readinessProbe")
    found += _check_policies(container, field)
    return found + amounts.check_container(inside(container, "resources"), f"{field}.resources")


def _check_identity(container: Frozen, field: str) -> list[Cause]:
    name, image = container.get("name") or "", container.get("image") or ""
    found: list[Cause] = []
    if not name:
        found.append(causes.required(f"{field}.name"))
    elif sentences := names.label(name):
        found += [causes.invalid(f"{field}.name", name, sentence) for sentence in sentences]
    if not image:
        found.append(causes.required(f"{field}.image"))
    elif image != image.strip():
        found.append(causes.invalid(f"{field}.image", image, "must not have leading or trailing whitespace"))
    return found


def _check_policies(container: Frozen, field: str) -> list[Cause]:
    found = causes.unsupported_choice(f"{field}.imagePullPolicy", container.get("imagePullPolicy"), _PULL_POLICIES)
    message_policy = container.get("terminationMessagePolicy")
    found += causes.unsupported_choice(f"{field}.terminationMessagePolicy", message_policy, _MESSAGE_POLICIES)
    if container.get("restartPolicy") is not None:
        found += causes.unsupported_choice(f"{field}.restartPolicy", container["restartPolicy"], _OWN_RESTART_POLICIES)
    return found


def _check_port(port: Frozen, field: str) -> list[Cause]:
    found: list[Cause] = []
    if port.get("name"):
        found += [causes.invalid(f"{field}.name", port["name"], told) for told in names.port_name(port["name"])]
    if not port.get("containerPort"):
        found.append(causes.required(f"{field}.containerPort"))
    else:
        found += check_number(port["containerPort"], f"{field}.containerPort")
    if port.get("hostPort"):
        found += check_number(port["hostPort"], f"{field}.hostPort")
    return found + causes.unsupported_choice(f"{field}.protocol", port.get("protocol"), PROTOCOLS)


def check_number(port: int, field: str) -> list[Cause]:
    return [causes.invalid(field, port, sentence) for sentence in names.port_number(port)]


def check_port(port: int | str, field: str) -> list[Cause]:
    """A port by number or by name."""
    if isinstance(port, int):
        return check_number(port, field)
    return [causes.invalid(field, port, sentence) for sentence in names.port_name(port)]


def _check_variable(variable: Frozen, field: str) -> list[Cause]:
    name = variable.get("name") or ""
    found = [] if name else [causes.required(f"{field}.name")]
    if name:
        found += [causes.invalid(f"{field}.name", name, told) for told in names.environment_name(name)]
    source: Mapping[str, Any] | None = variable.get("valueFrom")
    if source is None:
        return found
    field = f"{field}.valueFrom"
    given = [kind for kind in _SOURCES if source.get(kind) is not None]
    if not given:
        listed = ", ".join(f"`{kind}`" for kind in _SOURCES[:-1]) + f" or `{_SOURCES[-1]}`"
        return [*found, causes.invalid(field, "", f"must specify one of: {listed}")]
    if variable.get("value"):
        found.append(causes.invalid(field, "", "may not be specified when `value` is not empty"))
    if len(given) > 1:
        found.append(causes.invalid(field, "", "may not have more than one field specified at a time"))
    if "fieldRef" in given:
        found += _check_reference(source["fieldRef"], f"{field}.fieldRef")
    return found


def _check_reference(reference: Frozen, field: str) -> list[Cause]:
    path: str = reference.get("fieldPath") or ""
    if not path:
        return [causes.required(f"{field}.fieldPath")]
    if path.partition("['")[0] in _FIELDS:
        return []
    detail = f"error converting fieldPath: field label not supported: {path}"
    return [causes.invalid(f"{field}.fieldPath", path, detail)]


def _check_mount(mount: Frozen, volumes: set[str], field: str) -> list[Cause]:
    name = mount.get("name") or ""
    found: list[Cause] = []
    if not name:
        found.append(causes.required(f"{field}.name"))
    elif name not in volumes:
        found.append(causes.not_found(f"{field}.name", name))
    if not mount.get("mountPath"):
        found.append(causes.required(f"{field}.mountPath"))
    return found


def _check_probe(probe: Frozen, field: str, *, once: bool) -> list[Cause]:
    """`once` is for probes where one success is all that can be asked for."""
    given = [handler for handler in _HANDLERS if probe.get(handler) is not None]
    found: list[Cause] = []
    if not given:
        found.append(causes.required(field, "must specify a handler type"))
    if "exec" in given and not probe["exec"].get("command"):
        found.append(causes.required(f"{field}.exec.command"))
    if "httpGet" in given:
        found += check_port(probe["httpGet"].get("port", 0), f"{field}.httpGet.port")
    if "tcpSocket" in given and given[0] == "tcpSocket":
        found += check_port(probe["tcpSocket"].get("port", 0), f"{field}.tcpSocket.port")
    found += [causes.forbidden(f"{field}.{more}", "may not specify more than 1 handler type") for more in given[1:]]
    for name in _PROBE_NUMBERS:
        found += causes.below_zero(f"{field}.{name}", probe.get(name))
    if once and probe.get("successThreshold", 1) not in (0, 1):
        found.append(causes.invalid(f"{field}.successThreshold", probe["successThreshold"], "must be 1"))
    return found
