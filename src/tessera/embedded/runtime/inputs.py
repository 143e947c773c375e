"""What is typed, on its way to a command: through a pipe as the loop has it, or to a terminal."""

import asyncio
import os
from typing import Protocol


class Input(Protocol):
    """As the loop's own transports are."""

    def write(self, data: bytes) -> None: ...
    def close(self) -> None: ...
    def abort(self) -> None: ...
    def is_closing(self) -> bool: ...


class TerminalInput:
    """A transport of the loop's own would also read what it writes to, to see it close: what a terminal shows."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor: int | None = descriptor
        self._waiting = b""

    def write(self, data: bytes) -> None:
        self._waiting += data
        self._pass_on()

    def close(self) -> None:
        self.abort()

    def abort(self) -> None:
        if self._descriptor is not None:
            asyncio.get_running_loop().remove_writer(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None

    def is_closing(self) -> bool:
        return self._descriptor is None

    def _pass_on(self) -> None:
        if self._descriptor is None:
            return
        try:
            self._waiting = self._waiting[os.write(self._descriptor, self._waiting) :]
        except BlockingIOError:
            pass
        except OSError:  # its last program is gone
            self.abort()
            return
        loop = asyncio.get_running_loop()
        if self._waiting:
            loop.add_writer(self._descriptor, self._pass_on)
        else:
            loop.remove_writer(self._descriptor)
