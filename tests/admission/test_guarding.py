"""The policy on a real API server: who may write what tells which cards a pod holds."""

import json

import pytest

from tessera.admission.guarding import Writers, policy_manifests
from testbed.requirements import TestbedFailed
from tests.admission.conftest import CATALOGUE, a_pod, make_namespace
from tests.admission.users import AGENT, SCHEDULER, User, an_agent, who_may_try_all
from tests.admission.waiting import eventually

pytestmark = pytest.mark.usefixtures("policy")

LIST = "hami.io/vgpu-devices-allocated"
NODE = "hami.io/vgpu-node"
CLAIM, GANG = "gpu.scheduling/claim", "gpu.scheduling/gang"
EXPECTED = "expected only the scheduler and the agent of the pod's node to write it; leave it out or as it was"


@pytest.fixture(scope="module")
def policy(admission_api):
    writers = Writers(schedulers=(SCHEDULER,), agents=(AGENT,))
    documents = (*who_may_try_all(), *policy_manifests(CATALOGUE, writers))
    make_namespace(admission_api, "canary")
    admission_api.apply(*documents)
    eventually(lambda: is_guarded(admission_api))
    yield
    admission_api.delete(*documents)


def is_guarded(api):
    try:
        api.create(a_pod("canary", "canary", annotations={LIST: "x"}), "--dry-run=server")
    except TestbedFailed as refusal:
        return "denied request" in str(refusal)
    return False


@pytest.fixture
def user(admission_api, namespace):
    """The administrator, who may do everything else."""
    return User(admission_api, namespace)


@pytest.fixture
def scheduler(admission_api, namespace):
    return User(admission_api, namespace, (f"--as={SCHEDULER}",))


@pytest.fixture
def agent(admission_api, namespace):
    return an_agent(admission_api, namespace, "gpu-07")


@pytest.fixture
def bound(user, scheduler, namespace):
    """A pod that our scheduler has bound to gpu-07, with its cards in the Binding."""
    wishes = {CLAIM: "mine", GANG: "ring"}
    user.do("create", "-f", "-", input=a_pod("trainer", namespace, annotations=wishes))
    bind(scheduler, "trainer", namespace, {LIST: "GPU-a,NVIDIA,3000,30:;", NODE: "gpu-07"})
    return "trainer"


def bind(by, name, namespace, annotations):
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "namespace": namespace, "annotations": annotations},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "gpu-07"},
    }
    return by.do("create", "--raw", f"/api/v1/namespaces/{namespace}/pods/{name}/binding", "-f", "-", input=binding)


def test_the_scheduler_binds_with_annotations(admission_api, bound, namespace):
    pod = admission_api.get(bound, namespace)
    assert pod["spec"]["nodeName"] == "gpu-07"
    assert pod["metadata"]["annotations"][NODE] == "gpu-07"


@pytest.mark.parametrize("path", ["pods/other/binding", "bindings"])
def test_nobody_else_binds_with_them(user, namespace, path):
    user.do("create", "-f", "-", input=a_pod("other", namespace))
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "other", "namespace": namespace, "annotations": {"gpu.scheduling/allocated": "gpu-07:0"}},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "gpu-07"},
    }
    said = user.refusal("create", "--raw", f"/api/v1/namespaces/{namespace}/{path}", "-f", "-", input=binding)
    assert said == (
        f"{namespace}/other: annotation gpu.scheduling/allocated is written by kubernetes-admin, {EXPECTED}"
    )


def test_others_bind_without_them(admission_api, user, namespace):
    user.do("create", "-f", "-", input=a_pod("plain", namespace))
    bind(user, "plain", namespace, {"a": "b"})
    assert admission_api.get("plain", namespace)["metadata"]["annotations"] == {"a": "b"}


@pytest.mark.parametrize(
    "key",
    [
        LIST,
        NODE,
        "hami.io/bind-phase",
        "huawei.com/Ascend910B3",
        "volcano.sh/vgpu-ids-new",
        "gpu.scheduling/devices",
        "gpu.scheduling/visible-devices",
    ],
)
def test_a_user_cannot_create_a_pod_with_an_allocation(user, namespace, key):
    said = user.refusal("create", "-f", "-", input=a_pod("forged", namespace, annotations={key: "x"}))
    assert said == f"{namespace}/forged: annotation {key} is written by kubernetes-admin, {EXPECTED}"


def test_a_user_can_create_a_pod_with_a_pin_and_with_wishes(user, namespace):
    wishes = {"gpu.scheduling/allocated": "gpu-07:0", "nvidia.com/use-gputype": "A100", "gpu.scheduling/claim": "mine"}
    user.do("create", "-f", "-", input=a_pod("pinned", namespace, annotations=wishes))


def test_a_user_cannot_create_a_pod_with_the_label(user, namespace):
    said = user.refusal("create", "-f", "-", input=a_pod("forged", namespace, labels={NODE: "gpu-07"}))
    assert said == f"{namespace}/forged: label {NODE} is written by kubernetes-admin, {EXPECTED}"


@pytest.mark.parametrize(
    "change",
    [
        f"{LIST}=GPU-b,NVIDIA,3000,30:;",
        f"{LIST}-",
        "hami.io/vgpu-time=1",
        "gpu.scheduling/allocated=gpu-07:0",
        "gpu.scheduling/devices=GPU-a,NVIDIA,0,0:;",
        "gpu.scheduling/visible-devices=GPU-a,GPU-b",
        "tessera.io/allocation={}",
    ],
)
def test_a_user_cannot_change_an_allocation(user, bound, namespace, change):
    key = change.partition("=")[0].removesuffix("-")
    said = user.refusal("annotate", "--overwrite", "pod", bound, change)
    assert said == f"{namespace}/{bound}: annotation {key} is written by kubernetes-admin, {EXPECTED}"


@pytest.mark.parametrize("change", [f"{CLAIM}=other", f"{CLAIM}-", f"{GANG}=other", f"{GANG}-"])
def test_what_tells_by_which_claim_a_pod_on_a_node_holds_cards_stays(user, agent, bound, namespace, change):
    for one in (user, agent):
        assert one.refusal("annotate", "--overwrite", "pod", bound, change) == (
            f"{namespace}/{bound}: annotation {change.rstrip('-').partition('=')[0]} is changed, expected it to stay as"
            " it is while the pod is on a node; make a new pod"
        )


def test_until_it_is_on_a_node_a_user_may_change_it(user, namespace):
    user.do("create", "-f", "-", input=a_pod("waiting", namespace, annotations={CLAIM: "mine"}))
    user.do("annotate", "--overwrite", "pod", "waiting", f"{CLAIM}=other", f"{GANG}=ring")


def test_nobody_binds_a_pod_to_another_claim(user, namespace):
    user.do("create", "-f", "-", input=a_pod("other", namespace, annotations={CLAIM: "mine"}))
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "other", "namespace": namespace, "annotations": {CLAIM: "theirs"}},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "gpu-07"},
    }
    said = user.refusal(
        "create", "--raw", f"/api/v1/namespaces/{namespace}/pods/other/binding", "-f", "-", input=binding
    )
    assert said.startswith(f"{namespace}/other: annotation {CLAIM} is changed,")


def test_a_user_cannot_change_the_label(user, bound):
    assert f"label {NODE} is written by" in user.refusal("label", "--overwrite", "pod", bound, f"{NODE}=gpu-08")


def test_a_user_cannot_go_through_the_status(user, bound):
    patch = json.dumps({"metadata": {"annotations": {LIST: "x"}}})
    said = user.refusal("patch", "pod", bound, "--subresource=status", "--type=merge", f"--patch={patch}")
    assert f"annotation {LIST} is written by" in said


def test_everything_else_about_a_pod_stays_possible(user, bound):
    user.do("annotate", "pod", bound, "a=b", "nvidia.com/use-gputype=A100", "hami.io/gpu-scheduler-policy=spread")
    user.do("label", "pod", bound, "a=b")
    status = json.dumps({"status": {"phase": "Running"}})
    user.do("patch", "pod", bound, "--subresource=status", "--type=merge", f"--patch={status}")
    user.do("delete", "pod", bound, "--force")


def test_the_scheduler_may_change_an_allocation(scheduler, bound):
    scheduler.do(
        "annotate", "--overwrite", "pod", bound, f"{LIST}=GPU-b,NVIDIA,3000,30:;", "hami.io/bind-phase=success"
    )
    scheduler.do("label", "--overwrite", "pod", bound, f"{NODE}=gpu-07")


def test_an_agent_may_change_what_pods_of_its_own_node_hold(agent, bound):
    agent.do("annotate", "--overwrite", "pod", bound, "hami.io/bind-phase=success", f"{LIST}=;")


def test_an_agent_reaches_no_pod_of_another_node(admission_api, bound, namespace):
    stranger = an_agent(admission_api, namespace, "gpu-08")
    said = stranger.refusal("annotate", "pod", bound, "hami.io/bind-phase=success")
    assert said == f"{namespace}/{bound}: annotation hami.io/bind-phase is written by {AGENT}, {EXPECTED}"


def test_an_agent_reaches_no_pod_that_is_on_no_node_yet(user, agent, namespace):
    user.do("create", "-f", "-", input=a_pod("waiting", namespace))
    assert agent.refusal("annotate", "pod", "waiting", f"{LIST}=GPU-a,NVIDIA,1,1:;")


def test_an_agent_whose_token_names_no_node_is_nobody_in_particular(admission_api, bound, namespace):
    impostor = User(admission_api, namespace, (f"--as={AGENT}",))
    assert impostor.refusal("annotate", "pod", bound, "hami.io/bind-phase=success")


def test_an_agent_creates_no_pod_with_an_allocation(agent, namespace):
    pod = a_pod("forged", namespace, annotations={LIST: "x"})
    pod["spec"]["nodeName"] = "gpu-07"
    assert agent.refusal("create", "-f", "-", input=pod)
