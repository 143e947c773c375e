"""Namespaces: held by a finalizer of their own until everything in them is gone."""

from tessera.embedded.documents import Document, Frozen
from tessera.embedded.resources import names
from tessera.embedded.resources.parts import inside, part_of, put_back
from tessera.embedded.resources.strategy import Strategy

NAME_LABEL = "kubernetes.io/metadata.name"
FINALIZER = "kubernetes"


class Namespaces(Strategy):
    has_status = True

    def check_name(self, name: str) -> list[str]:
        return names.name_without_dots(name)

    def default(self, document: Document) -> Document:
        metadata = part_of(document, "metadata")
        if metadata.get("name"):
            part_of(metadata, "labels")[NAME_LABEL] = metadata["name"]
        return document

    def prepare_create(self, document: Document, now: str) -> Document:
        part_of(document["metadata"], "labels")[NAME_LABEL] = document["metadata"]["name"]  # a generated one too
        finalizers: list[str] = part_of(document, "spec").get("finalizers") or []
        if FINALIZER not in finalizers:
            document["spec"]["finalizers"] = [*finalizers, FINALIZER]
        return super().prepare_create(document, now)

    def initial_status(self, document: Frozen, now: str) -> Document:
        del document, now
        return {"phase": "Active"}

    def begin_deletion(self, document: Document, now: str) -> Document:
        del now
        document["status"] = {**inside(document, "status"), "phase": "Terminating"}
        return document

    def prepare_update(self, new: Document, old: Frozen) -> Document:
        put_back(part_of(new, "spec"), inside(old, "spec"), "finalizers")
        return super().prepare_update(new, old)
