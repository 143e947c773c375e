"""Pods read into requests: what counts, what is filled in, what is refused and how."""

from collections import UserDict
from typing import Any

import pytest

from tessera.errors import InvalidAnnotation, InvalidPolicy, InvalidRequest
from tessera.model.catalogue import Catalogue
from tessera.model.pods import read_pod_ref, read_pod_request
from tessera.model.requests import (
    CardSelector,
    DeviceRequest,
    HostRequest,
    LabelRule,
    PodRef,
    PodRequest,
    Role,
    ScoringWeights,
    Toleration,
)
from tessera.vendors.loading import load_catalogue, parse_vendors
from tessera.vendors.rules import refine

CATALOGUE = load_catalogue()


def container(limits: Any = None, requests: Any = None, **fields: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"limits": limits, "requests": requests}} | fields


def pod(*containers: Any, annotations: Any = None, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "train-0", "namespace": "default", "annotations": annotations}
    return {"metadata": metadata, "spec": {"containers": list(containers) or [container()]} | spec}


def read(document: Any) -> PodRequest:
    return read_pod_request(document, CATALOGUE, refine)


def device(limits: dict[str, Any], annotations: dict[str, str] | None = None) -> DeviceRequest:
    (request,) = read(pod(container(limits), annotations=annotations)).containers[0].devices
    return request


def figures(limits: dict[str, Any]) -> tuple[int, int, int, int]:
    request = device(limits)
    return request.count, request.memory_mib, request.memory_percent, request.cores_percent


def refusal(document: Any) -> str:
    with pytest.raises(InvalidRequest) as caught:
        read(document)
    return str(caught.value)


@pytest.mark.parametrize(
    ("limits", "given"),
    [
        ({"nvidia.com/gpu": "2", "nvidia.com/gpumem": "8000", "nvidia.com/gpucores": "50"}, (2, 8000, 0, 50)),
        ({"nvidia.com/gpu": 1, "nvidia.com/gpumem": 8000}, (1, 8000, 0, 0)),
        ({"nvidia.com/gpu": "1"}, (1, 0, 100, 100)),
        ({"nvidia.com/gpu": "1", "nvidia.com/gpucores": "30"}, (1, 0, 100, 30)),
        ({"nvidia.com/gpu": "1", "nvidia.com/gpucores": "0"}, (1, 0, 100, 0)),
        ({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "0"}, (1, 0, 100, 100)),
        ({"nvidia.com/gpu": "1", "nvidia.com/gpumem-percentage": "100"}, (1, 0, 100, 100)),
        ({"nvidia.com/gpu": "1", "nvidia.com/gpumem-percentage": "50"}, (1, 0, 50, 0)),
        ({"nvidia.com/gpumem": "3000"}, (1, 3000, 0, 0)),
        ({"nvidia.com/gpumem-percentage": "25"}, (1, 0, 25, 0)),
        ({"nvidia.com/gpucores": "25"}, (1, 0, 100, 25)),
        ({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "10k"}, (1, 10_000, 0, 0)),
        ({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "8e3"}, (1, 8000, 0, 0)),
        ({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1", "nvidia.com/gpucores": "500"}, (1, 1, 0, 100)),
        ({"cambricon.com/mlu": "1"}, (1, 0, 100, 100)),
        ({"cambricon.com/vmlu": "2", "cambricon.com/mlu.smlu.vmemory": "4"}, (2, 1024, 0, 0)),
        ({"cambricon.com/vmlu": "2", "cambricon.com/mlu": "2"}, (2, 0, 100, 100)),
        ({"hygon.com/dcu": "1", "hygon.com/dcumem": "2000", "hygon.com/dcucores": "60"}, (1, 2000, 0, 60)),
        ({"mthreads.com/vgpu": "1", "mthreads.com/sgpu-memory": "4", "mthreads.com/sgpu-core": "4"}, (1, 2048, 0, 25)),
        ({"mthreads.com/vgpu": "1", "mthreads.com/sgpu-memory": "4", "mthreads.com/sgpu-core": "1"}, (1, 2048, 0, 6)),
        ({"metax-tech.com/sgpu": "1", "metax-tech.com/vmemory": "8"}, (1, 8192, 0, 0)),
        ({"metax-tech.com/sgpu": "1", "metax-tech.com/vmemory": "8Gi"}, (1, 8192, 0, 0)),
        ({"metax-tech.com/sgpu": "1", "metax-tech.com/vmemory": "100M"}, (1, 96, 0, 0)),
        ({"metax-tech.com/gpu": "3"}, (3, 0, 100, 100)),
        ({"huawei.com/Ascend910B4": "1", "huawei.com/Ascend910B4-memory": "5000"}, (1, 8192, 0, 25)),
        ({"aws.amazon.com/neuroncore": "4"}, (2, 0, 100, 100)),
        ({"aws.amazon.com/neuroncore": "1"}, (1, 0, 50, 50)),
    ],
)
def test_figures_are_counted_and_filled_in(limits, given):
    assert figures(limits) == given


@pytest.mark.parametrize(
    "limits",
    [
        None,
        {},
        {"cpu": "1"},
        {"nvidia.com/gpu": "0"},
        {"nvidia.com/gpu": "0", "nvidia.com/gpumem": "0"},
        {"nvidia.com/gpu": None},
        {"nvidia.com/priority": "1"},
    ],
)
def test_nothing_asked_for_is_no_request(limits):
    request = read(pod(container(limits)))
    assert request.containers[0].devices == ()
    assert not request.wants_devices


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        (
            {"nvidia.com/gpumem": "8000Mi"},
            'nvidia.com/gpumem is "8000Mi", expected a whole number of MiB such as "8000"; drop the unit',
        ),
        (
            {"nvidia.com/gpumem": "8Gi"},
            'nvidia.com/gpumem is "8Gi", expected a whole number of MiB such as "8192"; drop the unit',
        ),
        (
            {"nvidia.com/gpumem": "8Ki"},
            'nvidia.com/gpumem is "8Ki", expected a whole number of MiB such as "8000"; drop the unit',
        ),
        (
            {"nvidia.com/gpumem": "8G"},
            'nvidia.com/gpumem is "8G", expected a whole number of MiB such as "7629"; drop the unit',
        ),
        ({"nvidia.com/gpumem": "-1"}, 'nvidia.com/gpumem is "-1", expected a whole number of MiB such as "8000"'),
        ({"nvidia.com/gpumem": "1.5"}, 'nvidia.com/gpumem is "1.5", expected a whole number of MiB such as "8000"'),
        ({"nvidia.com/gpumem": 1.5}, 'nvidia.com/gpumem is "1.5", expected a whole number of MiB such as "8000"'),
        ({"nvidia.com/gpumem": True}, 'nvidia.com/gpumem is true, expected a whole number of MiB such as "8000"'),
        ({"nvidia.com/gpumem": ["8"]}, 'nvidia.com/gpumem is a list, expected a whole number of MiB such as "8000"'),
        (
            {"nvidia.com/gpumem": "much"},
            'nvidia.com/gpumem is "much", expected a whole number of MiB such as "8000"',
        ),
        (
            {"nvidia.com/gpumem": "2147483648"},
            'nvidia.com/gpumem is "2147483648", expected a whole number of MiB such as "2048"',
        ),
        (
            {"cambricon.com/mlu.smlu.vmemory": "8Gi"},
            'cambricon.com/mlu.smlu.vmemory is "8Gi", expected a whole number of 256 MiB units such as "32";'
            " drop the unit",
        ),
        (
            {"cambricon.com/mlu.smlu.vmemory": "2147483647"},
            'cambricon.com/mlu.smlu.vmemory is "2147483647", expected a whole number of 256 MiB units such as "7"',
        ),
        (
            {"metax-tech.com/vmemory": "eight"},
            'metax-tech.com/vmemory is "eight", expected a quantity such as "8Gi" or a whole number of GiB such as "8"',
        ),
        ({"nvidia.com/gpu": "half"}, 'nvidia.com/gpu is "half", expected a whole number of cards such as "1"'),
        ({"nvidia.com/gpu": "500m"}, 'nvidia.com/gpu is "500m", expected a whole number of cards such as "1"'),
        ({"nvidia.com/gpucores": "-5"}, 'nvidia.com/gpucores is "-5", expected a whole number from 0 to 100'),
        (
            {"nvidia.com/gpumem-percentage": "101"},
            'nvidia.com/gpumem-percentage is "101", expected a whole number from 0 to 100',
        ),
        (
            {"nvidia.com/gpu": 1, "nvidia.com/priority": "x"},
            'nvidia.com/priority is "x", expected a whole number such as "1"',
        ),
        (
            {"nvidia.com/gpumem": "1", "nvidia.com/gpumem-percentage": "1"},
            'nvidia.com/gpumem is "1", expected none beside nvidia.com/gpumem-percentage; keep one of the two',
        ),
        (
            {"nvidia.com/gpu": "0", "nvidia.com/gpumem": "1"},
            'nvidia.com/gpu is "0", expected at least 1 beside nvidia.com/gpumem; raise it or drop the other',
        ),
        (
            {"nvidia.com/gpu": "0", "nvidia.com/gpucores": "1"},
            'nvidia.com/gpu is "0", expected at least 1 beside nvidia.com/gpucores; raise it or drop the other',
        ),
        (
            {"cambricon.com/vmlu": "2", "cambricon.com/mlu": "1"},
            'cambricon.com/mlu is "1", expected the same as cambricon.com/vmlu; keep one of the two',
        ),
        (
            {"huawei.com/Ascend910C": "3"},
            'huawei.com/Ascend910C is "3", expected an even number such as "4"; its cards come in pairs',
        ),
    ],
)
def test_a_figure_that_means_nothing_is_refused_in_one_sentence(limits, sentence):
    assert refusal(pod(container(limits))) == f"default/train-0: {sentence}"


def test_a_vendor_without_a_default_count_wants_one_spelled_out():
    text = """
    [[vendor]]
    name = "Acme"
    title = "Acme"
    resources = { count = "acme.com/card", memory = "acme.com/memory" }
    annotations = { allocated = "acme.com/allocated" }
    defaults = { count = 0, memory_percent = 50, cores_percent = 20 }
    """
    catalogue = Catalogue(parse_vendors(text))
    with pytest.raises(InvalidRequest) as caught:
        read_pod_request(pod(container({"acme.com/memory": "1"})), catalogue, refine)
    assert str(caught.value) == "default/train-0: acme.com/card is missing, expected a count beside acme.com/memory"
    (request,) = read_pod_request(pod(container({"acme.com/card": "1"})), catalogue, refine).containers[0].devices
    assert (request.memory_percent, request.cores_percent) == (50, 20)


def test_limits_win_over_requests_figure_by_figure():
    (request,) = (
        read(pod(container({"nvidia.com/gpu": "2"}, {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000"})))
        .containers[0]
        .devices
    )
    assert (request.count, request.memory_mib) == (2, 3000)


def test_containers_are_in_order_with_init_containers_first():
    request = read(
        pod(
            container({"nvidia.com/gpu": "4"}),
            container(),
            initContainers=[
                container({"nvidia.com/gpu": "1"}),
                container({"nvidia.com/gpu": "2"}, restartPolicy="Always"),
                container(restartPolicy="Never"),
            ],
        )
    )
    assert [one.role for one in request.containers] == [Role.INIT, Role.SIDECAR, Role.INIT, Role.APP, Role.APP]
    assert [sum(asked.count for asked in one.devices) for one in request.containers] == [1, 2, 0, 4, 0]


def test_one_container_may_ask_several_vendors():
    one = read(pod(container({"nvidia.com/gpu": "1", "hygon.com/dcu": "1"}))).containers[0]
    assert [asked.vendor for asked in one.devices] == ["DCU", "NVIDIA"]


def test_two_pods_that_ask_for_the_same_are_equal():
    one = pod(container({"nvidia.com/gpu": "1", "hygon.com/dcu": "1"}))
    other = pod(container({"hygon.com/dcu": 1, "nvidia.com/gpu": 1}))
    other["metadata"]["name"] = "train-1"
    assert read(one) == read(other)
    assert hash(read(one)) == hash(read(other))


def test_any_mapping_is_read():
    document = UserDict(pod(container({"nvidia.com/gpu": "1"})))
    assert read(document).wants_devices


def test_users_choose_cards_for_the_vendor_they_ask():
    annotations = {
        "nvidia.com/use-gputype": "A100, H100,,",
        "nvidia.com/nouse-gputype": "T4",
        "nvidia.com/use-gpuuuid": "GPU-1",
        "nvidia.com/nouse-gpuuuid": " GPU-2 ",
        "nvidia.com/vgpu-mode": "hami-core",
        "nvidia.com/numa-bind": "true",
        "hygon.com/use-dcutype": "Z100",
        "mthreads.ai/use-gpuuuid": "x",
    }
    assert device({"nvidia.com/gpu": "1"}, annotations).selector == CardSelector(
        use_types=("A100", "H100"),
        avoid_types=("T4",),
        use_uuids=("GPU-1",),
        avoid_uuids=("GPU-2",),
        mode="hami-core",
        same_numa=True,
    )
    assert device({"hygon.com/dcu": "1"}, annotations).selector == CardSelector(use_types=("Z100",))


def test_a_switch_is_on_or_off():
    document = pod(container({"nvidia.com/gpu": "1"}), annotations={"nvidia.com/numa-bind": "maybe"})
    with pytest.raises(InvalidAnnotation) as caught:
        read(document)
    assert str(caught.value) == 'default/train-0: nvidia.com/numa-bind is "maybe", expected "true" or "false"'
    assert not device({"nvidia.com/gpu": "1"}, {"nvidia.com/numa-bind": "0"}).selector.same_numa


def test_a_switch_of_a_vendor_that_is_not_asked_does_not_matter():
    assert read(pod(container({"hygon.com/dcu": "1"}), annotations={"nvidia.com/numa-bind": "maybe"})).wants_devices


def test_users_choose_policies():
    policy = read(
        pod(
            annotations={
                "hami.io/node-scheduler-policy": "binpack",
                "hami.io/gpu-scheduler-policy": "numa, spread",
                "hami.io/device-scoring-weights": "slot=1,core=0,memory=3",
            }
        )
    ).policy
    assert (policy.node, policy.cards) == ("binpack", ("numa", "spread"))
    assert policy.weights == ScoringWeights(slot=1, core=0, memory=3)


@pytest.mark.parametrize("weights", ["slot=1", "slot=0,core=0,memory=0", "slot=1,core=1,memory=-1", "heavy"])
def test_weights_that_weigh_nothing_are_refused(weights):
    with pytest.raises(InvalidPolicy) as caught:
        read(pod(annotations={"hami.io/device-scoring-weights": weights}))
    assert str(caught.value).startswith(f'default/train-0: hami.io/device-scoring-weights is "{weights}", expected ')


def test_a_pod_without_wishes_has_none():
    assert read(pod()) == PodRequest(containers=read(pod()).containers)
    assert read(pod()).host == HostRequest()


def asks(cpu: Any = "0", memory: Any = "0", **fields: Any) -> dict[str, Any]:
    return container(requests={"cpu": cpu, "memory": memory}, **fields)


@pytest.mark.parametrize(
    ("document", "cpu_milli"),
    [
        (pod(asks("1"), asks("500m")), 1500),
        (pod(container({"cpu": "2"})), 2000),
        (pod(container({"cpu": "2"}, {"cpu": "1"})), 1000),
        (pod(asks("1"), initContainers=[asks("3"), asks("2")]), 3000),
        (pod(asks("2"), initContainers=[asks("1"), asks("1", restartPolicy="Always")]), 3000),
        (pod(asks("1"), initContainers=[asks("1", restartPolicy="Always"), asks("3")]), 4000),
        (pod(asks("1"), initContainers=[asks("3"), asks("1", restartPolicy="Always")]), 3000),
        (pod(asks("1"), overhead={"cpu": "250m"}), 1250),
        (pod(asks("1"), resources={"requests": {"cpu": "5"}}, overhead={"cpu": "250m"}), 5250),
        (pod(asks(1)), 1000),
    ],
)
def test_cpu_is_counted_as_kubernetes_counts_it(document, cpu_milli):
    assert read(document).host.cpu_milli == cpu_milli


def test_memory_is_counted_in_bytes():
    document = pod(asks(memory="1Gi"), asks(memory="512Mi"), overhead={"memory": "1k"})
    assert read(document).host.memory_bytes == 1536 * 2**20 + 1000


def test_a_cpu_figure_that_means_nothing_is_refused():
    assert refusal(pod(asks("lots"))) == 'default/train-0: cpu is "lots", expected a quantity such as "500m"'
    assert refusal(pod(asks("-1"))).startswith('default/train-0: cpu is "-1", expected a quantity')
    assert refusal(pod(asks(memory=["x"]))).startswith("default/train-0: memory is a list, expected a quantity")


def affinity(*terms: Any) -> dict[str, Any]:
    required = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def test_a_node_selector_is_one_term():
    zone, gpu = LabelRule("zone", "In", ("a",)), LabelRule("gpu", "In", ("on",))
    assert read(pod(nodeSelector={"zone": "a", "gpu": "on"})).host.node_terms == ((gpu, zone),)


def test_a_node_selector_holds_in_every_term_of_the_affinity():
    document = pod(
        nodeSelector={"gpu": "on"},
        affinity=affinity(
            {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]},
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]},
        ),
    )
    gpu = LabelRule("gpu", "In", ("on",))
    assert read(document).host.node_terms == (
        (gpu, LabelRule("zone", "In", ("a", "b"))),
        (gpu, LabelRule("metadata.name", "In", ("n1",))),
    )


def test_an_empty_term_matches_no_node():
    expression = {"key": "zone", "operator": "Exists"}
    some = read(pod(affinity=affinity({}, {"matchExpressions": [expression]}))).host.node_terms
    assert some == ((LabelRule("zone", "Exists"),),)
    assert read(pod(nodeSelector={"a": "b"}, affinity=affinity({}))).host.node_terms == (
        (LabelRule("metadata.name", "In", ()),),
    )


@pytest.mark.parametrize(
    ("term", "sentence"),
    [
        (
            {"matchExpressions": [{"key": "z", "operator": "Is", "values": ["a"]}]},
            'node affinity on z: operator is "Is", expected one of In, NotIn, Exists, DoesNotExist, Gt, Lt',
        ),
        (
            {"matchExpressions": [{"key": "z", "operator": "In"}]},
            "node affinity on z: values is 0 long, expected at least one value with In",
        ),
        (
            {"matchExpressions": [{"key": "z", "operator": "Exists", "values": ["a"]}]},
            "node affinity on z: values is 1 long, expected no value with Exists",
        ),
        (
            {"matchExpressions": [{"key": "z", "operator": "Gt", "values": ["a"]}]},
            'node affinity on z: value is "a", expected a whole number',
        ),
        (
            {"matchFields": [{"key": "spec.x", "operator": "In", "values": ["a"]}]},
            "matchFields is spec.x In, expected metadata.name with In or NotIn",
        ),
        (
            {"matchExpressions": [{"operator": "In"}]},
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
            ".matchExpressions[0].key is missing, expected it to be set",
        ),
    ],
)
def test_an_affinity_that_means_nothing_is_refused(term, sentence):
    assert refusal(pod(affinity=affinity(term))) == f"default/train-0: {sentence}"


def test_tolerations_are_read_with_their_defaults():
    tolerations = [
        {"key": "gpu", "value": "on", "effect": "NoSchedule"},
        {"operator": "Exists", "tolerationSeconds": 3},
    ]
    assert read(pod(tolerations=tolerations)).host.tolerations == (
        Toleration(key="gpu", value="on", effect="NoSchedule"),
        Toleration(operator="Exists"),
    )
    assert refusal(pod(tolerations=[{"operator": "Near"}])).startswith(
        'default/train-0: spec.tolerations[0].operator is "Near", expected Equal or Exists'
    )


def test_a_pod_is_known_by_namespace_name_and_uid():
    assert read_pod_ref({"metadata": {"name": "a", "namespace": "team", "uid": "u"}}) == PodRef("team", "a", "u")
    assert read_pod_ref({"metadata": {"generateName": "a-"}}) == PodRef("default", "a-", "")
    assert str(read_pod_ref({})) == "default/(unnamed)"


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        (None, "pod: the document is missing, expected an object"),
        ([], "pod: the document is a list, expected an object"),
        ({"metadata": []}, "pod: metadata is a list, expected an object"),
        ({"metadata": {"name": 5}}, "pod: metadata.name is 5, expected a string"),
        ({"metadata": {"name": "a"}}, "default/a: spec is missing, expected it to be set"),
        ({"metadata": {"name": "a"}, "spec": {}}, "default/a: spec.containers is missing, expected it to be set"),
        (
            {"metadata": {"name": "a"}, "spec": {"containers": []}},
            "default/a: spec.containers is empty, expected at least one container",
        ),
        (
            {"metadata": {"name": "a"}, "spec": {"containers": "many"}},
            'default/a: spec.containers is "many", expected a list',
        ),
        (
            {"metadata": {"name": "a"}, "spec": {"containers": [container([])]}},
            "default/a: spec.containers[0].resources.limits is a list, expected an object",
        ),
        (
            {"metadata": {"name": "a", "annotations": {"x": 1}}, "spec": {"containers": [container()]}},
            "default/a: x is 1, expected a string",
        ),
        (
            {"metadata": {"name": "a"}, "spec": {"containers": [container()], "nodeSelector": {"x": 1}}},
            "default/a: spec.nodeSelector has a wrong value, expected a string for every key",
        ),
    ],
)
def test_a_document_that_is_no_pod_gets_one_sentence(document, sentence):
    assert refusal(document) == sentence


@pytest.mark.parametrize("zero", ["nvidia.com/gpumem", "nvidia.com/gpumem-percentage"])
def test_memory_of_zero_is_memory_not_given(zero):
    assert device({"nvidia.com/gpu": "1", zero: "0"}) == device({"nvidia.com/gpu": "1"})


def test_volcanos_resources_mean_the_same_as_nvidias():
    volcano = {"volcano.sh/vgpu-number": "2", "volcano.sh/vgpu-memory": "3000", "volcano.sh/vgpu-cores": "30"}
    nvidia = {"nvidia.com/gpu": "2", "nvidia.com/gpumem": "3000", "nvidia.com/gpucores": "30"}
    assert device(volcano) == device(nvidia)
    assert device({**volcano, **nvidia}) == device(nvidia)
    share = {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory-percentage": "50"}
    assert device(share).memory_percent == 50


def test_a_figure_under_two_keys_must_agree():
    document = pod(container({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000", "volcano.sh/vgpu-memory": "4000"}))
    assert refusal(document) == (
        'default/train-0: volcano.sh/vgpu-memory is "4000", expected the same as nvidia.com/gpumem; keep one of the two'
    )


def test_enflames_old_count_is_still_read():
    assert device({"enflame.com/vgcu": "1"}).vendor == "Enflame"


@pytest.mark.parametrize("operator", ["Gt", "Lt", "In"])
def test_a_toleration_that_does_not_test_for_equality_or_presence_is_refused(operator):
    document = pod(container({}))
    document["spec"]["tolerations"] = [{"key": "k", "operator": operator, "value": "1"}]
    assert refusal(document) == (
        f'default/train-0: spec.tolerations[0].operator is "{operator}", expected Equal or Exists'
    )
