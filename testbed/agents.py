"""Agents of nodes that do not exist: they say what real agents say, as often, through the same reports.

A register is written when its cards change and never else; the handshake every four minutes by the clock on the wall,
so that all nodes write within one short window: each of these writes wakes every pod that waits, and between two
windows nothing does. A scheduler that asks ("Requesting_…") is answered at once, as HAMi's is by its device plugins.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future, wait
from datetime import UTC, datetime
from typing import Any

import msgspec

from tessera.errors import KubeError, NotFound
from tessera.kube.access import Access
from tessera.kube.caching import Change
from tessera.kube.client import Client
from tessera.kube.informer import Informer
from tessera.kube.kinds import NODES
from tessera.kube.objects import Document
from tessera.model.annotations.handshakes import HandshakeState, decode_handshake
from tessera.vendors.loading import load_catalogue
from tessera.vendors.managers import Inventory
from tessera.vendors.reporting import report_alive, report_cards

HANDSHAKE_EVERY_S = 240
AT_ONCE = 32
RETRY_S = 1.0
DRIFT_S = 0.05
"""A sleep does not go by the clock on the wall; whoever wakes early must not find the same window ahead once more."""


class Agents:
    """All agents of a cluster, in one thread. What happens to cards is told by `set_cards` and `silence`."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._catalogue = load_catalogue()
        self._inventories: dict[str, Inventory] = {}
        self._silent: set[str] = set()
        self._asked: asyncio.Queue[str] = asyncio.Queue()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="simulated agents", daemon=True)
        self._thread.start()
        self._client = self._call(self._connect())
        self._rounds = self._spawn(self._keep_alive())

    async def _connect(self) -> Client:
        return await Client(self._access).__aenter__()

    def set_cards(self, inventories: dict[str, Inventory]) -> None:
        """These nodes have these cards from now on; returns when all have said so."""
        self._inventories |= inventories
        self._call(self._report(inventories, self._cards_and_handshake))

    def set_health(self, node: str, uuid: str, *, healthy: bool) -> None:
        inventory = self._inventories[node]
        devices = tuple(
            msgspec.structs.replace(device, healthy=healthy) if device.uuid == uuid else device
            for device in inventory.devices
        )
        self.set_cards({node: msgspec.structs.replace(inventory, devices=devices)})

    def ask(self, node: str) -> None:
        """Have a node's agent report that it lives, as if a scheduler had asked it to."""
        self._loop.call_soon_threadsafe(self._asked.put_nowait, node)

    def silence(self, *nodes: str) -> None:
        """These agents have died: nothing of theirs changes any more."""
        self._silent.update(nodes)

    def stop(self) -> None:
        self._rounds.cancel()
        wait([self._rounds])
        self._call(self._client.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _keep_alive(self) -> None:
        nodes = Informer(self._client, NODES)
        nodes.subscribe(self._notice_request)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(nodes.run())
            tasks.create_task(self._answer_requests())
            while True:
                await asyncio.sleep(until_window_s(time.time()) + DRIFT_S)
                for node in self._inventories:
                    self._asked.put_nowait(node)

    def _notice_request(self, change: Change[Document]) -> None:
        metadata = (change.after or {}).get("metadata", {})
        node, annotations = metadata.get("name", ""), metadata.get("annotations") or {}
        if node in self._inventories and any(_asks(annotations.get(key, "")) for key in self._handshake(node)):
            self._asked.put_nowait(node)

    async def _answer_requests(self) -> None:
        """An API server that is down is asked again; what a real agent survives must not end these."""
        while True:
            nodes = {await self._asked.get()}
            while not self._asked.empty():
                nodes.add(self._asked.get_nowait())
            try:
                await self._report(nodes, self._handshake)
            except* KubeError:
                await asyncio.sleep(RETRY_S)
                for node in nodes:
                    self._asked.put_nowait(node)

    def _cards_and_handshake(self, node: str) -> dict[str, str]:
        return report_cards(node, self._inventories[node], self._catalogue) | self._handshake(node)

    def _handshake(self, node: str) -> dict[str, str]:
        return report_alive(self._inventories[node], self._catalogue, datetime.now(UTC))

    async def _report(self, nodes: Iterable[str], report: Callable[[str], dict[str, str]]) -> None:
        turns = asyncio.Semaphore(AT_ONCE)

        async def say(node: str) -> None:
            async with turns:
                try:
                    await self._client.patch(NODES, node, {"metadata": {"annotations": report(node)}})
                except NotFound:
                    self._inventories.pop(node, None)

        async with asyncio.TaskGroup() as tasks:
            for node in nodes:
                if node not in self._silent:
                    tasks.create_task(say(node))

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _call(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._spawn(work).result()


def until_window_s(now_s: float) -> float:
    """How long until the clock on the wall next begins a window of handshakes."""
    return HANDSHAKE_EVERY_S - now_s % HANDSHAKE_EVERY_S


def _asks(handshake: str) -> bool:
    return decode_handshake(handshake).state is HandshakeState.REQUESTING
