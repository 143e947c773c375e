"""Limits say in the end what the container gets, for every vendor."""

import pytest

from tests.unit.admission.pods import a_container, a_gpu_pod, a_pod, mutate, warnings_of


def limits_of(pod):
    return pod["spec"]["containers"][0]["resources"]["limits"]


@pytest.mark.parametrize(
    ("asked", "written"),
    [
        ({"nvidia.com/gpu": "1"}, {"nvidia.com/gpucores": "100"}),
        ({"nvidia.com/gpu": "1", "nvidia.com/gpumem-percentage": "100"}, {"nvidia.com/gpucores": "100"}),
        ({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "0"}, {"nvidia.com/gpucores": "100"}),
        ({"nvidia.com/gpu": "1", "nvidia.com/gpucores": "30"}, {}),
        ({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000"}, {}),
        ({"nvidia.com/gpu": "1", "nvidia.com/gpumem-percentage": "50"}, {}),
        ({"nvidia.com/gpumem": "3000"}, {"nvidia.com/gpu": "1"}),
        ({"nvidia.com/gpumem-percentage": "50"}, {"nvidia.com/gpu": "1"}),
        ({"nvidia.com/gpucores": "50"}, {"nvidia.com/gpu": "1"}),
        ({"volcano.sh/vgpu-number": "2"}, {"nvidia.com/gpucores": "100"}),
        ({"hygon.com/dcumem": "2000"}, {"hygon.com/dcunum": "1"}),
        (
            {"huawei.com/Ascend910B3": "1", "huawei.com/Ascend910B3-memory": "10000"},
            {"huawei.com/Ascend910B3-memory": "16384"},
        ),
        ({"huawei.com/Ascend910C": "1"}, {"huawei.com/Ascend910C": "2"}),
        ({"huawei.com/Ascend910B3": "2"}, {}),
        ({"kunlunxin.com/vxpu": "1", "kunlunxin.com/vxpu-memory": "25000"}, {"kunlunxin.com/vxpu-memory": "49152"}),
        ({"mthreads.com/vgpu": "2", "mthreads.com/sgpu-memory": "16"}, {}),
        ({"aws.amazon.com/neuroncore": "4"}, {}),
        ({"aws.amazon.com/neuron": "1"}, {}),
    ],
)
def test_limits_are_completed(asked, written):
    assert limits_of(mutate(a_pod(a_container(asked)))) == asked | written


def test_requests_follow_the_limits_where_they_name_the_same():
    key = "huawei.com/Ascend910C"
    resources = {"limits": {key: "1"}, "requests": {key: "1", "cpu": "1"}}
    changed = mutate(a_pod({"name": "train", "resources": resources}))["spec"]["containers"][0]["resources"]
    assert changed == {"limits": {key: "2"}, "requests": {key: "2", "cpu": "1"}}


def test_init_containers_are_completed_too():
    pod = mutate(a_pod(a_container(), initContainers=[a_container({"nvidia.com/gpumem": "100"})]))
    assert pod["spec"]["initContainers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"


def test_a_user_is_told_of_a_figure_that_was_guessed():
    sentence = 'default/web-0: nvidia.com/gpu of container train was missing beside nvidia.com/gpumem and is now "1"'
    assert warnings_of(a_gpu_pod(gpumem="3000")) == (sentence,)


def test_a_user_is_told_of_a_figure_that_was_rounded():
    sentence = 'default/web-0: huawei.com/Ascend910C of container train was "1" and is now "2"'
    assert warnings_of(a_pod(a_container({"huawei.com/Ascend910C": "1"}))) == (sentence,)


def test_the_cores_of_a_whole_card_are_no_news():
    assert warnings_of(a_gpu_pod(gpu="1")) == ()
