"""The certificates of one pod as files, made anew when they are not good any more."""

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from tessera.admission.certificates.pod_local import PodLocal, is_good_for, make_pod_local
from tessera.files import put_whole
from tessera.kube.tls import Certificate

PUBLIC, SECRET = 0o644, 0o600


def keep_pod_local(out: Path, hosts: tuple[str, ...]) -> None:
    now = datetime.now(UTC)
    found = _read(out)
    if found is None or not is_good_for(hosts, found, now):
        out.mkdir(parents=True, exist_ok=True)
        _write(out, make_pod_local(hosts, now))


def _read(out: Path) -> PodLocal | None:
    with suppress(FileNotFoundError):
        chain, key = (out / "tls.crt").read_bytes(), (out / "tls.key").read_bytes()
        return PodLocal((out / "ca.crt").read_bytes(), Certificate(chain, key))
    return None


def _write(out: Path, made: PodLocal) -> None:
    put_whole(out / "ca.crt", made.authority, mode=PUBLIC)
    put_whole(out / "tls.crt", made.serving.chain, mode=PUBLIC)
    put_whole(out / "tls.key", made.serving.key, mode=SECRET)
