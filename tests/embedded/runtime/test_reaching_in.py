"""Reading along with containers and reaching into them: logs, exec, probes, hooks."""

import asyncio
import os
import signal
from datetime import UTC, datetime

import pytest

from tessera.embedded.runtime.logs import LogRequest
from tessera.embedded.runtime.surroundings import Settings
from tessera.errors import StartRefused
from tests.embedded.runtime.node import FOREVER, SHARE, SHARED, condition, has_ended, is_ready, is_running, running_node
from tests.embedded.runtime.processes import PATIENCE_S, children_of, is_zombie, pids_with, shims_of

pytestmark = pytest.mark.asyncio


async def test_a_part_of_a_log_can_be_asked_for(node):
    assert await node.run("echo one; sleep 1.1; echo two; echo three") == "one\ntwo\nthree\n"
    assert await node.log(tail_lines=1) == "three\n"
    assert await node.log(tail_lines=0) == ""
    assert await node.log(limit_bytes=4) == "one\n"
    written_at, text = (await node.log(timestamps=True)).splitlines()[1].split(" ", 1)
    assert text == "two"
    that_second = datetime.fromisoformat(f"{written_at[:19]}Z")
    assert that_second.tzinfo == UTC
    assert await node.log(since=that_second) == "two\nthree\n"


async def test_a_followed_log_ends_with_the_container(node):
    script = "echo one; until [ -e /shared/go ]; do sleep 0.05; done; echo two"
    uid = node.start(node.container(script, **SHARE), volumes=SHARED)
    await node.wait(is_running)
    container = node.runtime.container(uid, "main")
    pieces = node.runtime.read_log(container, LogRequest(), follow=True)
    assert await anext(pieces) == b"one\n"
    assert await node.exec("touch", "/shared/go") == (0, "")
    assert [piece async for piece in pieces] == [b"two\n"]


async def test_a_log_that_was_written_while_followed_across_a_rotation_is_whole(tmp_path):
    async with running_node(tmp_path, settings=Settings(most_log_bytes=20_000)) as node:
        script = (
            "i=0; while [ $i -lt 600 ]; do i=$((i+1)); echo line $i; [ $((i % 60)) -eq 0 ] && sleep 0.1; done; true"
        )
        node.start(script)
        await node.wait(lambda status: status["phase"] != "Pending")
        lines = (await node.log(follow=True)).splitlines()
        assert lines == [f"line {number}" for number in range(1, 601)]
        kept = (await node.log()).splitlines()
        assert kept[-1] == "line 600"
        assert 0 < len(kept) < 600


async def test_what_is_printed_in_the_moment_of_the_end_is_in_the_log(node):
    node.start(node.container("until [ -e /shared/go ]; do sleep 0.05; done; printf last", **SHARE), volumes=SHARED)
    await node.wait(is_running)
    [shim] = shims_of(os.getpid())
    [main] = children_of(shim)
    os.kill(shim, signal.SIGSTOP)
    await node.exec("touch", "/shared/go")
    await until(lambda: is_zombie(main))
    os.kill(shim, signal.SIGCONT)
    await node.wait(has_ended)
    assert await node.log() == "last"


async def test_a_carriage_return_is_part_of_a_line(node):
    assert await node.run(r"printf 'a\rb\nc'") == "a\rb\nc"
    assert await node.log(tail_lines=2) == "a\rb\nc"


async def test_exec_runs_in_the_context_of_the_container(node):
    container = node.container(FOREVER, env=[{"name": "COLOUR", "value": "red"}], **SHARE)
    node.start(container, volumes=SHARED)
    await node.wait(is_running)
    assert await node.exec("sh", "-c", "echo $COLOUR; ls -d /shared; hostname; exit 3") == (3, "red\n/shared\nworker\n")
    assert await node.exec("cat", stdin=b"from outside") == (0, "from outside")


async def test_exec_of_a_program_that_is_not_there_is_refused(node):
    node.start(FOREVER)
    await node.wait(is_running)
    with pytest.raises(StartRefused, match="no such program"):
        await node.exec("no-such-program")


async def test_exec_in_a_container_that_does_not_run_is_refused(node):
    node.start("true")
    await node.wait(has_ended)
    with pytest.raises(StartRefused, match="main is not running"):
        await node.exec("true")


async def test_a_terminal_can_be_had(node):
    uid = node.start(FOREVER)
    await node.wait(is_running)
    command = ["sh", "-c", "tty -s && stty size; read line; echo got $line"]
    session = await node.runtime.exec(node.runtime.container(uid, "main"), command, terminal=True)
    session.resize(40, 100)
    session.send(b"word\n")
    printed = b"".join([chunk async for chunk in session.stdout])
    assert await session.wait() == 0
    assert b"got word" in printed


async def test_a_probe_decides_readiness(node):
    probe = {"exec": {"command": ["cat", "/shared/ready"]}, "periodSeconds": 0.1}
    node.start(node.container(FOREVER, readinessProbe=probe, **SHARE), volumes=SHARED)
    await node.until(lambda: "Unhealthy" in node.reasons())
    assert condition(node.runtime.status("uid-worker"), "Ready") == "False"
    await node.exec("touch", "/shared/ready")
    await node.wait(is_ready)


async def test_a_container_that_is_not_alive_is_started_again(node):
    probe = {"exec": {"command": ["false"]}, "periodSeconds": 0.1, "failureThreshold": 2}
    node.start(node.container(FOREVER, livenessProbe=probe), restartPolicy="Always")
    await node.wait(lambda status: status["containerStatuses"][0]["restartCount"] == 1)
    assert "Killing" in node.reasons()


async def test_other_probes_wait_for_the_startup_probe(node):
    startup = {"exec": {"command": ["cat", "/shared/up"]}, "periodSeconds": 0.1, "failureThreshold": 1000}
    alive = {"exec": {"command": ["cat", "/shared/up"]}, "periodSeconds": 0.1, "failureThreshold": 1}
    node.start(node.container(FOREVER, startupProbe=startup, livenessProbe=alive, **SHARE), volumes=SHARED)
    await node.until(lambda: node.reasons().count("Unhealthy") >= 2)
    status = node.runtime.status("uid-worker")
    assert not status["containerStatuses"][0]["started"]
    assert not is_ready(status)
    await node.exec("touch", "/shared/up")
    assert (await node.wait(is_ready))["containerStatuses"][0]["restartCount"] == 0


async def test_a_probe_that_hangs_fails_and_leaves_no_process(node):
    probe = {
        "exec": {"command": ["sh", "-c", "touch /shared/hung; sleep 4321"]},
        "periodSeconds": 60,
        "timeoutSeconds": 0.5,
    }
    node.start(node.container(FOREVER, readinessProbe=probe, **SHARE), volumes=SHARED)
    told = await node.until(lambda: next((event for event in node.events if event.reason == "Unhealthy"), None))
    assert told.message == "Readiness probe failed: no answer within 0.5 s"
    await until(lambda: not pids_with("sleep\0004321"))


async def test_hooks_run_after_the_start_and_before_the_end(node):
    hooks = {
        "postStart": {"exec": {"command": ["sh", "-c", "echo started >> /shared/story"]}},
        "preStop": {"exec": {"command": ["sh", "-c", "echo stopping >> /shared/story"]}},
    }
    script = "trap 'cat /shared/story; exit 0' TERM; while :; do sleep 0.1; done"
    uid = node.start(node.container(script, lifecycle=hooks, **SHARE), volumes=SHARED)
    await node.wait(is_ready)
    node.runtime.stop(uid, 20.0)
    await node.until(lambda: node.runtime.is_over(uid))
    assert await node.log() == "started\nstopping\n"


async def test_a_container_whose_hook_fails_is_killed(node):
    hooks = {"postStart": {"exec": {"command": ["false"]}}}
    node.start(node.container(FOREVER, lifecycle=hooks))
    await node.wait(has_ended)
    assert "FailedPostStartHook" in node.reasons()


async def until(holds):
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.02)
