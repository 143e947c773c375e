"""Templates as short words: the same template always has the same one."""

import hashlib
import json

from tessera.kube.objects import Document

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_LENGTH = 10


def hash_of(template: Document) -> str:
    """Of letters and digits that spell no words."""
    digest = hashlib.sha256(json.dumps(template, sort_keys=True).encode()).digest()
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:_LENGTH])
