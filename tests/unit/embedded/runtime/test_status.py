from datetime import UTC, datetime, timedelta

import pytest

from tessera.embedded.runtime.fields import Place
from tessera.embedded.runtime.restarts import Restarts, should_restart
from tessera.embedded.runtime.states import LOST, Record, Running, Terminated, Waiting, read_record
from tessera.embedded.runtime.status import Facts, phase_of, pod_status

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
PLACE = Place(node="node-a", host_address="127.0.0.1", pod_address="127.64.0.1")
WAITING, RUNNING = Waiting("ContainerCreating"), Running(NOW)
DONE = Terminated(exit_code=0, reason="Completed", started_at=NOW, finished_at=NOW)
BROKEN = Terminated(exit_code=1, reason="Error", started_at=NOW, finished_at=NOW)


def record(state, name="main", **more):
    return Record(name=name, image="x", state=state, **more)


def facts(**more):
    return Facts(place=PLACE, began_at=NOW, now=NOW, **more)


def conditions(status):
    return {one["type"]: one for one in status["conditions"]}


@pytest.mark.parametrize(
    ("policy", "states", "phase"),
    [
        ("Never", [WAITING], "Pending"),
        ("Never", [RUNNING, WAITING], "Pending"),
        ("Never", [RUNNING, DONE], "Running"),
        ("Never", [DONE, DONE], "Succeeded"),
        ("Never", [DONE, BROKEN], "Failed"),
        ("OnFailure", [DONE], "Succeeded"),
        ("OnFailure", [BROKEN], "Running"),
        ("Always", [DONE], "Running"),
        ("Always", [BROKEN], "Running"),
    ],
)
def test_the_phase_follows_from_the_containers(policy, states, phase):
    assert phase_of({"restartPolicy": policy}, [], [record(state) for state in states]) == phase


def test_a_container_that_waits_to_be_started_again_does_not_make_its_pod_pending():
    waits = record(Waiting("CrashLoopBackOff"), last=BROKEN)
    assert phase_of({"restartPolicy": "Always"}, [], [waits]) == "Running"


@pytest.mark.parametrize(
    ("policy", "state", "phase"),
    [
        ("Never", BROKEN, "Failed"),
        ("Always", BROKEN, "Pending"),
        ("Never", RUNNING, "Pending"),
        ("Never", DONE, "Running"),
    ],
)
def test_init_containers_come_first(policy, state, phase):
    spec = {"restartPolicy": policy, "initContainers": [{"name": "first"}]}
    others = [record(RUNNING if state is DONE else WAITING)]
    assert phase_of(spec, [record(state, name="first")], others) == phase


def test_a_pod_has_not_ended_while_its_sidecar_runs():
    spec = {"restartPolicy": "Never", "initContainers": [{"name": "side", "restartPolicy": "Always"}]}
    records = [record(RUNNING, name="side"), record(DONE)]
    assert pod_status({"spec": spec}, records, facts())["phase"] == "Running"
    assert pod_status({"spec": spec}, records, facts(is_final=True))["phase"] == "Succeeded"


def test_a_pod_that_was_stopped_has_ended_whatever_its_policy():
    status = pod_status({"spec": {"restartPolicy": "Always"}}, [record(DONE)], facts(is_final=True))
    assert status["phase"] == "Succeeded"


def test_a_failure_from_outside_is_told_once_the_pod_has_ended():
    pod, late = {"spec": {"restartPolicy": "Never"}}, ("DeadlineExceeded", "too long")
    before = pod_status(pod, [record(DONE)], facts(failure=late))
    assert (before["phase"], "reason" in before) == ("Running", False)
    after = pod_status(pod, [record(DONE)], facts(failure=late, is_final=True))
    assert (after["phase"], after["reason"], after["message"]) == ("Failed", *late)


def test_conditions_say_which_containers_are_not_ready():
    pod = {"spec": {"restartPolicy": "Always"}}
    told = conditions(pod_status(pod, [record(RUNNING, ready=True), record(RUNNING, name="slow")], facts()))
    assert told["Initialized"]["status"] == "True"
    assert (told["Ready"]["reason"], told["Ready"]["message"]) == (
        "ContainersNotReady",
        "containers with unready status: [slow]",
    )


def test_a_condition_keeps_the_time_of_its_last_change():
    pod = {"spec": {"restartPolicy": "Always"}}
    records = [record(RUNNING, ready=True, started=True)]
    before = conditions(pod_status(pod, records, facts()))
    later = NOW + timedelta(minutes=1)
    same = Facts(place=PLACE, began_at=NOW, now=later, conditions=before)
    assert conditions(pod_status(pod, records, same))["Ready"] == before["Ready"]
    changed = conditions(pod_status(pod, [record(RUNNING)], same))["Ready"]
    assert changed["lastTransitionTime"] == "2026-01-02T03:05:05Z"


def test_a_readiness_gate_keeps_a_pod_from_being_ready():
    pod = {"spec": {"restartPolicy": "Always", "readinessGates": [{"conditionType": "example/up"}]}}
    records = [record(RUNNING, ready=True)]
    told = conditions(pod_status(pod, records, facts()))
    assert (told["Ready"]["status"], told["ContainersReady"]["status"]) == ("False", "True")
    met = facts(conditions={"example/up": {"type": "example/up", "status": "True"}})
    assert conditions(pod_status(pod, records, met))["Ready"]["status"] == "True"


def test_a_container_that_ran_when_the_engine_ended_is_lost():
    told = {"state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}, "restartCount": 4}
    found = read_record({"name": "main", "image": "x"}, told, NOW)
    assert isinstance(found.state, Terminated)
    assert (found.state.exit_code, found.state.reason, found.restarts) == (137, LOST, 4)


def test_what_is_told_of_a_container_is_read_back_as_it_was():
    ended = record(DONE, last=BROKEN, restarts=3, container_id="tessera://1")
    assert read_record({"name": "main", "image": "x"}, ended.document(), NOW) == ended


@pytest.mark.parametrize(
    ("policy", "code", "again"),
    [("Always", 0, True), ("OnFailure", 0, False), ("OnFailure", 1, True), ("Never", 1, False)],
)
def test_the_policy_decides_about_a_restart(policy, code, again):
    assert should_restart(policy, code) is again


def test_the_first_restart_is_at_once_and_each_further_one_twice_as_late():
    assert [Restarts().wait_s(crashes) for crashes in range(1, 9)] == [0, 10, 20, 40, 80, 160, 300, 300]


def test_a_container_that_ran_for_long_begins_anew():
    long = Terminated(exit_code=1, reason="Error", started_at=NOW - timedelta(hours=1), finished_at=NOW)
    assert Restarts().count(5, long) == 1
    assert Restarts().count(5, BROKEN) == 6
