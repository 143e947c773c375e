"""Objects as the API server has them: plain dictionaries, of which any part may be missing or of an odd shape.

MPIJobs come from anywhere. A foreign one must never break the reader, so whatever is not as it should be reads as
empty.
"""

import copy
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, Optional, cast

Document = dict[str, Any]

GROUP, VERSION, KIND, PLURAL = "kubeflow.org", "v2beta1", "MPIJob", "mpijobs"
API_VERSION = f"{GROUP}/{VERSION}"
SERVER_METADATA = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
)
"""What the API server writes, and refuses or ignores in a new object."""
RAN_ON = "tessera.io/ranks-ran-on"
"""What Tessera's controller notes on a job; a new one has not run anywhere yet."""


def mapping_at(document: object, *path: str) -> Mapping[str, Any]:
    """The mapping there, or an empty one."""
    found = value_at(document, *path)
    return cast(Mapping[str, Any], found) if isinstance(found, Mapping) else {}


def list_at(document: object, *path: str) -> list[Any]:
    """The list there, or an empty one."""
    found = value_at(document, *path)
    return list(cast(list[Any], found)) if isinstance(found, list) else []


def mappings_at(document: object, *path: str) -> list[Mapping[str, Any]]:
    """The mappings in the list there."""
    return [cast(Mapping[str, Any], one) for one in list_at(document, *path) if isinstance(one, Mapping)]


def text_at(document: object, *path: str) -> str:
    found = value_at(document, *path)
    return found if isinstance(found, str) else ""


def int_at(document: object, *path: str) -> Optional[int]:
    found = value_at(document, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def value_at(document: object, *path: str) -> object:
    found = document
    for step in path:
        if not isinstance(found, Mapping):
            return None
        found = cast(Mapping[str, Any], found).get(step)
    return found


def section(document: Document, *path: str) -> Document:
    """The dictionary there, made where there is none, to be written to."""
    here = document
    for step in path:
        below = here.get(step)
        if not isinstance(below, dict):
            below = here[step] = {}
        here = cast(Document, below)
    return here


def put(document: Document, key: str, value: object) -> None:
    """None and emptiness are told by absence."""
    if value is None or value == [] or value == {}:
        document.pop(key, None)
    else:
        document[key] = copy.deepcopy(value)


def without_server_parts(document: Mapping[str, Any]) -> Document:
    """What somebody wants, without what became of it."""
    wanted = copy.deepcopy({key: value for key, value in document.items() if key != "status"})
    metadata = wanted.get("metadata")
    if isinstance(metadata, dict):
        for key in SERVER_METADATA:
            cast(Document, metadata).pop(key, None)
        noted = mapping_at(cast(object, metadata), "annotations")
        if RAN_ON in noted:
            put(cast(Document, metadata), "annotations", {key: noted[key] for key in noted if key != RAN_ON})
    return wanted


def time_at(document: object, *path: str) -> Optional[datetime]:
    """A timestamp of Kubernetes, with its time zone."""
    text = text_at(document, *path)
    for form in ("%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S.%fZ"):
        try:
            return datetime.strptime(text, form).replace(tzinfo=timezone.utc)
        except ValueError:
            continue
    return None
