"""A pod's ServiceAccount: `default` unless it says another, and a volume with the account's token."""

from collections.abc import Sequence

from tessera.embedded.admitting.requests import Reader, Request
from tessera.embedded.documents import Document, Frozen
from tessera.embedded.refusals import forbidden

ACCOUNTS = "serviceaccounts"
DEFAULT = "default"
MOUNTED_AT = "/var/run/secrets/kubernetes.io/serviceaccount"
VOLUME = "kube-api-access-"
_LIFETIME_S = 3607
_MODE = 0o644


def give_account(request: Request, pod: Document, reader: Reader, suffix: str) -> Document:
    """A pod with its account; `pod` stays as it is. `suffix` makes the name of its volume unique."""
    spec: Document = pod["spec"]
    name: str = spec.get("serviceAccountName") or spec.get("serviceAccount") or DEFAULT
    account = reader.get(ACCOUNTS, request.namespace, name)
    if account is None:
        why = f'error looking up service account {request.namespace}/{name}: serviceaccount "{name}" not found'
        raise forbidden(request.kind, request.name, why)
    given: Document = {**spec, "serviceAccountName": name, "serviceAccount": name}
    if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
        given["imagePullSecrets"] = list(account["imagePullSecrets"])
    if _mounts_token(spec, account):
        given = _with_token(given, f"{VOLUME}{suffix}")
    return {**pod, "spec": given}


def _mounts_token(spec: Frozen, account: Frozen) -> bool:
    for said in (spec.get("automountServiceAccountToken"), account.get("automountServiceAccountToken")):
        if said is not None:
            return bool(said)
    return True


def _with_token(spec: Document, volume: str) -> Document:
    """Mounted into every container that has nothing of its own there."""
    mount = {"name": volume, "readOnly": True, "mountPath": MOUNTED_AT}
    changed: Document = {}
    for field in ("initContainers", "containers"):
        containers: Sequence[Document] = spec.get(field) or ()
        mounted = [_mounted(container, mount) for container in containers]
        if mounted != list(containers):
            changed[field] = mounted
    if not changed:
        return spec
    return {**spec, **changed, "volumes": [*(spec.get("volumes") or ()), _token_volume(volume)]}


def _mounted(container: Document, mount: Document) -> Document:
    mounts: Sequence[Frozen] = container.get("volumeMounts") or ()
    if any(one.get("mountPath") == MOUNTED_AT for one in mounts):
        return container
    return {**container, "volumeMounts": [*mounts, mount]}


def _token_volume(name: str) -> Document:
    namespace = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    sources: list[Document] = [
        {"serviceAccountToken": {"expirationSeconds": _LIFETIME_S, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": namespace}]}},
    ]
    return {"name": name, "projected": {"sources": sources, "defaultMode": _MODE}}
