"""The TLS context that the web server is given once, and what its connections are shown, which changes.

Each new connection asks which certificate is the newest. Those that stand keep theirs, so nothing is cut off.
"""

import asyncio
import ssl
from pathlib import Path

import structlog

from tessera.errors import CredentialsFailed
from tessera.kube.timing import SYSTEM_CLOCK, Clock
from tessera.kube.tls import Certificate, load_chain

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class ServingContext:
    """Give `context` to the server. Until there is a certificate to be `shown`, connections are refused."""

    def __init__(self) -> None:
        self.shown: Certificate | None = None
        self._newest: ssl.SSLContext | None = None
        self.context = _empty_context()
        self.context.sni_callback = self._show_newest

    def use(self, certificate: Certificate) -> bool:
        """Show it from now on; says whether that is a change."""
        if certificate == self.shown:
            return False
        newest = _empty_context()
        try:
            load_chain(newest, certificate)
        except (ssl.SSLError, ValueError) as error:
            raise CredentialsFailed(
                f"serving certificate: cannot be used ({error}), expected PEM and its key"
            ) from None
        self._newest, self.shown = newest, certificate
        return True

    def _show_newest(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> int | None:
        """Called for each connection, also for one that names no server."""
        if self._newest is None:
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        connection.context = self._newest
        return None


async def follow_files(
    directory: Path, serving: ServingContext, *, every_s: float = 10.0, clock: Clock = SYSTEM_CLOCK
) -> None:
    """Show what `tls.crt` and `tls.key` hold, as cert-manager and the kubelet change them; ends when cancelled."""
    while True:
        try:
            if serving.use(await asyncio.to_thread(_read_files, directory)):
                log.info("serving certificate loaded", directory=str(directory))
        except (OSError, CredentialsFailed) as error:
            log.warning("serving certificate not loaded", directory=str(directory), error=str(error))
        await clock.sleep(every_s)


def _read_files(directory: Path) -> Certificate:
    return Certificate((directory / "tls.crt").read_bytes(), (directory / "tls.key").read_bytes())


def _empty_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
