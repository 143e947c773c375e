"""In which form an answer is wanted: whole objects, their metadata alone, or a table for people."""

from enum import StrEnum
from functools import lru_cache
from http import HTTPStatus

from tessera.embedded.refusals import ApiRefusal

_ANYTHING = frozenset({"", "*/*", "application/*", "application/json", "text/*", "text/plain"})
"""Health and logs are text, so whoever asks for text is heard; objects are JSON all the same."""
_AGGREGATED = ("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList")


class Form(StrEnum):
    OBJECT = "object"
    METADATA = "metadata"
    TABLE = "table"
    DISCOVERY = "discovery"


@lru_cache(maxsize=64)
def read_form(accept: bytes) -> Form:
    """The first that we have of those that are accepted, in their order."""
    for entry in accept.decode("latin-1").split(","):
        media, *parameters = (part.strip() for part in entry.split(";"))
        if media not in _ANYTHING:
            continue
        form = _form({key: value for key, _, value in (parameter.partition("=") for parameter in parameters)})
        if form is not None:
            return form
    message = "only the following media types are accepted: application/json"
    raise ApiRefusal(HTTPStatus.NOT_ACCEPTABLE, "NotAcceptable", message)


def _form(parameters: dict[str, str]) -> Form | None:
    wanted = (parameters.get("g", ""), parameters.get("v", ""), parameters.get("as", ""))
    match wanted:
        case (_, _, ""):
            return Form.OBJECT
        case ("meta.k8s.io", "v1", "Table"):
            return Form.TABLE
        case ("meta.k8s.io", "v1", "PartialObjectMetadata" | "PartialObjectMetadataList"):
            return Form.METADATA
        case _:
            return Form.DISCOVERY if wanted == _AGGREGATED else None
