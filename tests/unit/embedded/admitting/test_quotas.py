"""Quotas: what an object costs, what is charged, and the words in which more is refused."""

import pytest

from tessera.embedded.admitting.quotas import charges, used_by
from tessera.embedded.admitting.usage import usage_of
from tessera.embedded.refusals import ApiRefusal
from tests.unit.embedded.admitting.requesting import (
    CONFIG_MAPS,
    NODES,
    PODS,
    Cluster,
    config_map,
    creation,
    gpu_pod,
    update,
)
from tests.unit.embedded.admitting.requesting import pod as plain_pod

GPUS = "requests.nvidia.com/gpu"


def quota(hard, used=None):
    return {"metadata": {"name": "team", "namespace": "team"}, "spec": {"hard": hard}, "status": {"used": used or {}}}


def charged(asked, *quotas):
    return [charge.quota["status"]["used"] for charge in charges(asked, Cluster(resourcequotas=quotas))]


def refusal_of(asked, *quotas):
    with pytest.raises(ApiRefusal) as refusal:
        charged(asked, *quotas)
    assert (refusal.value.code, refusal.value.reason) == (403, "Forbidden")
    return refusal.value.message


def pod(name="worker", *, cpu=None, gpus=None, phase=None):
    amounts = {"cpu": cpu, "nvidia.com/gpu": gpus}
    said = {resource: amount for resource, amount in amounts.items() if amount}
    return gpu_pod(name, limits=said, requests=said) | ({"status": {"phase": phase}} if phase else {})


def test_what_is_admitted_is_charged():
    asked = creation(PODS, pod(gpus="2"))
    assert charged(asked, quota({GPUS: "4", "pods": "10"}, {GPUS: "1", "pods": "3"})) == [{GPUS: "3", "pods": "4"}]


def test_the_rest_of_a_quota_stays_as_it_was():
    before = quota({"pods": "2"}) | {"status": {"hard": {"pods": "2"}, "used": {"pods": "0"}}}
    (charge,) = charges(creation(PODS, plain_pod()), Cluster(resourcequotas=[before]))
    assert charge.quota == before | {"status": {"hard": {"pods": "2"}, "used": {"pods": "1"}}}
    assert before["status"]["used"] == {"pods": "0"}


def test_more_than_the_quota_is_refused_with_the_numbers():
    message = refusal_of(
        creation(PODS, pod("second", gpus="2")), quota({GPUS: "2", "pods": "9"}, {GPUS: "1", "pods": "1"})
    )
    numbers = f"requested: {GPUS}=2, used: {GPUS}=1, limited: {GPUS}=2"
    assert message == f'pods "second" is forbidden: exceeded quota: team, {numbers}'


def test_every_figure_that_is_exceeded_is_told():
    message = refusal_of(creation(PODS, pod(gpus="2")), quota({GPUS: "1", "pods": "0"}))
    numbers = f"requested: pods=1,{GPUS}=2, used: pods=0,{GPUS}=0, limited: pods=0,{GPUS}=1"
    assert message.endswith(f"exceeded quota: team, {numbers}")


def test_a_quota_that_is_not_about_it_is_left_alone():
    assert charged(creation(PODS, plain_pod()), quota({"services": "1"})) == []
    assert charged(creation(NODES, {"metadata": {"name": "a"}}), quota({"pods": "1"})) == []
    assert charged(creation(PODS, plain_pod(), subresource="binding"), quota({"pods": "0"})) == []


def test_a_namespace_without_quotas_is_not_charged():
    assert charged(creation(PODS, plain_pod())) == []


def test_an_update_is_charged_what_it_adds():
    with_one, with_three = pod(gpus="1"), pod(gpus="3")
    limits = quota({GPUS: "3", "pods": "1"}, {GPUS: "1", "pods": "1"})
    assert charged(update(PODS, with_one, with_three), limits) == [{GPUS: "3", "pods": "1"}]
    assert charged(update(PODS, with_one, with_one), limits) == []


def test_what_shrinks_is_let_through_however_little_is_left():
    full = quota({GPUS: "1"}, {GPUS: "3"})
    assert charged(update(PODS, pod(gpus="3"), pod(gpus="2")), full) == [{GPUS: "2"}]


@pytest.mark.parametrize(
    ("hard", "missing"),
    [
        ({"limits.cpu": "2"}, "limits.cpu for: main"),
        ({"requests.memory": "1Gi", "cpu": "2"}, "cpu for: main; requests.memory for: main"),
    ],
)
def test_a_quota_of_cpu_or_memory_demands_to_know(hard, missing):
    message = refusal_of(creation(PODS, plain_pod()), quota(hard))
    assert message.endswith(f"failed quota: team: must specify {missing}")


def test_containers_that_do_not_say_are_named():
    said = {"name": "told", "resources": {"limits": {"cpu": "1"}}}
    asked = creation(PODS, plain_pod(containers=[said, {"name": "b"}], initContainers=[{"name": "a"}]))
    assert refusal_of(asked, quota({"limits.cpu": "2"})).endswith("must specify limits.cpu for: a,b")


def test_figures_are_in_the_units_of_the_quota():
    def one(amount):
        asked = creation(PODS, gpu_pod(requests={"memory": amount, "cpu": "250m"}))
        return charged(asked, quota({"requests.memory": "4Gi", "requests.cpu": "4"}, {"requests.memory": "1536Mi"}))

    assert one("512Mi") == [{"requests.memory": "2Gi", "requests.cpu": "250m"}]
    assert one("1") == [{"requests.memory": "1610612737", "requests.cpu": "250m"}]


def test_other_objects_are_counted():
    asked = creation(CONFIG_MAPS, config_map())
    assert charged(asked, quota({"configmaps": "1"})) == [{"configmaps": "1"}]
    assert "requested: count/configmaps=1" in refusal_of(asked, quota({"count/configmaps": "0"}))


def test_what_is_there_is_counted_anew():
    limits = quota({GPUS: "9", "pods": "9", "services": "1"}, {GPUS: "7"})
    there = [pod(gpus="2"), pod(gpus="1"), pod(gpus="4", phase="Succeeded"), pod(gpus="4", phase="Failed")]
    assert used_by(limits, [(PODS, one) for one in there]) == {GPUS: "3", "pods": "2", "services": "0"}


def container(name, cpu, **fields):
    return {"name": name, "resources": {"requests": {"cpu": cpu}}} | fields


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        ({"containers": [container("a", "1"), container("b", "500m")]}, 1.5),
        ({"containers": [container("a", "1")], "initContainers": [container("i", "3")]}, 3),
        ({"containers": [container("a", "2")], "initContainers": [container("i", "1")]}, 2),
        ({"containers": [container("a", "2")], "initContainers": [container("s", "1", restartPolicy="Always")]}, 3),
        (
            {
                "containers": [container("a", "1")],
                "initContainers": [container("s", "1", restartPolicy="Always"), container("i", "3")],
            },
            4,
        ),
        ({"containers": [container("a", "1")], "overhead": {"cpu": "250m"}}, 1.25),
    ],
)
def test_a_pod_costs_the_most_that_it_needs_at_once(spec, cpu):
    usage = usage_of(PODS, plain_pod(**spec))
    assert usage["requests.cpu"] == usage["cpu"] == cpu
