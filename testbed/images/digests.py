"""SHA-256 of files of any size, read piece by piece."""

import hashlib
from pathlib import Path


def file_digest(path: Path) -> str:
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
