"""Our in-container library: where it comes from, how a host comes to have it, how plain processes find it.

On a kubelet the catalogue says what is mounted; this is for what data cannot do. A host's library is the one that its
agent came with: it is put in place whole and under another inode, so containers that run keep the one they have.
"""

from collections.abc import Iterable
from pathlib import Path

import structlog

from tessera.files import put_whole
from tessera.vendors.rendering import ContainerEdits

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
LIBRARY = "libtessera.so"
PRELOAD_FILE = "ld.so.preload"
LIBRARY_IN_CONTAINER = f"/run/tessera/lib/{LIBRARY}"
PRELOADED = "LD_PRELOAD"
BUILT = Path(__file__).parents[3] / "build" / "native" / LIBRARY
"""Where `make native` builds it."""
IN_IMAGE = Path("/usr/local/lib/tessera") / LIBRARY
"""Where an image has it."""
PUBLIC = 0o755


def find_guard(places: Iterable[Path] = (BUILT, IN_IMAGE)) -> Path | None:
    return next((place for place in places if place.exists()), None)


def hook_directory(hook_path: str) -> Path:
    """Of the host, for what is mounted into containers."""
    return Path(hook_path) / "tessera"


def install_guard(source: Path, directory: Path) -> None:
    """For containers: the library, and the file by which their loader knows it."""
    keep_guard(source, directory)
    _keep(directory / PRELOAD_FILE, f"{LIBRARY_IN_CONTAINER}\n".encode())


def keep_guard(source: Path, directory: Path) -> Path:
    """A copy that nobody builds anew under those who have it loaded.

    It is what `source` is, whichever is newer: an agent that was set back brings its own again.
    """
    directory.mkdir(parents=True, exist_ok=True)
    _keep(directory / LIBRARY, source.read_bytes())
    return directory / LIBRARY


def _keep(place: Path, content: bytes) -> None:
    if not place.exists() or place.read_bytes() != content:
        put_whole(place, content, mode=PUBLIC)
        log.info("in-container library installed", path=str(place))


def guard_process(library: Path, *, limits: Path, region: Path, cards: Path, agent: Path) -> ContainerEdits:
    """For a container that is processes in this machine's own file system: all is told by variables.

    `limits` and `region` are the container's, `cards` and `agent` those of its node.
    """
    return ContainerEdits(
        environment={
            PRELOADED: str(library),
            "TESSERA_LIMITS": str(limits),
            "TESSERA_REGION": str(region),
            "TESSERA_CARDS": str(cards),
            "TESSERA_AGENT": str(agent),
        }
    )
