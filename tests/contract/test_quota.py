"""ResourceQuota: what a namespace may hold, and the words in which more is refused."""

import pytest

from tests.contract.objects import pod
from tests.contract.refusals import refused
from tests.contract.waiting import eventually

pytestmark = pytest.mark.contract(area="Quota", needed_by="operators, scheduler, MPIJob")

GPUS = "requests.nvidia.com/gpu"


@pytest.fixture
def quota(api, namespace):
    """Limit the namespace; returns what is used, as the quota's status says."""
    quotas = api.collection("resourcequotas", namespace)

    def used():
        return quotas.get("team").get("status", {}).get("used", {})

    def limit(**hard):
        quotas.create({"metadata": {"name": "team"}, "spec": {"hard": hard}})
        eventually(lambda: set(used()) == set(hard))
        return used

    return limit


def gpu_pod(name, count):
    return pod(name, container={"resources": {"limits": {"nvidia.com/gpu": str(count)}}})


@pytest.mark.contract(promise="More than the quota is 403 `exceeded quota` with requested, used and limited")
def test_more_than_the_quota_is_refused_with_the_numbers(pods, quota):
    quota(**{GPUS: "2"})
    pods.create(gpu_pod("first", 1))
    with refused(403, "Forbidden") as refusal:
        pods.create(gpu_pod("second", 2))
    numbers = f"requested: {GPUS}=2, used: {GPUS}=1, limited: {GPUS}=2"
    assert refusal.value.message == f'pods "second" is forbidden: exceeded quota: team, {numbers}'


@pytest.mark.contract(promise="status.used counts at once what was admitted, and gives back what went")
def test_what_is_used_follows_the_pods(pods, quota):
    used = quota(**{GPUS: "2", "pods": "10"})
    pods.create(gpu_pod("worker", 2))
    assert used() == {GPUS: "2", "pods": "1"}
    pods.delete("worker")
    eventually(lambda: used() == {GPUS: "0", "pods": "0"})
    pods.create(gpu_pod("next", 2))


@pytest.mark.contract(promise="The number of pods is limited the same way")
def test_the_number_of_pods_is_limited(pods, quota):
    quota(pods="1")
    pods.create(pod("first"))
    with refused(403, "Forbidden") as refusal:
        pods.create(pod("second"))
    assert "exceeded quota: team, requested: pods=1, used: pods=1, limited: pods=1" in refusal.value.message


@pytest.mark.contract(promise="A quota of cpu or memory demands that every container says what it wants")
def test_a_quota_of_cpu_demands_to_know(pods, quota):
    quota(**{"limits.cpu": "2"})
    with refused(403, "Forbidden") as refusal:
        pods.create(pod("worker"))
    assert "failed quota: team: must specify limits.cpu for: main" in refusal.value.message
