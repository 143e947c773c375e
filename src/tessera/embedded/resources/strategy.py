"""What a kind demands of its objects, in the order in which a write asks for it.

A create is `default`, then admission, then `prepare_create`, then `validate`. An update is `default`, admission,
`prepare_update` and `validate_update`; one of the status subresource has its own pair. Documents are the caller's own:
they are changed in place and returned. Each step may be done twice without harm.
"""

from tessera.embedded.documents import Document, Frozen
from tessera.embedded.refusals import Cause
from tessera.embedded.resources import metadata, names
from tessera.embedded.resources.parts import put_back

BESIDE_THE_SPEC = frozenset({"apiVersion", "kind", "metadata", "status"})


class Strategy:
    """The rules of a kind that has none of its own: data that is kept as it is."""

    has_status: bool = False
    """Status is written through its own subresource, and by nothing else."""
    counts_generation: bool = False
    keeps_labels_in_status: bool = False
    """A write of the status leaves the labels alone as well."""

    def default(self, document: Document) -> Document:
        """Fill in what was left out and bring quantities into their form, as decoding does."""
        return document

    def prepare_create(self, document: Document, now: str) -> Document:
        """Set what the server alone decides; the identity is already there."""
        if self.has_status:
            document.pop("status", None)
            initial = self.initial_status(document, now)
            if initial is not None:
                document["status"] = initial
        if self.counts_generation:
            document["metadata"]["generation"] = 1
        return document

    def prepare_update(self, new: Document, old: Frozen) -> Document:
        """Put back what a write to the object cannot change, and count the generation."""
        if self.has_status:
            put_back(new, old, "status")
        return self.count_generation(new, old)

    def prepare_status(self, new: Document, old: Frozen) -> Document:
        """Put back everything but the status and metadata."""
        for field in {*new, *old} - BESIDE_THE_SPEC:
            put_back(new, old, field)
        meta, before = new["metadata"], old["metadata"]
        put_back(meta, before, "ownerReferences")
        if self.keeps_labels_in_status:
            put_back(meta, before, "labels")
        put_back(meta, before, "generation")
        return new

    def validate(self, document: Frozen) -> list[Cause]:
        """Everything that is wrong with an object as it is."""
        return metadata.check(document["metadata"], self.check_name) + self.check(document)

    def validate_update(self, new: Frozen, old: Frozen) -> list[Cause]:
        """Everything that is wrong with an object that takes the place of another."""
        changed = metadata.check_change(new["metadata"], old["metadata"])
        return changed + self.validate(new) + self.check_change(new, old)

    def validate_status(self, new: Frozen, old: Frozen) -> list[Cause]:
        """Everything that is wrong with a new status, and with the metadata that came along."""
        changed = metadata.check_change(new["metadata"], old["metadata"])
        return changed + metadata.check(new["metadata"], self.check_name) + self.check_status(new, old)

    def grace_s(self, document: Frozen, options: Frozen) -> int | None:
        """How long a deletion waits for whoever runs the object; None where nothing runs."""
        del document, options
        return None

    def begin_deletion(self, document: Document, now: str) -> Document:
        """Say that the object is about to go, and hold it where something must go before it."""
        del now
        return document

    # What a kind says of itself.

    def check_name(self, name: str) -> list[str]:
        """What is wrong with a name, in sentences."""
        return names.subdomain(name)

    def initial_status(self, document: Frozen, now: str) -> Document | None:
        """The status of a new object, where it has one from the start."""
        del document, now
        return {}

    def check(self, document: Frozen) -> list[Cause]:
        """What is wrong beside the metadata."""
        del document
        return []

    def check_change(self, new: Frozen, old: Frozen) -> list[Cause]:
        """What must not change."""
        del new, old
        return []

    def check_status(self, new: Frozen, old: Frozen) -> list[Cause]:
        del new, old
        return []

    def count_generation(self, new: Document, old: Frozen) -> Document:
        if not self.counts_generation:
            put_back(new["metadata"], old["metadata"], "generation")
            return new
        before: int = old["metadata"].get("generation", 1)
        new["metadata"]["generation"] = before + 1 if self.has_changed(new, old) else before
        return new

    def has_changed(self, new: Frozen, old: Frozen) -> bool:
        """Whether something changed that was asked for, rather than said about the object or observed of it."""
        return any(new.get(field) != old.get(field) for field in {*new, *old} - BESIDE_THE_SPEC)
