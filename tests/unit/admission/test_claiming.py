"""Pods that claim cards as a whole, by a GpuClaim or by a pin."""

import pytest

from tessera.admission import DEFAULT_SETTINGS, Settings, Untouched, review
from tests.unit.admission.pods import CATALOGUE, a_container, a_pod, denial_of, is_untouched, mutate, warnings_of

CLAIM, PIN = "gpu.scheduling/claim", "gpu.scheduling/allocated"
MINE = {CLAIM: "mine"}
VISIBLE = "CUDA_VISIBLE_DEVICES"
LATE = {
    "name": VISIBLE,
    "valueFrom": {
        "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.annotations['gpu.scheduling/visible-devices']"}
    },
}
SIDECAR = {"restartPolicy": "Always"}


def a_claiming_pod(*containers, annotations=MINE, **spec):
    return a_pod(*(containers or (a_container(),)), annotations=annotations, **spec)


def all_containers(pod):
    return [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]


@pytest.mark.parametrize("name", [None, "", "default-scheduler"])
@pytest.mark.parametrize("annotations", [MINE, {PIN: "node-a:0"}, MINE | {PIN: "node-a:0"}])
def test_a_claiming_pod_that_names_no_scheduler_is_sent_to_that_of_claims(name, annotations):
    pod = a_claiming_pod(annotations=annotations, schedulerName=name)
    assert mutate(pod)["spec"]["schedulerName"] == "gpu-scheduler"
    assert mutate(pod, Settings(claim_scheduler="site-claims"))["spec"]["schedulerName"] == "site-claims"


@pytest.mark.parametrize("name", ["hami-scheduler", "gpu-scheduler", "volcano"])
def test_a_claiming_pod_keeps_the_scheduler_that_it_names_and_gets_all_else(name):
    pod = mutate(a_claiming_pod(schedulerName=name))
    assert pod["spec"]["schedulerName"] == name
    assert all_containers(pod)[0]["env"] == [LATE]


def test_the_default_scheduler_may_be_left_its_claiming_pods():
    pod = mutate(a_claiming_pod(), Settings(takes_default=False))
    assert pod["spec"]["schedulerName"] == "default-scheduler"
    assert all_containers(pod)[0]["env"] == [LATE]


def test_every_container_gets_the_marker_and_the_variable():
    init = [a_container(), a_container(**SIDECAR)]
    pod = mutate(a_claiming_pod(a_container({"cpu": "1"}), a_container(), initContainers=init))
    for container in all_containers(pod):
        assert container["resources"]["limits"].pop("cpu", "1") == "1"
        assert container["resources"] == {"limits": {CLAIM: "1"}, "requests": {CLAIM: "1"}}
        assert container["env"] == [LATE]
    assert len(all_containers(pod)) == 4


@pytest.mark.parametrize(("pin", "value"), [("node-a:0,1", "0,1"), ("node-a:3", "3"), ("a:b:1, 0", "0,1")])
def test_a_pin_is_written_as_it_is(pin, value):
    pod = mutate(a_claiming_pod(annotations={PIN: pin}, initContainers=[a_container()]))
    assert [container["env"] for container in all_containers(pod)] == [[{"name": VISIBLE, "value": value}]] * 2
    assert mutate(a_claiming_pod(annotations=MINE | {PIN: pin})) == pod | {
        "metadata": pod["metadata"] | {"annotations": MINE | {PIN: pin}},
        "spec": {key: value for key, value in pod["spec"].items() if key != "initContainers"},
    }


@pytest.mark.parametrize("pin", ["node-a", "node-a:", ":0", "node-a:x", "node-a:0,0", "node-a:-1"])
def test_a_pin_that_cannot_be_read_is_denied(pin):
    assert denial_of(a_claiming_pod(annotations={PIN: pin})).startswith("default/web-0: ")
    assert "a node and the ids of its cards such as node-a:0,1" in denial_of(a_claiming_pod(annotations={PIN: pin}))


@pytest.mark.parametrize("name", ["", " ", "Mine", "mine ", "a/b", "-a", "a..b", "a" * 254])
def test_a_claim_that_can_have_no_such_name_is_denied(name):
    sentence = denial_of(a_claiming_pod(annotations={CLAIM: name}))
    assert sentence.startswith(f'default/web-0: {CLAIM} is "{name[:5]}')
    assert sentence.endswith(", expected the name of a GpuClaim in the pod's namespace; see kubectl get gpuclaims")


@pytest.mark.parametrize("name", ["a", "my-claim.v2", "0", "a" * 253])
def test_a_claim_may_have_any_name_that_an_object_may_have(name):
    assert mutate(a_claiming_pod(annotations={CLAIM: name}))


def test_an_empty_pin_is_none():
    assert is_untouched(a_claiming_pod(annotations={PIN: ""}))


def test_what_a_user_wrote_into_the_variable_is_replaced_and_told():
    mine = [{"name": VISIBLE, "value": "6"}, {"name": "A", "value": "1"}, {"name": VISIBLE, "value": "7"}]
    pod = a_claiming_pod(a_container(env=mine))
    assert all_containers(mutate(pod))[0]["env"] == [*mine[:2], LATE]
    assert warnings_of(pod) == (f'default/web-0: {VISIBLE} of container train was "7" and names the claimed cards now',)


def test_a_variable_that_comes_from_elsewhere_is_replaced_as_well():
    mine = {"name": VISIBLE, "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}}
    pod = a_claiming_pod(initContainers=[a_container(env=[mine])], annotations={PIN: "node-a:2"})
    assert all_containers(mutate(pod))[0]["env"] == [{"name": VISIBLE, "value": "2"}]
    assert "was taken from elsewhere and names the claimed cards now" in warnings_of(pod)[0]


@pytest.mark.parametrize(
    ("annotations", "mine"), [(MINE, LATE), ({PIN: "node-a:0,1"}, {"name": VISIBLE, "value": "0,1"})]
)
def test_a_variable_that_says_so_already_is_no_news(annotations, mine):
    pod = a_claiming_pod(a_container(env=[mine]), annotations=annotations)
    assert all_containers(mutate(pod))[0]["env"] == [mine]
    assert warnings_of(pod) == ()


def test_a_marker_with_another_count_becomes_one():
    pod = a_claiming_pod(a_container({CLAIM: "4"}))
    assert all_containers(mutate(pod))[0]["resources"]["limits"] == {CLAIM: "1"}
    assert warnings_of(pod) == (f'default/web-0: {CLAIM} of container train was "4" and is now "1"',)


@pytest.mark.parametrize("where", ["containers", "initContainers"])
@pytest.mark.parametrize("scheduler", ["gpu-scheduler", "volcano"])
def test_a_marker_without_a_claim_is_denied(where, scheduler):
    pod = a_pod(a_container(), initContainers=[a_container()], schedulerName=scheduler)
    pod["spec"][where][0]["resources"] = {"requests": {CLAIM: "1"}}
    assert denial_of(pod) == (
        f"default/web-0: container train asks for the resource {CLAIM}, expected the annotation {CLAIM} with the name"
        " of a GpuClaim; set it and drop the resource, which is added then"
    )


@pytest.mark.parametrize(
    "limits",
    [{"nvidia.com/gpu": "2"}, {"nvidia.com/gpumem": "8000"}, {"nvidia.com/gpu": "1", "nvidia.com/gpucores": "50"}],
)
def test_figures_of_the_claimed_cards_stay_as_the_user_wrote_them(limits):
    pod = a_claiming_pod(a_container(limits))
    assert all_containers(mutate(pod))[0]["resources"]["limits"] == limits | {CLAIM: "1"}
    assert warnings_of(pod) == ()


def test_figures_of_the_claimed_cards_are_checked_all_the_same():
    assert 'nvidia.com/gpumem is "8Gi"' in denial_of(a_claiming_pod(a_container({"nvidia.com/gpumem": "8Gi"})))


def test_figures_of_other_cards_are_completed_as_ever():
    pod = mutate(a_claiming_pod(a_container({"hygon.com/dcumem": "2000"})))
    assert all_containers(pod)[0]["resources"]["limits"]["hygon.com/dcunum"] == "1"


def test_a_privileged_container_of_a_claiming_pod_is_refused_though_it_asks_for_nothing():
    pod = a_claiming_pod(a_container(), a_container(securityContext={"privileged": True}))
    assert denial_of(pod) == (
        f"default/web-0: securityContext.privileged of container train is true, expected false beside {CLAIM};"
        " a privileged container sees every card of its node, so drop one of the two"
    )


def test_a_pin_on_a_node_that_was_chosen_past_the_scheduler_is_refused():
    pod = a_claiming_pod(annotations={PIN: "gpu-07:0"}, nodeName="gpu-07")
    assert f"expected none beside {CLAIM}," in denial_of(pod)


def test_every_container_of_a_claiming_pod_is_one_with_a_card():
    settings = Settings(hides_cards=True, core_policy="force", runtime_classes={"NVIDIA": "nvidia"})
    pod = mutate(a_claiming_pod(a_container({"nvidia.com/priority": "1"}), a_container()), settings)
    first, second = ({one["name"] for one in container["env"]} for container in all_containers(pod))
    assert first == {VISIBLE, "GPU_CORE_UTILIZATION_POLICY", "CUDA_TASK_PRIORITY"}
    assert second == {VISIBLE, "GPU_CORE_UTILIZATION_POLICY"}
    assert pod["spec"]["runtimeClassName"] == "nvidia"


def test_labels_and_mirrors_keep_the_webhook_away_from_claiming_pods_too():
    assert is_untouched(a_pod(a_container(), annotations=MINE, labels={"hami.io/webhook": "ignore"}))
    assert is_untouched(a_claiming_pod(annotations=MINE | {"kubernetes.io/config.mirror": "x"}, nodeName="n"))


@pytest.mark.parametrize("annotations", [MINE, {PIN: "node-a:0,1"}])
def test_a_second_review_of_a_claiming_pod_changes_nothing(annotations):
    mine = [{"name": VISIBLE, "value": "all"}]
    limits = {"nvidia.com/gpumem": "100", "huawei.com/Ascend910C": "1"}
    once = mutate(a_claiming_pod(a_container(limits, env=mine), a_container(), annotations=annotations))
    assert review(once, CATALOGUE, DEFAULT_SETTINGS) == Untouched()
