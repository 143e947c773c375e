"""Killed at any moment, the store has all that was acknowledged, and of the rest a whole batch or nothing."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

from tessera.embedded.store import Key, Store
from tests.embedded.crash_writer import batch

ROUNDS = 14
LONGEST_LIFE_S = 0.3
State = dict[Key, tuple[int, str]]
"""Version and value of each object."""


class Expected:
    """What the store must hold after each batch, one step at a time."""

    def __init__(self) -> None:
        self.number = 0
        self.version = 1
        self.state: State = {}
        self.changes: list[tuple[int, Key, str | None]] = []

    def advance(self) -> None:
        self.number += 1
        for key, value in batch(self.number):
            if value is None and key not in self.state:
                continue
            self.version += 1
            self.changes.append((self.version, key, value))
            if value is None:
                del self.state[key]
            else:
                self.state[key] = (self.version, value)


def live_and_die(path: Path, number: int, life_s: float) -> int:
    """Let a writer go on from a batch, kill it, and tell the last batch that it acknowledged."""
    command = [sys.executable, "-m", "tests.embedded.crash_writer", str(path), str(number)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "starting\n"
        time.sleep(life_s)  # the moment of the crash is what is being tried, and no event of the writer's
        writer.kill()
        acknowledged = [line for line in writer.stdout if line.endswith("\n")]
    assert writer.returncode == -signal.SIGKILL, "it ended by itself"
    return int(acknowledged[-1]) if acknowledged else number


def check(path: Path, expected: Expected) -> None:
    """Either exactly what is expected, or what one batch more would make of it; then that is expected."""
    store = Store.open(path)
    if store.version > expected.version:
        expected.advance()
    found = {record.key: (record.version, record.document()["spec"]["value"]) for record in store.list("things")}
    assert store.version == expected.version
    assert found == expected.state
    assert history(store) == [change for change in expected.changes if change[0] > store.oldest]
    store.close()


def history(store: Store) -> list[tuple[int, Key, str | None]]:
    changes = store._database.changes("things", store.oldest, store.version)
    return [
        (change.version, change.key, change.after.document()["spec"]["value"] if change.after else None)
        for change in changes
    ]


def test_nothing_acknowledged_is_lost_and_nothing_is_half_there_after_a_kill(tmp_path):
    path, expected, chance = tmp_path / "state.db", Expected(), Random(6)
    for _ in range(ROUNDS):
        acknowledged = live_and_die(path, expected.number, life_s=chance.uniform(0, LONGEST_LIFE_S))
        while expected.number < acknowledged:
            expected.advance()
        check(path, expected)
    assert expected.number > 0, "no writer lived long enough to write"
