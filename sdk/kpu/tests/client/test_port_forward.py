"""The forwarded port of a pod, where the process is short of what it needs."""

import errno
import socket
import threading
from typing import Any

from kpu.client.api import Api
from kpu.client.computes import PodPort
from kpu.client.port_forward import PortForward
from kpu.errors import Unreachable


class Short:
    """A listener of a process that may open no more files, once."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._is_short = True

    def accept(self) -> Any:
        if self._is_short:
            self._is_short = False
            raise OSError(errno.EMFILE, "Too many open files")
        return self._listener.accept()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._listener, name)


def test_a_connection_that_could_not_be_taken_in_is_taken_in_later(configuration_for, monkeypatch):
    asked = threading.Event()

    def find_pod() -> PodPort:
        asked.set()
        raise Unreachable("there is no pod in this test")

    make = socket.create_server
    monkeypatch.setattr(socket, "create_server", lambda address: Short(make(address)))
    forward = PortForward(Api(configuration_for("http://127.0.0.1:1")), find_pod)
    try:
        with socket.create_connection((forward.host, forward.port), timeout=10):
            assert asked.wait(10)
    finally:
        forward.close()
