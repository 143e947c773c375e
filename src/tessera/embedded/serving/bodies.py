"""Bodies of requests: read to their end, decoded, and in agreement with the path."""

from functools import cache
from http import HTTPStatus
from typing import Any, cast

import msgspec

from tessera.bodies import Receive, TooLarge, read_body
from tessera.embedded.documents import Document
from tessera.embedded.kinds import Kind
from tessera.embedded.refusals import ApiRefusal, bad_request, unsupported_media_type
from tessera.embedded.resources.parts import part_of
from tessera.embedded.serving.paths import Target
from tessera.embedded.serving.protobuf import MEDIA_TYPE, Undecodable, decode_message

MOST_BYTES = 3 * 2**20
"""As kube-apiserver: nobody needs larger objects, and anybody may send one."""

_JSON = frozenset({"", "application/json"})
_YAML = frozenset({"application/yaml", "application/x-yaml", "text/yaml", "application/apply-patch+yaml"})


async def read_bounded(receive: Receive) -> bytes:
    try:
        return await read_body(receive, MOST_BYTES)
    except TooLarge:
        text = f"Request entity too large: limit is {MOST_BYTES}"
        raise ApiRefusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "RequestEntityTooLarge", text) from None


def decode_any(body: bytes, content_type: str) -> Any:
    media = content_type.partition(";")[0].strip()
    if media in _YAML:
        return _from_yaml(body)
    if media == MEDIA_TYPE:
        return _from_protobuf(body)
    if media not in _JSON and not media.endswith("+json"):
        accepted = f"application/json, application/yaml, {MEDIA_TYPE}"
        raise unsupported_media_type(
            f"the body of the request was in an unknown format - accepted media types include: {accepted}"
        )
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise bad_request(f"the object provided is unrecognized (must be of type JSON): {error}") from None


def decode_object(body: bytes, content_type: str) -> Document:
    document = decode_any(body, content_type)
    if not isinstance(document, dict):
        raise bad_request(f"the object provided is {_named(document)}, expected an object")
    return cast("Document", document)


def decode_optional(body: bytes, content_type: str) -> Document:
    """Options of a deletion need not be given."""
    return decode_object(body, content_type) if body.strip() else {}


def agree(document: Document, kind: Kind, target: Target) -> None:
    """Refuse a body of another kind, name or namespace than its path; fill in what it leaves out."""
    said_kind, said_version = document.get("kind") or kind.kind, document.get("apiVersion") or kind.api_version
    if (said_kind, said_version) != (kind.kind, kind.api_version):
        raise bad_request(
            f"{said_kind} in version {said_version!r} cannot be handled as a {kind.kind}: expected {kind.kind} in"
            f" version {kind.api_version!r}"
        )
    document["kind"], document["apiVersion"] = kind.kind, kind.api_version
    if not isinstance(document.get("metadata") or {}, dict):
        raise bad_request(f"metadata is {_named(document['metadata'])}, expected an object")
    metadata = part_of(document, "metadata")
    _agree_on_name(metadata, target)
    _agree_on_namespace(metadata, kind, target)


def _agree_on_name(metadata: Document, target: Target) -> None:
    if not target.name:
        return
    name = metadata.setdefault("name", target.name)
    if name != target.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({target.name})")


def _agree_on_namespace(metadata: Document, kind: Kind, target: Target) -> None:
    if not kind.is_namespaced:
        metadata.pop("namespace", None)
        return
    namespace = metadata.get("namespace") or target.namespace
    if namespace != target.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    metadata["namespace"] = namespace


def _named(value: Any) -> str:
    if isinstance(value, str):
        return "a string"
    return "a list" if isinstance(value, list) else "a plain value"


def _from_protobuf(body: bytes) -> Document:
    try:
        return decode_message(body)
    except Undecodable as error:
        raise bad_request(str(error)) from None


def _from_yaml(body: bytes) -> Any:
    import yaml  # costs more than a start should, and most clients send JSON

    try:
        return yaml.load(body, Loader=_plain_loader())
    except yaml.YAMLError as error:
        raise bad_request(f"the object provided is unrecognized (must be of type YAML): {error}") from None


@cache
def _plain_loader() -> Any:
    """A loader to which a date is a string, as it is in JSON."""
    import yaml

    resolvers = {
        first: [(tag, pattern) for tag, pattern in known if tag != "tag:yaml.org,2002:timestamp"]
        for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    return type("Loader", (getattr(yaml, "CSafeLoader", yaml.SafeLoader),), {"yaml_implicit_resolvers": resolvers})
