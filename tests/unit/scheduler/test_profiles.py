"""A KubeSchedulerConfiguration as the embedded loop reads it."""

import pytest
import yaml

from tessera.errors import InvalidRequest
from tessera.model.catalogue import Catalogue
from tessera.scheduler.configuration import PROFILES, Endpoint, scheduler_configuration
from tessera.scheduler.profiles import load_profiles, read_profiles


def configuration(*plugins, name="gpu-scheduler"):
    phases = ("preFilter", "filter", "score", "reserve", "preBind")
    enabled = {phase: {"enabled": [{"name": plugin} for plugin in plugins]} for phase in phases}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": name, "plugins": enabled}],
    }


def test_the_claims_plugin_may_be_named_in_every_phase():
    assert read_profiles(configuration("GpuClaimPlugin", name="my-scheduler"), "file") == ("my-scheduler",)


def test_our_own_configuration_for_kube_scheduler_is_read_as_well():
    made = scheduler_configuration(Catalogue(()), Endpoint("http://127.0.0.1:1"))
    assert read_profiles(made, "file") == PROFILES


def test_a_plugin_that_nobody_has_is_refused():
    expected = 'file: profile gpu-scheduler: preFilter enables "Coscheduling", expected GpuClaimPlugin or a plugin of'
    with pytest.raises(InvalidRequest, match=expected):
        read_profiles(configuration("Coscheduling"), "file")


def test_another_kind_of_object_is_refused():
    with pytest.raises(InvalidRequest, match="file: is a v1 Pod, expected a kubescheduler"):
        read_profiles({"apiVersion": "v1", "kind": "Pod"}, "file")


def test_a_file_that_is_not_there_or_not_yaml_is_told_in_a_sentence(tmp_path):
    path = tmp_path / "config.yaml"
    with pytest.raises(InvalidRequest, match="cannot be read: No such file or directory"):
        load_profiles(path)
    path.write_text("{")
    with pytest.raises(InvalidRequest, match="is not YAML"):
        load_profiles(path)
    path.write_text(yaml.safe_dump(configuration("GpuClaimPlugin")))
    assert load_profiles(path) == ("gpu-scheduler",)
