"""The files of the repository: what git tracks, and what it would track if it were added now."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def own_files(pattern: str = "*") -> list[Path]:
    """Every file of ours whose path matches, as git sees it, that still exists."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", pattern],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    paths = (ROOT / name for name in listing.split("\0") if name)
    return sorted(path for path in paths if path.is_file())
