"""OpenAPI v3: where the schemas of each group and version are, and by which hash a client knows that they changed.

Nothing is kept. A document is made when somebody asks for it, and clients remember it by its hash.
"""

from collections.abc import Iterable, Sequence
from hashlib import sha256

from tessera.embedded.documents import Document
from tessera.embedded.resources import Served
from tessera.embedded.schemas import openapi_of
from tessera.embedded.serving.discovery import VERSION
from tessera.embedded.serving.envelopes import encode


def index(kinds: Iterable[Served]) -> Document:
    paths: Document = {}
    for place, served in _by_place(kinds).items():
        paths[place] = {"serverRelativeURL": f"/openapi/v3/{place}?hash={fingerprint(served)}"}
    return {"paths": paths}


def at_place(kinds: Iterable[Served], place: str) -> Sequence[Served]:
    """What is served at `api/v1` or `apis/batch/v1`."""
    return _by_place(kinds).get(place, [])


def fingerprint(served: Sequence[Served]) -> str:
    """Of what the document is made of, without making it."""
    digest = sha256(VERSION.encode())
    for one in served:
        digest.update(encode(one.kind))
        if one.is_custom and one.schema:
            digest.update(encode(one.schema.raw))
    return digest.hexdigest()[:32].upper()


def document(served: Sequence[Served]) -> Document:
    """`served` are all of one group and version."""
    first = served[0].kind
    return openapi_of(first.group, first.version, [(one.kind, one.schema) for one in served if one.schema])


def _by_place(kinds: Iterable[Served]) -> dict[str, list[Served]]:
    places = dict[str, list[Served]]()
    for served in kinds:
        root = "apis" if served.kind.group else "api"
        places.setdefault(f"{root}/{served.kind.api_version}", []).append(served)
    return places
