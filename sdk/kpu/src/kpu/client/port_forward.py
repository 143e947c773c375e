"""A port of a pod, brought to this machine through the API server, as `kubectl port-forward` does it.

The official client has a port-forward too, but it buffers without bound whatever the other side does not take yet: of
tensors, all of it. Here nothing is read before what was read earlier has been passed on.
"""

import contextlib
import logging
import select
import socket
import ssl
import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from kubernetes.stream import ws_client
from websocket import ABNF, WebSocketException

from kpu.client.api import Api
from kpu.client.computes import PodPort

DATA, ERROR = b"\x00", b"\x01"
PIECE = 256 * 1024
PROTOCOL = "v4.channel.k8s.io"
BREATH_S = 0.1
"""Before another attempt where the process may open no more files for now."""

log = logging.getLogger("kpu.client")


class PortForward:
    """Listens on `port` of 127.0.0.1 until it is closed. Each connection finds the pod anew: pods are replaced."""

    host = "127.0.0.1"

    def __init__(self, api: Api, find_pod: Callable[[], PodPort]) -> None:
        self._api = api
        self._find_pod = find_pod
        self._relays = set[Relay]()
        self._lock = threading.Lock()
        self._is_closed = threading.Event()
        self._listener = socket.create_server((self.host, 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, name="kpu port-forward", daemon=True).start()

    def close(self) -> None:
        self._is_closed.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            relays, self._relays = self._relays, set[Relay]()
        for relay in relays:
            relay.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError as error:
                if self._is_closed.wait(BREATH_S):
                    return
                log.warning("Port-forward took no connection in: %s", error)
                continue
            threading.Thread(target=self._serve, args=[connection], name="kpu port-forward", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                relay = Relay(connection, self._open())
            except Exception as error:
                log.warning("Port-forward failed: %s", error)
                return
            with self._lock:
                self._relays.add(relay)
            try:
                relay.run()
            except (OSError, WebSocketException) as error:
                log.debug("Port-forward ended: %s", error)
            finally:
                relay.close()
                with self._lock:
                    self._relays.discard(relay)

    def _open(self) -> Any:
        pod = self._find_pod()
        scheme, *rest = urlsplit(f"{self._api.url}{pod.path}/portforward?ports={pod.port}")
        url = urlunsplit(["wss" if scheme == "https" else "ws", *rest])
        headers = {**self._api.headers(), "sec-websocket-protocol": PROTOCOL}
        official: Any = ws_client
        return official.create_websocket(self._api.configuration, url, headers)


class Relay:
    """One connection: bytes of the local socket as frames of the WebSocket, and back. One thread does both."""

    def __init__(self, local: socket.socket, remote: Any) -> None:
        self._local = local
        self._remote = remote
        self._greetings = {DATA, ERROR}
        """Each channel begins with a frame that holds the port's number only."""

    def run(self) -> None:
        waiting = select.poll()
        waiting.register(self._local, select.POLLIN)
        waiting.register(self._remote.sock, select.POLLIN)
        while True:
            ready = {file for file, _ in waiting.poll(0 if self._has_more() else None)}
            if (self._remote.sock.fileno() in ready or self._has_more()) and not self._take_frame():
                return
            if self._local.fileno() in ready and not self._take_bytes():
                return

    def close(self) -> None:
        """Also from another thread, which wakes the one that waits."""
        for end in (self._local, self._remote.sock):
            with contextlib.suppress(OSError, AttributeError):
                end.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError, AttributeError):
            self._remote.sock.close()

    def _has_more(self) -> bool:
        """Bytes that TLS has already taken from the socket: no poll tells of them."""
        return isinstance(self._remote.sock, ssl.SSLSocket) and self._remote.sock.pending() > 0

    def _take_bytes(self) -> bool:
        piece = self._local.recv(PIECE)
        if piece:
            self._remote.send(DATA + piece, ABNF.OPCODE_BINARY)
        return bool(piece)

    def _take_frame(self) -> bool:
        opcode, frame = self._remote.recv_data_frame(True)
        if opcode == ABNF.OPCODE_CLOSE:
            return False
        if opcode not in (ABNF.OPCODE_BINARY, ABNF.OPCODE_TEXT) or not frame.data:
            return True
        channel, content = frame.data[:1], frame.data[1:]
        if channel in self._greetings:
            self._greetings.discard(channel)
        elif channel == DATA:
            self._local.sendall(content)
        elif content:
            log.warning("The pod's port is not reachable: %s", content.decode(errors="replace"))
            return False
        return True
