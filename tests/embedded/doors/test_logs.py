"""Logs, as kubectl asks for them."""

import pytest

from tests.embedded.doors.engine import container
from tests.embedded.runtime.node import FOREVER, has_ended, is_running

pytestmark = pytest.mark.asyncio(loop_scope="module")


def waits_to_restart(status):
    told = status.get("containerStatuses") or [{"state": {}}]
    return told[0]["state"].get("waiting", {}).get("reason") == "CrashLoopBackOff"


async def test_the_last_run_of_a_container_that_waits_to_restart_is_also_its_previous_one(engine):
    # It ends badly at once, and then waits longer than the test does.
    await engine.start("echo only; exit 1", restartPolicy="Always", name="worker")
    await engine.wait(waits_to_restart)
    for more in ((), ("--previous",)):
        assert (await engine.kubectl("logs", "worker", *more)).printed == "only\n"


async def test_a_container_that_ran_once_has_no_previous_log(engine):
    await engine.start(FOREVER)
    await engine.wait(is_running)
    refused = await engine.kubectl("logs", "worker", "--previous")
    assert 'previous terminated container "main" in pod "worker" not found' in refused.complaints


async def test_the_log_of_an_init_container_is_kept(engine):
    await engine.start("echo main", initContainers=[container("echo first", name="setup")])
    await engine.wait(has_ended)
    assert (await engine.kubectl("logs", "worker", "-c", "setup")).printed == "first\n"


async def test_more_than_all_or_less_than_nothing_is_refused(engine):
    await engine.start("echo one; echo two")
    await engine.wait(has_ended)
    assert (await engine.kubectl("logs", "worker", "--since=1h", "--tail=1")).printed == "two\n"
    path = "/api/v1/namespaces/default/pods/worker/log?limitBytes=0"
    assert "must be greater than 0" in (await engine.kubectl("get", "--raw", path)).complaints
