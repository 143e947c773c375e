"""An address that is served over TLS, with the certificate that is shown there and what keeps it fresh."""

from pathlib import Path

import msgspec
from starlette.types import ASGIApp

from tessera.admission.certificates import Keeper, Place, ServingContext, follow_files
from tessera.apps.addresses import Address
from tessera.apps.serving import Listener
from tessera.apps.working import Work
from tessera.kube.client import Client


class SecureAddress(msgspec.Struct, frozen=True):
    """Where to serve TLS, and where its certificate comes from: files, or a Secret that we keep ourselves."""

    address: Address
    certificate: Path | Place


class SecureListener:
    """Until there is a certificate, connections are refused."""

    def __init__(self, where: SecureAddress) -> None:
        self._where = where
        self.certificate = ServingContext()

    @property
    def has_certificate(self) -> bool:
        return self.certificate.shown is not None

    def showing(self, app: ASGIApp) -> Listener:
        return Listener(app, *self._where.address, self.certificate.context)

    def keep(self, client: Client) -> Work:
        """Show the newest certificate, until cancelled."""
        source = self._where.certificate
        if isinstance(source, Path):
            return follow_files(source, self.certificate)
        return Keeper(client, source, self.certificate).run()
