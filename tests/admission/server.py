"""Our webhook behind a web server in the test process, which knows what it was asked."""

import asyncio
import json
import ssl

from tessera.admission import Webhook
from tests.https_server import HttpsServer, Said


class WebhookServer(HttpsServer):
    """`asked` are the names of the pods that an API server asked about, `paths` where it asked about each."""

    def __init__(self, host: str, context: ssl.SSLContext, webhook: Webhook) -> None:
        self.asked: list[str] = []
        self.paths: list[str] = []
        self._webhook = webhook
        super().__init__(host, context, self._answer)

    def _answer(self, path: str, body: bytes) -> Said:
        self.paths.append(path)
        self.asked.append(json.loads(body)["request"]["object"]["metadata"].get("name", ""))
        return Said(*asyncio.run(self._webhook.handle(body))[:3])
