"""Where the embedded engine keeps everything, and what a later start must know to find it again.

D/engine.json   which nodes there are, what cards they have, and at which port the API server was
D/state.db      all objects (`api_server` has the rest of the files beside it)
D/runtime/      the pods' volumes and logs
D/nodes/        for each node what its containers were given
D/logs/         what the components say
"""

import fcntl
import os
import ssl
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from tessera.errors import InvalidInput, InvalidStore, StoreFailed
from tessera.files import put_whole
from tessera.model.cores_policy import CoresPolicy

PRIVATE, OURS = 0o600, 0o700
LAYOUT = 1
LOCK = "state.db.lock"


class EngineSettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`cards` describes those of every node, as `--cards` takes it; `cards_file` is a file that does.

    Without either they are this machine's own. `scheduler_config` is the file of a KubeSchedulerConfiguration.
    `cores_policy` and `spill_percent` are how containers are held to their limits.
    """

    nodes: int = 4
    cards: str = ""
    cards_file: str = ""
    scheduler_config: str = ""
    cores_policy: CoresPolicy = "force"
    spill_percent: int = 0
    port: int = 0
    layout: int = LAYOUT

    @property
    def has_real_cards(self) -> bool:
        return not self.cards and not self.cards_file


class StateDirectory:
    """`open` makes it where it is not there."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.kubeconfig = self.path / "kubeconfig"
        self.log = self.path / "logs" / "engine.log"
        self._settings = self.path / "engine.json"

    def open(self) -> None:
        """Nobody else may look into it: Secrets are in there."""
        with self.used():
            self.path.mkdir(mode=OURS, parents=True, exist_ok=True)
            for name in ("logs", "nodes", "runtime"):
                (self.path / name).mkdir(mode=OURS, exist_ok=True)
            probe = self.path / f".writable.{os.getpid()}"
            probe.write_bytes(b"x" * 4096)
            probe.unlink()

    @contextmanager
    def used(self) -> Generator[None]:
        """Whatever the disk refuses within the block is told in one sentence."""
        try:
            yield
        except OSError as error:
            why = error.strerror or str(error)
            raise StoreFailed(
                f"{error.filename or self.path}: cannot be used: {why}, expected a directory that we may write and that"
                " has room; name another with --state-dir"
            ) from error

    def check_certificate(self) -> None:
        """That of the API server, where an earlier start has made one."""
        certificate, key = self.path / "tls.crt", self.path / "tls.key"
        if not key.exists():
            return
        try:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(self.path / "ca.crt"))
            context.load_cert_chain(certificate, key)
        except (OSError, ssl.SSLError) as error:
            raise InvalidStore(
                f"{key}: does not go with tls.crt and ca.crt beside it: {error}, expected the API server's certificate"
                " and its key; remove tls.key, and the next start makes new ones"
            ) from None

    def read_settings(self) -> EngineSettings | None:
        """None where no engine has been yet."""
        if not self._settings.exists():
            return None
        try:
            settings = msgspec.json.decode(self._settings.read_bytes(), type=EngineSettings)
        except (OSError, msgspec.MsgspecError) as error:
            raise InvalidInput(
                f"{self._settings}: cannot be read: {error}; remove it, and the next start takes its options alone"
            ) from None
        if settings.layout != LAYOUT:
            raise InvalidInput(
                f"{self._settings}: has layout {settings.layout}, expected {LAYOUT}; use the version of Tessera that"
                " wrote it, or choose another state directory"
            )
        return settings

    def write_settings(self, settings: EngineSettings) -> None:
        put_whole(self._settings, msgspec.json.encode(settings), mode=PRIVATE)

    def holder(self) -> int | None:
        """The process that has the directory now, None if nobody has."""
        try:
            lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            said = os.pread(lock, 32, 0).decode(errors="replace").strip()
            return int(said) if said.isdecimal() else None
        finally:
            os.close(lock)
        return None


def default_path(environment: Mapping[str, str] = os.environ) -> Path:
    """As XDG has it: what is kept between runs and is not worth a backup."""
    base = environment.get("XDG_STATE_HOME") or Path(environment.get("HOME") or "~").expanduser() / ".local" / "state"
    return Path(base) / "tessera"
