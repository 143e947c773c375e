"""Every denial is one sentence: what, on which object, which value, what was expected, what to do."""

import pytest

from tessera.model.refusals import Reason, Refusal
from tests.unit.admission.pods import a_container, a_gpu_pod, a_pod, denial_of, is_untouched, mutate

GPU = {"nvidia.com/gpu": "1"}
PRIVILEGED = {"securityContext": {"privileged": True}}


def test_a_pod_without_containers():
    sentence = "default/web-0: spec.containers is empty, expected at least one container; add one"
    assert denial_of(a_pod()) == sentence


def test_a_privileged_container_with_a_card():
    assert denial_of(a_pod(a_container(GPU, **PRIVILEGED))) == (
        "default/web-0: securityContext.privileged of container train is true, expected false beside nvidia.com/gpu;"
        " a privileged container sees every card of its node, so drop one of the two"
    )


def test_a_privileged_init_container_with_a_card():
    init = a_container({"hygon.com/dcunum": "1"}, **PRIVILEGED)
    assert "beside hygon.com/dcunum;" in denial_of(a_pod(a_container(), initContainers=[init]))


def test_a_privileged_container_without_a_card_is_none_of_our_business():
    assert mutate(a_pod(a_container(GPU), a_container(**PRIVILEGED)))
    assert is_untouched(a_pod(a_container(**PRIVILEGED)))


def test_a_node_that_was_chosen_past_the_scheduler():
    assert denial_of(a_pod(a_container(GPU), nodeName="gpu-07")) == (
        'default/web-0: spec.nodeName is "gpu-07", expected none beside nvidia.com/gpu, because only the scheduler can'
        ' give cards; set nodeSelector to kubernetes.io/hostname: "gpu-07" instead'
    )


def test_a_claim_on_a_node_that_was_chosen_past_the_scheduler():
    pod = a_pod(a_container(), annotations={"gpu.scheduling/claim": "mine"}, nodeName="gpu-07")
    assert "expected none beside gpu.scheduling/claim," in denial_of(pod)


def test_a_percentage_out_of_range():
    assert denial_of(a_gpu_pod(gpu="1", gpumem_percentage="101")) == (
        'default/web-0: nvidia.com/gpumem-percentage is "101", expected a whole number from 0 to 100'
    )


@pytest.mark.parametrize(
    ("limits", "part"),
    [
        ({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "8000Mi"}, 'such as "8000"; drop the unit'),
        ({"nvidia.com/gpu": "0", "nvidia.com/gpumem": "1"}, "raise it or drop the other"),
        (
            {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1", "nvidia.com/gpumem-percentage": "1"},
            "keep one of the two",
        ),
        ({"huawei.com/Ascend910B3": "2", "huawei.com/Ascend910B3-memory": "1"}, "several cards are only given whole"),
        ({"huawei.com/Ascend910B3": "1", "huawei.com/Ascend910B3-core": "5"}, 'with huawei.com/vnpu-mode "hami-core"'),
        ({"huawei.com/Ascend910C": "3"}, 'an even number such as "4"'),
        ({"mthreads.com/vgpu": "1", "mthreads.com/sgpu-memory": "3"}, "expected one of 2, 4, 8"),
    ],
)
def test_figures_that_contradict_or_do_not_exist(limits, part):
    sentence = denial_of(a_pod(a_container(limits)))
    assert sentence.startswith("default/web-0: ")
    assert part in sentence


def test_weights_that_are_none():
    pod = a_pod(a_container(GPU), annotations={"hami.io/device-scoring-weights": "slot=x"})
    assert denial_of(pod).startswith("default/web-0: hami.io/device-scoring-weights")


def test_a_class_of_metax_with_several_cards():
    limits, key = {"metax-tech.com/sgpu": "2"}, "metax-tech.com/sgpu-app-class"
    assert denial_of(a_pod(a_container(limits), annotations={key: "online"})) == (
        f'default/web-0: {key} is "online", expected none beside 2 cards; ask for one card or drop the annotation'
    )
    assert "expected online, offline" in denial_of(a_pod(a_container(limits), annotations={key: "x"}))
    assert mutate(a_pod(a_container(limits)))


def test_a_quota_that_would_be_passed():
    class Quotas:
        def check(self, namespace, request):
            assert request.wants_devices
            return Refusal(Reason.QUOTA, need=80_000, have=64_000, where=namespace, detail="NVIDIA memory_mib")

    assert denial_of(a_gpu_pod(gpu="1"), quotas=Quotas()) == (
        "default/web-0: NVIDIA memory_mib would be 80000, the quota allows 64000; ask for less, remove pods of the"
        " namespace, or have its ResourceQuota raised"
    )


@pytest.mark.parametrize(
    ("key", "value", "which"),
    [
        ("hami.io/node-scheduler-policy", "foo", 'the node policy is "foo"'),
        ("hami.io/gpu-scheduler-policy", "binpack,foo", 'the card policy is "foo"'),
    ],
)
def test_a_policy_that_does_not_exist(key: str, value: str, which: str):
    denial = denial_of(a_pod(a_container(GPU), annotations={key: value}))
    assert denial.startswith(f"default/web-0: {which}, expected ")
    assert is_untouched(a_pod(a_container(), annotations={key: value})), "it wants no cards"
