"""The configuration keeps our scores below what a pod prefers, and kube-scheduler honest about TLS."""

import pytest

from tessera.errors import InvalidRequest
from tessera.model.extender import MAX_SCORE
from tessera.scheduler.configuration import Endpoint, scheduler_configuration
from tessera.scheduler.weighing import OUTWEIGHING
from tests.unit.scheduler.cluster import CATALOGUE

PLUGIN_POINTS = 100  # the most that a plugin gives a node, before its weight
EXTENDER_FACTOR = 10  # what kube-scheduler multiplies an extender's score by


def test_both_profiles_are_there_and_every_resource_is_ours():
    document = scheduler_configuration(CATALOGUE, Endpoint("http://127.0.0.1:8080"))
    assert [profile["schedulerName"] for profile in document["profiles"]] == ["hami-scheduler", "gpu-scheduler"]
    deciding, _ = document["extenders"]
    managed = {resource["name"] for resource in deciding["managedResources"]}
    assert {"nvidia.com/gpu", "nvidia.com/gpumem", "huawei.com/Ascend910B4", "gpu.scheduling/claim"} <= managed
    assert all(resource["ignoredByScheduler"] for resource in deciding["managedResources"])
    assert document["percentageOfNodesToScore"] == 100


def test_pods_without_cards_are_scored_by_us_and_need_us_for_nothing_else():
    deciding, scoring = scheduler_configuration(CATALOGUE, Endpoint("http://127.0.0.1:8080"))["extenders"]
    assert (deciding["filterVerb"], deciding["bindVerb"]) == ("filter?choose", "bind")
    assert "prioritizeVerb" not in deciding, "a pod that wants cards would be scored twice"
    assert scoring["prioritizeVerb"] == "prioritize"
    assert not {"filterVerb", "bindVerb", "managedResources"} & scoring.keys()
    assert scoring["ignorable"]
    assert not deciding["ignorable"]


def test_what_a_pod_prefers_outweighs_our_whole_range():
    assert OUTWEIGHING * PLUGIN_POINTS > MAX_SCORE * EXTENDER_FACTOR


def test_an_extender_over_tls_is_always_verified():
    with pytest.raises(InvalidRequest, match="no CA file is named"):
        scheduler_configuration(CATALOGUE, Endpoint("https://127.0.0.1:443"))
    for extender in scheduler_configuration(CATALOGUE, Endpoint("https://e:443", "/ca.crt"))["extenders"]:
        assert extender["tlsConfig"] == {"insecure": False, "caFile": "/ca.crt"}
