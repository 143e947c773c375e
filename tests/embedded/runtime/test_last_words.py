"""What a container says when it ends, and what is not as it asked."""

import os

import pytest

from tests.embedded.runtime.node import has_ended, state_of

pytestmark = pytest.mark.asyncio

FALL_BACK = {"terminationMessagePolicy": "FallbackToLogsOnError"}


async def test_what_a_container_left_in_its_termination_log_is_told(node):
    node.start("echo no room left > /dev/termination-log; exit 3")
    terminated = state_of(await node.wait(has_ended))["terminated"]
    assert (terminated["exitCode"], terminated["message"]) == (3, "no room left\n")
    assert not os.path.exists("/dev/termination-log")


async def test_a_container_may_name_another_file_and_long_words_are_cut(node):
    script = "head -c 9000 /dev/zero | tr '\\0' x > /run/words; true"
    node.start(node.container(script, terminationMessagePath="/run/words"))
    assert state_of(await node.wait(has_ended))["terminated"]["message"] == "x" * 4096


async def test_the_end_of_the_log_is_told_of_a_failure_by_those_who_ask_for_it(node):
    node.start(node.container("echo why; exit 1", **FALL_BACK))
    assert state_of(await node.wait(has_ended))["terminated"]["message"] == "why\n"
    node.start(node.container("echo all is well", **FALL_BACK), name="well")
    assert "message" not in state_of(await node.wait(has_ended, "well"))["terminated"]


async def test_devices_are_there_beside_the_termination_log_and_a_volume_at_dev_shm(node):
    volume = {"name": "shared", "emptyDir": {"medium": "Memory"}}
    script = "touch /dev/shm/own && ls /dev/shm && head -c 3 /dev/zero | wc -c && echo shown > /dev/stdout"
    container = node.container(script, volumeMounts=[{"name": "shared", "mountPath": "/dev/shm"}])
    assert await node.run(container, volumes=[volume]) == "own\n3\nshown\n"


async def test_a_user_that_a_container_does_not_run_as_is_told(node):
    node.start(node.container("true", securityContext={"runAsUser": os.geteuid() + 1}))
    await node.wait(has_ended)
    assert "UserNotKept" in node.reasons()
    node.events.clear()
    node.start(node.container("true", securityContext={"runAsUser": os.geteuid()}), name="same")
    await node.wait(has_ended, "same")
    assert "UserNotKept" not in node.reasons()
