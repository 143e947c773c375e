"""Commands in a container, run by kubectl."""

import asyncio

import pytest
from kubernetes import config
from kubernetes.client import CoreV1Api
from kubernetes.stream import stream

from tessera.embedded.doors.channels import V4
from tests.embedded.doors.engine import container
from tests.embedded.runtime.node import FOREVER, is_running

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_kubectl_sees_what_a_command_prints_and_ends_with_its_code(engine):
    await engine.start(FOREVER)
    await engine.wait(is_running)
    assert await engine.kubectl("exec", "worker", "--", "sh", "-c", "echo out; echo err >&2") == (0, "out\n", "err\n")
    failed = await engine.kubectl("exec", "worker", "--", "sh", "-c", "exit 3")
    assert (failed.code, failed.complaints) == (3, "command terminated with exit code 3\n")


async def test_a_command_reads_its_input_to_the_end(engine):
    await engine.start(FOREVER)
    await engine.wait(is_running)
    much = b"0123456789abcdef" * 65536
    done = await engine.kubectl("exec", "-i", "worker", "--", "sh", "-c", "wc -c", input=much)
    assert (done.code, done.printed.strip()) == (0, str(len(much)))


async def test_a_program_that_is_not_there_is_told(engine):
    await engine.start(FOREVER)
    await engine.wait(is_running)
    done = await engine.kubectl("exec", "worker", "--", "no-such-program")
    assert done.code != 0
    assert "no-such-program" in done.complaints


async def test_a_command_ends_when_its_client_leaves(engine):
    await engine.start(FOREVER)
    await engine.wait(is_running)
    process = await engine.open_kubectl("exec", "worker", "--", "sh", "-c", "echo $$; exec sleep 1000")
    assert (await process.stdout.readline()).strip().isdigit()
    process.kill()
    await process.wait()
    async with asyncio.timeout(30):
        while (await engine.kubectl("exec", "worker", "--", "pgrep", "-f", "^sleep 1000")).code == 0:
            await asyncio.sleep(0.1)


async def test_a_container_must_be_named_where_there_are_two(engine):
    await engine.start(container(FOREVER, name="one"), container(FOREVER, name="two"))
    await engine.wait(is_running)
    done = await engine.kubectl("exec", "worker", "-c", "two", "--", "sh", "-c", "echo here")
    assert done.printed == "here\n"
    done = await engine.kubectl("exec", "worker", "-c", "three", "--", "true")
    assert "container three is not valid for pod worker" in done.complaints or "not found" in done.complaints


async def test_attach_shows_what_is_printed_from_now_on(engine):
    await engine.start("echo before; while :; do echo tick; sleep 0.1; done")
    await engine.wait(is_running)
    process = await engine.open_kubectl("attach", "worker")
    async with asyncio.timeout(30):
        while (line := await process.stdout.readline()) != b"tick\n":
            assert line != b"before\n"
    process.kill()
    await process.wait()


async def test_what_is_typed_into_a_terminal_is_seen_before_its_line_ends(engine):
    await engine.start(container("printf 'name? '; read -r name; echo hello $name", stdin=True, tty=True))
    await engine.wait(is_running)

    def talk():
        with config.new_client_from_config(str(engine.kubeconfig)) as client:
            asked = {"stdin": True, "stdout": True, "tty": True, "_preload_content": False}
            call = stream(CoreV1Api(client).connect_get_namespaced_pod_attach, "worker", "default", **asked)
            call.write_stdin("you\n")
            call.run_forever(timeout=30)
            call.sock.shutdown()
            return call.read_stdout()

    assert (await asyncio.to_thread(talk)).endswith("hello you\r\n")
    await engine.wait(lambda status: status["phase"] == "Succeeded")
    assert (await engine.kubectl("logs", "worker")).printed.endswith("hello you\r\n")


async def test_the_older_protocol_is_spoken_with_the_python_client(engine):
    await engine.start(FOREVER)
    await engine.wait(is_running)

    def ask():
        with config.new_client_from_config(str(engine.kubeconfig)) as client:
            asked = {"command": ["sh", "-c", "read -r line; echo got $line; exit 4"], "stdin": True, "stdout": True}
            client.set_default_header("sec-websocket-protocol", V4)
            pods = CoreV1Api(client)
            call = stream(pods.connect_get_namespaced_pod_exec, "worker", "default", _preload_content=False, **asked)
            call.write_stdin("words\n")
            call.run_forever(timeout=30)
            call.sock.shutdown()
            return call.subprotocol, call.read_stdout(), call.returncode

    assert await asyncio.to_thread(ask) == (V4, "got words\n", 4)


async def test_who_may_only_read_runs_no_command(engine):
    await engine.start(FOREVER)
    await engine.wait(is_running)
    token = engine.admit("reader")
    rules = [{"apiGroups": [""], "resources": ["pods", "pods/exec"], "verbs": ["get"]}]
    await engine.grant("reader", rules)
    done = await engine.kubectl("exec", "worker", f"--token={token}", "--", "true")
    assert done.code != 0
    assert 'User "reader" cannot create resource "pods/exec"' in done.complaints
    await engine.grant("reader", [{**rules[0], "verbs": ["get", "create"]}])
    assert (await engine.kubectl("exec", "worker", f"--token={token}", "--", "true")).code == 0
