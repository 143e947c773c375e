"""The floor of whatever we serve: the same HTTP server, answering POST /filter with the bytes of a file."""

import sys
from pathlib import Path

import uvloop
from prometheus_client import CollectorRegistry

from tessera.apps.serving import make_app, serve


def main(address: str, port: str, file: str) -> None:
    body = Path(file).read_bytes()

    async def answer(_: bytes) -> bytes:
        return body

    app = make_app({"/filter": answer}, is_ready=lambda: True, metrics=CollectorRegistry())
    uvloop.run(serve(app, address, int(port)))


if __name__ == "__main__":
    main(*sys.argv[1:])
