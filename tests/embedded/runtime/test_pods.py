"""Pods as processes, from their start to their end, with what a kubelet would tell of them."""

import asyncio

import pytest

from tessera.embedded.runtime.sources import Additions
from tests.embedded.runtime.node import (
    FOREVER,
    SHARE,
    SHARED,
    condition,
    has_ended,
    is_ready,
    is_running,
    running_node,
    state_of,
    was_restarted,
)

pytestmark = pytest.mark.asyncio


async def test_a_pod_that_ends_well_has_succeeded(node):
    node.start("exit 0")
    status = await node.wait(has_ended)
    terminated = state_of(status)["terminated"]
    assert (status["phase"], terminated["exitCode"], terminated["reason"]) == ("Succeeded", 0, "Completed")
    assert terminated["startedAt"] <= terminated["finishedAt"]


async def test_a_pod_that_ends_badly_has_failed_with_its_exit_code(node):
    node.start("exit 3")
    status = await node.wait(has_ended)
    assert status["phase"] == "Failed"
    assert state_of(status)["terminated"] | {"startedAt": "", "finishedAt": ""} == {
        "exitCode": 3,
        "reason": "Error",
        "startedAt": "",
        "finishedAt": "",
    }


async def test_the_last_words_of_a_container_are_in_its_log(node):
    printed = await node.run("seq 1 50000")
    assert printed.splitlines() == [str(number) for number in range(1, 50001)]


async def test_a_signal_is_told_as_a_shell_tells_it(node):
    node.start("kill -9 $$$$")  # a doubled $ is one, as in every pod
    terminated = state_of(await node.wait(has_ended))["terminated"]
    assert (terminated["exitCode"], terminated["signal"]) == (137, 9)


async def test_a_running_pod_says_where_it_is(node):
    node.start(FOREVER)
    status = await node.wait(is_ready)
    assert status["phase"] == "Running"
    assert status["podIP"].startswith("127.")
    assert status["hostIP"] == "127.0.0.1"
    assert status["startTime"]
    assert "running" in state_of(status)


async def test_a_stopped_pod_is_asked_to_end_and_has_ended(node):
    uid = node.start("trap 'echo asked; exit 0' TERM; echo up; while :; do sleep 0.1; done", restartPolicy="Always")
    await node.wait(is_ready)
    await eventually(lambda: node.log(), "up\n")
    node.runtime.stop(uid, 20.0)
    await node.until(lambda: node.runtime.is_over(uid))
    assert state_of(node.runtime.status(uid))["terminated"]["exitCode"] == 0
    assert node.runtime.status(uid)["phase"] == "Succeeded"
    assert await node.log() == "up\nasked\n"


async def test_a_pod_that_does_not_listen_is_killed_after_its_time(node):
    uid = node.start("trap '' TERM; echo deaf; while :; do sleep 0.1; done")
    await eventually(lambda: node.log(), "deaf\n")
    node.runtime.stop(uid, 0.2)
    await node.until(lambda: node.runtime.is_over(uid))
    assert state_of(node.runtime.status(uid))["terminated"]["exitCode"] == 137


async def test_a_second_stop_with_less_time_counts(node):
    uid = node.start("trap '' TERM; echo deaf; while :; do sleep 0.1; done")
    await eventually(lambda: node.log(), "deaf\n")
    node.runtime.stop(uid, 3600.0)
    node.runtime.stop(uid, 0.0)
    await node.until(lambda: node.runtime.is_over(uid))


async def test_stopping_again_gives_no_more_time(node):
    uid = node.start("trap '' TERM; echo deaf; while :; do sleep 0.1; done")
    await eventually(lambda: node.log(), "deaf\n")
    async with asyncio.timeout(20):
        while not node.runtime.is_over(uid):
            node.runtime.stop(uid, 0.5)
            await asyncio.sleep(0.05)


async def test_a_failed_container_is_started_again_and_its_last_log_is_kept(node):
    script = f"[ -e /shared/again ] && {{ echo second; {FOREVER}; }}; touch /shared/again; echo first; exit 1"
    node.start(node.container(script, **SHARE), volumes=SHARED, restartPolicy="OnFailure")
    status = await node.wait(lambda status: was_restarted(status) and is_ready(status))
    assert status["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 1
    assert await node.log(previous=True) == "first\n"
    await eventually(lambda: node.log(), "second\n")


async def test_a_container_that_keeps_failing_waits_longer_each_time(node):
    node.start("exit 1", restartPolicy="Always")
    status = await node.wait(lambda status: waiting_for(status) == "CrashLoopBackOff")
    assert status["phase"] == "Running"
    await node.wait(lambda status: status["containerStatuses"][0]["restartCount"] == 3)
    waits = [event.reason for event in node.events if event.reason == "BackOff"]
    assert len(waits) >= 2


async def test_a_pod_has_a_deadline(node):
    node.start(FOREVER, activeDeadlineSeconds=0.2)
    status = await node.wait(has_ended)
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")


async def test_init_containers_run_first_and_in_order(node):
    first = [node.container(f"echo {name} >> /shared/order", name=name, **SHARE) for name in ("one", "two")]
    main = node.container("cat /shared/order", **SHARE)
    assert await node.run(main, initContainers=first, volumes=SHARED) == "one\ntwo\n"


async def test_an_init_container_that_fails_fails_the_pod(node):
    node.start("echo never", initContainers=[node.container("exit 4", name="first")])
    status = await node.wait(has_ended)
    assert status["phase"] == "Failed"
    assert waiting_for(status) == "PodInitializing"
    assert condition(status, "Initialized") == "False"


async def test_a_sidecar_runs_beside_the_others_and_ends_after_them(node):
    sidecar = node.container(f"touch /shared/up; {FOREVER}", name="side", restartPolicy="Always", **SHARE)
    main = node.container("until [ -e /shared/up ]; do sleep 0.05; done; echo found", **SHARE)
    assert await node.run(main, initContainers=[sidecar], volumes=SHARED) == "found\n"
    assert "terminated" in node.runtime.status("uid-worker")["initContainerStatuses"][0]["state"]


async def test_an_absent_image_leaves_the_container_waiting(node):
    node.start(node.container("true", image="registry.invalid/none", imagePullPolicy="Never"))
    status = await node.wait(lambda status: waiting_for(status) == "ErrImageNeverPull")
    assert status["phase"] == "Pending"


async def test_an_image_without_a_command_that_nobody_knows_cannot_be_pulled(node):
    node.start({"name": "main", "image": "somebody/something:1"})
    status = await node.wait(lambda status: waiting_for(status) == "ErrImagePull")
    assert "give the container a command" in state_of(status)["waiting"]["message"]
    await node.wait(lambda status: waiting_for(status) == "ImagePullBackOff")


async def test_an_event_says_that_nothing_was_pulled(node):
    await node.run(node.container("true", image="python:3"))
    assert any("image python:3 is not pulled" in event.message for event in node.events)


async def test_a_program_that_is_not_there_is_named(node):
    node.start({"name": "main", "image": "x", "command": ["no-such-program"]})
    terminated = state_of(await node.wait(has_ended))["terminated"]
    assert (terminated["exitCode"], terminated["reason"]) == (128, "StartError")
    assert '"no-such-program": no such program on this machine' in terminated["message"]


async def test_a_program_that_is_not_there_is_not_tried_without_a_pause(node):
    node.start({"name": "main", "image": "x", "command": ["no-such-program"]}, restartPolicy="Always")
    await node.wait(lambda status: waiting_for(status) == "CrashLoopBackOff")


async def test_a_pod_that_is_stopped_while_it_starts_does_not_run_on(tmp_path):
    entered, released = asyncio.Event(), asyncio.Event()

    async def prepare(*_):
        entered.set()
        await released.wait()
        return Additions()

    async with running_node(tmp_path, prepare=prepare) as node:
        uid = node.start(FOREVER)
        await entered.wait()
        node.runtime.stop(uid, 3600.0)
        await asyncio.sleep(0)
        released.set()
        await node.until(lambda: node.runtime.is_over(uid))


async def test_a_pod_that_a_mistake_of_ours_ends_is_over_and_can_be_deleted(tmp_path):
    async def prepare(*_):
        raise ZeroDivisionError

    async with running_node(tmp_path, prepare=prepare) as node:
        uid = node.start(FOREVER)
        await node.until(lambda: node.runtime.is_over(uid))


async def test_a_container_waits_for_the_config_map_that_it_needs(node):
    source = {"configMapKeyRef": {"name": "settings", "key": "COLOUR"}}
    node.start(node.container("echo $ONE", env=[{"name": "ONE", "valueFrom": source}]))
    status = await node.wait(lambda s: waiting_for(s) == "CreateContainerConfigError")
    assert state_of(status)["waiting"]["message"] == 'configmap "settings" not found'
    node.objects.config_maps["settings"] = {"data": {"COLOUR": "red"}}
    await node.wait(has_ended)
    assert await node.log() == "red\n"


async def test_containers_of_a_former_engine_are_lost_and_counted(node):
    told = {
        "name": "main",
        "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}},
        "lastState": {},
        "restartCount": 2,
    }
    status = {"startTime": "2026-01-02T03:04:05Z", "containerStatuses": [told]}
    node.start("exit 0", status=status)
    lost = await node.wait(has_ended)
    assert state_of(lost)["terminated"]["reason"] == "ContainerStatusUnknown"
    node.start(FOREVER, name="second", status=status, restartPolicy="OnFailure")
    again = await node.wait(is_ready, name="second")
    assert again["containerStatuses"][0]["restartCount"] == 3
    assert again["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 137


async def test_a_removed_pod_leaves_no_files_and_no_process(node, tmp_path):
    uid = node.start(FOREVER)
    await node.wait(is_running)
    await node.runtime.remove(uid)
    assert node.runtime.status(uid) is None
    assert not (tmp_path / "runtime" / "pods" / uid).exists()


def waiting_for(status):
    return state_of(status).get("waiting", {}).get("reason")


async def eventually(ask, expected):
    async with asyncio.timeout(20):
        while await ask() != expected:
            await asyncio.sleep(0.02)
