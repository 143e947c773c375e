"""Whether a write changes anything: one that does not is answered and not made."""

from collections.abc import Sequence

from tessera.embedded.documents import Document, Frozen

_LEFT_OUT_WHEN_EMPTY = ("labels", "annotations", "finalizers", "ownerReferences", "managedFields")


def drop_empty(metadata: Document) -> None:
    """Kubernetes leaves out what is empty, so that a client finds the key absent."""
    for field in _LEFT_OUT_WHEN_EMPTY:
        if field in metadata and not metadata[field]:
            del metadata[field]


def says_the_same(one: Frozen, other: Frozen) -> bool:
    """But for when a field was last written and by which version the object is known."""
    return _comparable(one) == _comparable(other)


def _comparable(document: Frozen) -> Document:
    metadata = {field: value for field, value in document["metadata"].items() if field != "resourceVersion"}
    if "managedFields" in metadata:
        metadata["managedFields"] = _without_times(metadata["managedFields"])
    return {**document, "metadata": metadata}


def _without_times(entries: Sequence[Frozen]) -> list[Document]:
    return [{field: value for field, value in entry.items() if field != "time"} for entry in entries]
