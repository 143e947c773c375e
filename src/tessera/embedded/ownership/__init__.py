"""Who owns which field: server-side apply and managedFields, in the form that Kubernetes gives them.

Every write leaves behind who made it and which fields it set. An apply is then a wish about some fields: it merges
them in, removes what its maker once applied and no longer mentions, and is refused where somebody else owns a field
that it would change. Pure: documents and the time come in, documents and conflicts go out.
"""

from tessera.embedded.ownership.applying import ApplyConflict, apply
from tessera.embedded.ownership.entries import Write
from tessera.embedded.ownership.updating import note_update

__all__ = ["ApplyConflict", "Write", "apply", "note_update"]
