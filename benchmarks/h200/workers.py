"""The bench's side of processes that work: started early, told what to do, never waited for without an end."""

import json
import queue
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60.0
START_IN_S = 0.15
"""How far ahead a common start lies, so that all have read their orders by then."""
TAIL = 1500


class WorkerFailed(Exception):
    pass


class Worker:
    """A Python program of this package that answers each line with a line of JSON."""

    def __init__(self, module: str, arguments: list[str], environment: dict[str, str]) -> None:
        self.name = " ".join([module, *arguments])
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"{__package__}.{module}", *arguments],
            cwd=ROOT, env=environment, text=True, bufsize=1,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self._answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self._errors: list[str] = []
        threading.Thread(target=self._read_answers, daemon=True).start()
        threading.Thread(target=self._read_errors, daemon=True).start()

    def __enter__(self) -> "Worker":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        return self._process.pid

    def tell(self, **order: Any) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._failure("has ended") from None

    def hear(self, patience_s: float = PATIENCE_S) -> dict[str, Any]:
        deadline = time.monotonic() + patience_s
        while True:
            try:
                return self._answers.get(timeout=0.2)
            except queue.Empty:
                if self._process.poll() is not None and self._answers.empty():
                    raise self._failure("has ended") from None
                if time.monotonic() > deadline:
                    raise self._failure(f"did not answer within {patience_s:.0f} s") from None

    def ask(self, patience_s: float = PATIENCE_S, **order: Any) -> dict[str, Any]:
        self.tell(**order)
        return self.hear(patience_s)

    def begin(self) -> dict[str, Any]:
        """Until it has touched the card and can work."""
        self.hear()
        return self.ask()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def _failure(self, what: str) -> WorkerFailed:
        tail = "".join(self._errors)[-TAIL:].strip()
        return WorkerFailed(f"{self.name} {what} (code {self._process.poll()}): {tail or 'nothing on stderr'}")

    def _read_answers(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                self._answers.put(json.loads(line))

    def _read_errors(self) -> None:
        assert self._process.stderr is not None
        self._errors.extend(self._process.stderr)


def together(workers: list[Worker], seconds: float, **order: Any) -> list[dict[str, Any]]:
    """The same order for all, begun at the same moment."""
    starts_at = time.monotonic() + START_IN_S
    for worker in workers:
        worker.tell(seconds=seconds, starts_at=starts_at, **order)
    return [worker.hear() for worker in workers]
