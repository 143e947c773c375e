"""Who is ours, and what the pod as a whole is given."""

import pytest

from tessera.admission import DEFAULT_SETTINGS, Settings, Untouched, review
from tests.unit.admission.pods import (
    CATALOGUE,
    a_container,
    a_gpu_pod,
    a_pod,
    denial_of,
    is_untouched,
    mutate,
)


@pytest.mark.parametrize("name", [None, "", "default-scheduler"])
def test_a_pod_that_asks_for_a_card_is_sent_to_our_scheduler(name):
    pod = a_gpu_pod(gpu="1")
    pod["spec"]["schedulerName"] = name
    assert mutate(pod)["spec"]["schedulerName"] == "hami-scheduler"


@pytest.mark.parametrize("name", ["hami-scheduler", "gpu-scheduler", "site-scheduler"])
def test_a_pod_that_names_one_of_our_schedulers_keeps_it(name):
    pod = a_gpu_pod(gpu="1")
    pod["spec"]["schedulerName"] = name
    assert mutate(pod, Settings(scheduler="site-scheduler"))["spec"]["schedulerName"] == name


def test_a_pod_of_another_scheduler_is_left_alone_whatever_it_says():
    pod = a_gpu_pod(gpumem="8000Mi")
    pod["spec"]["schedulerName"] = "volcano"
    assert is_untouched(pod)


def test_the_default_scheduler_may_be_left_its_pods():
    assert is_untouched(a_gpu_pod(gpu="1"), Settings(takes_default=False))


def test_a_label_keeps_the_webhook_away():
    assert is_untouched(a_pod(a_container({"nvidia.com/gpu": "1"}), labels={"hami.io/webhook": "ignore"}))


def test_a_pod_that_asks_for_no_card_is_left_alone():
    assert is_untouched(a_pod(a_container({"cpu": "1"}), schedulerName="hami-scheduler"))
    assert is_untouched(a_gpu_pod(gpu="0"))


def test_a_pod_of_a_file_on_a_node_is_left_alone():
    pod = a_pod(a_container({"nvidia.com/gpu": "1"}), annotations={"kubernetes.io/config.mirror": "x"}, nodeName="n")
    assert is_untouched(pod)


def test_a_runtime_class_is_set_where_one_is_configured_and_none_is_chosen():
    settings = Settings(runtime_classes={"NVIDIA": "nvidia"})
    assert mutate(a_gpu_pod(gpu="1"), settings)["spec"]["runtimeClassName"] == "nvidia"
    chosen = a_pod(a_container({"nvidia.com/gpu": "1"}), runtimeClassName="kata")
    assert mutate(chosen, settings)["spec"]["runtimeClassName"] == "kata"
    assert "runtimeClassName" not in mutate(a_pod(a_container({"hygon.com/dcunum": "1"})), settings)["spec"]


def test_metax_shared_cards_get_a_quality_of_service_unless_one_is_chosen():
    key, limits = "metax-tech.com/sgpu-qos-policy", {"metax-tech.com/sgpu": "1"}
    assert mutate(a_pod(a_container(limits)))["metadata"]["annotations"] == {key: "best-effort"}
    chosen = a_pod(a_container(limits), annotations={key: "fixed-share"})
    assert mutate(chosen)["metadata"]["annotations"] == {key: "fixed-share"}


def test_a_pod_that_knows_no_namespace_is_told_of_by_that_of_the_request():
    pod = {"metadata": {"generateName": "web-"}, "spec": {"containers": []}}
    sentence = denial_of(pod, namespace="ml")
    assert sentence == "ml/web-: spec.containers is empty, expected at least one container; add one"


@pytest.mark.parametrize("settings", [DEFAULT_SETTINGS, Settings(core_policy="force", hides_cards=True)])
def test_a_second_review_changes_nothing(settings):
    once = mutate(a_pod(a_container({"nvidia.com/gpumem": "100", "nvidia.com/priority": "1"}), a_container()), settings)
    assert review(once, CATALOGUE, settings) == Untouched()
