"""A real API server asks our webhook, about our pods and no others."""

import pytest

from tests.admission.conftest import a_pod

GPU = {"nvidia.com/gpu": "1"}


@pytest.fixture
def asked(webhook):
    webhook.asked.clear()
    return webhook.asked


def test_a_pod_that_asks_for_a_card_is_completed(admission_api, namespace, asked):
    pod = admission_api.create(a_pod("trainer", namespace, limits=GPU))
    assert pod["spec"]["schedulerName"] == "hami-scheduler"
    whole = {"nvidia.com/gpu": "1", "nvidia.com/gpucores": "100"}
    assert pod["spec"]["containers"][0]["resources"] == {"limits": whole, "requests": whole}
    assert asked == ["trainer"]


@pytest.mark.usefixtures("webhook")
def test_rewritten_figures_pass_the_validation_of_the_api_server(admission_api, namespace):
    pod = admission_api.create(a_pod("npu", namespace, limits={"huawei.com/Ascend910C": "1"}))
    both = {"huawei.com/Ascend910C": "2"}
    assert pod["spec"]["containers"][0]["resources"] == {"limits": both, "requests": both}


def test_other_pods_never_reach_the_webhook(admission_api, namespace, asked):
    admission_api.create(a_pod("plain", namespace))
    admission_api.create(a_pod("cpu", namespace, limits={"cpu": "1", "memory": "1Gi"}))
    admission_api.create(a_pod("other", namespace, limits={"example.com/gpu": "1"}))
    admission_api.create(a_pod("ignored", namespace, limits=GPU, labels={"hami.io/webhook": "ignore"}))
    admission_api.create(a_pod("system", "kube-system", limits=GPU))
    assert asked == []


@pytest.mark.parametrize(
    "key", ["nvidia.com/gpumem", "hygon.com/dcunum", "cambricon.com/vmlu", "volcano.sh/vgpu-number"]
)
def test_every_vendor_s_pods_reach_the_webhook(admission_api, namespace, asked, key):
    admission_api.create(a_pod("asking", namespace, limits={key: "1"}))
    assert asked == ["asking"]


def test_init_containers_our_scheduler_and_claims_reach_the_webhook(admission_api, namespace, asked):
    early = a_pod("early", namespace)
    early["spec"]["initContainers"] = [{"name": "init", "image": "none", "resources": {"limits": GPU}}]
    named = a_pod("named", namespace)
    named["spec"]["schedulerName"] = "gpu-scheduler"
    claiming = a_pod("claiming", namespace, annotations={"gpu.scheduling/claim": "mine"})
    scheduler = [admission_api.create(pod)["spec"]["schedulerName"] for pod in (early, named, claiming)]
    assert scheduler == ["hami-scheduler", "gpu-scheduler", "gpu-scheduler"]
    assert asked == ["early", "named", "claiming"]


def test_a_labelled_namespace_is_left_alone(admission_api, namespace, asked):
    admission_api.cluster.kubectl("label", "namespace", namespace, "hami.io/webhook=ignore")
    admission_api.create(a_pod("trainer", namespace, limits=GPU))
    assert asked == []


def test_a_pod_of_another_scheduler_comes_and_goes_unchanged(admission_api, namespace, asked):
    pod = a_pod("volcanic", namespace, limits=GPU)
    pod["spec"]["schedulerName"] = "volcano"
    assert admission_api.create(pod)["spec"]["containers"][0]["resources"]["limits"] == GPU
    assert asked == ["volcanic"]


@pytest.mark.usefixtures("webhook")
def test_a_denial_reads_well(admission_api, namespace):
    pod = a_pod("trainer", namespace, limits=GPU | {"nvidia.com/gpumem-percentage": "101"})
    assert admission_api.refusal("create", "-f", "-", input=pod) == (
        'Error from server (Forbidden): error when creating "STDIN": admission webhook "vgpu.hami.io" denied the'
        f' request: {namespace}/trainer: nvidia.com/gpumem-percentage is "101", expected a whole number from 0 to 100'
    )


@pytest.mark.usefixtures("webhook")
def test_a_pod_without_containers_is_denied_in_our_words(admission_api, namespace):
    pod = a_pod("empty", namespace)
    pod["spec"] = {"schedulerName": "hami-scheduler", "containers": []}
    said = admission_api.refusal("create", "--validate=false", "-f", "-", input=pod)
    assert said.endswith(f"{namespace}/empty: spec.containers is empty, expected at least one container; add one")


@pytest.mark.usefixtures("webhook")
@pytest.mark.parametrize("spec", [{}, {"containers": None}])
def test_a_pod_that_is_hardly_one_is_left_to_the_api_server(admission_api, namespace, spec):
    pod = a_pod("hardly", namespace) | {"spec": spec}
    assert "spec.containers: Required value" in admission_api.refusal(
        "create", "--validate=false", "-f", "-", input=pod
    )


def test_a_thousand_resources_do_not_cost_the_api_server_too_much(admission_api, namespace, asked):
    pod = a_pod("huge", namespace)
    limits = {f"example.com/part-{number}": "1" for number in range(30)}
    pod["spec"]["containers"] = [
        {"name": f"c{number}", "image": "none", "resources": {"limits": limits}} for number in range(100)
    ]
    admission_api.create(pod)
    assert asked == []
