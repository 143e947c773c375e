"""What stands in the way of a start is told in one sentence, and nothing is left half started."""

import json
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from tests.embedded.runtime.processes import pids_with


@pytest.fixture
def engine(lone_engine):
    return lone_engine


@pytest.fixture
def refused(engine):
    """Start it, be refused, and return the one sentence."""

    def start(*options):
        done = engine.up(*options)
        assert done.returncode == 1, done
        assert done.stdout == ""
        (sentence,) = done.stderr.splitlines()
        return sentence.removeprefix("tessera: ")

    return start


def test_a_second_engine_in_the_same_directory(engine, refused):
    assert engine.up().returncode == 0
    holder = engine.process
    assert refused().startswith(f"{engine.state}: process {holder} runs an engine there already; use it with export")
    assert f"stop it with `tessera down --state-dir {engine.state}`" in refused()
    assert engine.process == holder


def test_a_port_that_somebody_has(refused):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        sentence = refused("--port", str(port))
    assert sentence.startswith(f"127.0.0.1:{port} cannot be listened on: Address already in use; name another")
    assert sentence.endswith(": another --port, or none for any that is free")


def test_a_port_it_had_before_and_somebody_has_now_is_no_obstacle(engine):
    assert engine.up().returncode == 0
    port = json.loads((engine.state / "engine.json").read_bytes())["port"]
    engine.down()
    with socket.create_server(("127.0.0.1", port)):
        assert engine.up().returncode == 0


def test_a_damaged_state_file(engine, refused):
    engine.state.mkdir()
    (engine.state / "state.db").write_bytes(b"not a database" * 100)
    expected = f"{engine.state}/state.db: no state file of Tessera; move it away, or choose another state directory"
    assert refused() == expected


def test_a_state_file_of_another_version(engine, refused):
    assert engine.up().returncode == 0
    engine.down()
    with closing(sqlite3.connect(engine.state / "state.db")) as database:
        database.execute("PRAGMA user_version = 7")
    assert refused().startswith(f"{engine.state}/state.db: has layout 7, expected 1; use the version of Tessera")


def test_settings_that_cannot_be_read(engine, refused):
    engine.state.mkdir()
    (engine.state / "engine.json").write_text("{")
    assert refused().startswith(f"{engine.state}/engine.json: cannot be read")


def test_a_place_that_is_no_directory(engine, refused):
    engine.state.write_text("")
    assert refused().startswith(
        f"{engine.state}: cannot be used: File exists, expected a directory that we may write and"
    )


def test_cards_that_nobody_knows(refused):
    assert refused("--cards", "2xNone").startswith('model is "None", expected one of')


def test_what_was_refused_is_not_remembered(engine, refused, tmp_path):
    missing = tmp_path / "profiles.yaml"
    assert refused("--scheduler-config", str(missing)).startswith(f"{missing}: cannot be read")
    assert engine.up().returncode == 0


def test_profiles_of_an_earlier_start_that_are_gone_can_be_dropped(engine, refused, tmp_path):
    profiles = tmp_path / "profiles.yaml"
    profiles.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles:\n- schedulerName: mine\n"
    )
    assert engine.up("--scheduler-config", str(profiles)).returncode == 0
    engine.down()
    profiles.unlink()
    sentence = refused()
    assert sentence.startswith(f"{profiles}: cannot be read")
    assert sentence.endswith('it was named at an earlier start: put it right, or drop it with --scheduler-config ""')
    assert engine.up("--scheduler-config", "").returncode == 0
    engine.down()
    assert engine.up().returncode == 0


def test_a_key_that_is_damaged(engine, refused):
    assert engine.up().returncode == 0
    engine.down()
    (engine.state / "tls.key").write_text("no key")
    sentence = refused()
    assert sentence.startswith(f"{engine.state}/tls.key: does not go with tls.crt and ca.crt beside it")
    assert sentence.endswith("remove tls.key, and the next start makes new ones")
    (engine.state / "tls.key").unlink()
    assert engine.up().returncode == 0


def test_two_descriptions_of_the_cards(refused, tmp_path):
    sentence = refused("--cards-file", str(tmp_path / "cards.toml"))
    assert sentence == "--cards and --cards-file are both given, expected one of them; drop one"


def test_what_could_not_start_leaves_no_process(engine, refused):
    engine.state.mkdir()
    (engine.state / "state.db").write_bytes(b"not a database" * 100)
    refused()
    assert not pids_with(str(engine.state))


@pytest.mark.parametrize("size", ["12k", "40k", "200k"])
def test_a_disk_without_room(size):
    """On a disk of its own, which is full for real: before the state file, beside it, and in it."""
    mounting = f'mount -t tmpfs -o size={size} tmpfs /mnt && exec "$@"'
    alone = ["unshare", "--mount", "--propagation=private", "sh", "-c", mounting, "sh"]
    command = [sys.executable, "-m", "tessera.apps.cli", "up", "--detach", "--state-dir", "/mnt/state"]
    done = subprocess.run([*alone, *command], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    (sentence,) = done.stderr.splitlines()
    assert "no space left on" in sentence.lower()
