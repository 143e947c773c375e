"""Parts of documents that may be left out or null, as Kubernetes permits for nearly all of them."""

from typing import cast

from tessera.embedded.documents import Frozen

NOTHING: Frozen = {}


def part(document: Frozen, *path: str) -> Frozen:
    """The mapping at the end of the path; an empty one, where there is none."""
    found = document
    for step in path:
        found = cast("Frozen | None", found.get(step)) or NOTHING
    return found


def listed(document: Frozen, *path: str) -> list[Frozen]:
    """The list of mappings at the end of the path; an empty one, where there is none."""
    return cast("list[Frozen] | None", part(document, *path[:-1]).get(path[-1])) or []
