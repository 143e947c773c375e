"""A namespace must be there for anything to be made in it, and must not be going."""

from tessera.embedded.admitting.requests import Reader, Request
from tessera.embedded.kinds import Kind
from tessera.embedded.refusals import ApiRefusal, Cause, forbidden, not_found

_NAMESPACES = Kind(version="v1", kind="Namespace", plural="namespaces", is_namespaced=False)
IMMORTAL = ("default", "kube-system", "kube-public")


def check_namespace(request: Request, reader: Reader) -> None:
    if request.operation == "DELETE" and request.kind.resource == _NAMESPACES.plural and request.name in IMMORTAL:
        raise forbidden(request.kind, request.name, "this namespace may not be deleted")
    if request.operation != "CREATE" or not request.kind.is_namespaced:
        return
    namespace = reader.get(_NAMESPACES.plural, "", request.namespace)
    if namespace is None:
        raise not_found(_NAMESPACES, request.namespace)
    if namespace["metadata"].get("deletionTimestamp"):
        raise _terminating(request)


def _terminating(request: Request) -> ApiRefusal:
    where = request.namespace
    why = f"unable to create new content in namespace {where} because it is being terminated"
    said = forbidden(request.kind, request.name, why)
    cause = Cause("NamespaceTerminating", f"namespace {where} is being terminated", "metadata.namespace")
    return ApiRefusal(said.code, said.reason, said.message, {**said.details, "causes": [cause._asdict()]})
