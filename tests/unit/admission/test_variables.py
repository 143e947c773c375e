"""Environment variables that containers get."""

import pytest

from tessera.admission import Settings
from tests.unit.admission.pods import a_container, a_pod, mutate

FORCING = Settings(core_policy="force")
HIDING = Settings(hides_cards=True)
GPU = {"nvidia.com/gpu": "1"}


def env_of(pod, index=0):
    return pod["spec"]["containers"][index].get("env")


@pytest.mark.parametrize("priority", ["0", "1"])
def test_a_priority_becomes_a_variable(priority):
    pod = mutate(a_pod(a_container(GPU | {"nvidia.com/priority": priority})))
    assert env_of(pod) == [{"name": "CUDA_TASK_PRIORITY", "value": priority}]


def test_without_a_priority_there_is_no_variable():
    assert env_of(mutate(a_pod(a_container(GPU)))) is None


def test_a_core_policy_is_told_to_containers_that_have_a_card():
    pod = mutate(a_pod(a_container(GPU), a_container()), FORCING)
    assert env_of(pod) == [{"name": "GPU_CORE_UTILIZATION_POLICY", "value": "force"}]
    assert env_of(pod, 1) is None


def test_cards_are_hidden_from_containers_that_ask_for_none():
    pod = mutate(a_pod(a_container(GPU), a_container()), HIDING)
    assert env_of(pod) is None
    assert env_of(pod, 1) == [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "none"}]


def test_the_last_variable_of_a_name_is_the_one_that_counts():
    mine = [{"name": "A", "value": "1"}, {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
    pod = mutate(a_pod(a_container(GPU), a_container(env=[mine[1], *mine])), HIDING)
    assert env_of(pod, 1) == [mine[1], mine[0], {"name": "NVIDIA_VISIBLE_DEVICES", "value": "none"}]


def test_variables_of_the_user_stay():
    mine = {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    pod = mutate(a_pod(a_container(GPU, env=[mine])), FORCING)
    assert env_of(pod) == [mine, {"name": "GPU_CORE_UTILIZATION_POLICY", "value": "force"}]
