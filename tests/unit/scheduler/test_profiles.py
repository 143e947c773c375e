"""A KubeSchedulerConfiguration as the embedded loop reads it."""

import pytest
import yaml

from tessera.errors import InvalidRequest
from tessera.model.catalogue import Catalogue
from tessera.scheduler.configuration import PROFILES, Endpoint, scheduler_configuration
from tessera.scheduler.profiles import load_profiles


def configuration(*plugins, name="gpu-scheduler"):
    phases = ("preFilter", "filter", "score", "reserve", "preBind")
    enabled = {phase: {"enabled": [{"name": plugin} for plugin in plugins]} for phase in phases}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": name, "plugins": enabled}],
    }


@pytest.fixture
def path(tmp_path):
    return tmp_path / "config.yaml"


def load(path, document):
    path.write_text(yaml.safe_dump(document))
    return load_profiles(path)


def test_the_claims_plugin_may_be_named_in_every_phase(path):
    assert load(path, configuration("GpuClaimPlugin", name="my-scheduler")) == ("my-scheduler",)


def test_our_own_configuration_for_kube_scheduler_is_read_as_well(path):
    assert load(path, scheduler_configuration(Catalogue(()), Endpoint("http://127.0.0.1:1"))) == PROFILES


def test_what_is_null_is_as_good_as_not_there(path):
    document = configuration() | {"profiles": [{"schedulerName": None, "plugins": {"filter": None}}]}
    assert load(path, document) == ("default-scheduler",)
    assert load(path, configuration() | {"profiles": None}) == ()


def test_a_plugin_that_nobody_has_is_refused(path):
    expected = 'profile gpu-scheduler: filter enables "Coscheduling", expected GpuClaimPlugin or a plugin of'
    with pytest.raises(InvalidRequest, match=expected):
        load(path, configuration("Coscheduling"))


def test_another_kind_of_object_is_refused(path):
    with pytest.raises(InvalidRequest, match=": is a v1 Pod, expected a kubescheduler"):
        load(path, {"apiVersion": "v1", "kind": "Pod"})


def test_a_file_that_is_not_there_or_not_yaml_is_told_in_a_sentence(path):
    with pytest.raises(InvalidRequest, match="cannot be read: No such file or directory"):
        load_profiles(path)
    path.write_text("{")
    with pytest.raises(InvalidRequest, match="is not YAML"):
        load_profiles(path)
