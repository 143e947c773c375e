"""The policy on a real API server: who may write what tells which cards a pod holds."""

import json

import pytest

from tessera.admission.guarding import Writers, policy_manifests, service_account
from testbed.requirements import TestbedFailed
from tests.admission.conftest import CATALOGUE, Api, a_pod, make_namespace
from tests.admission.waiting import eventually

pytestmark = pytest.mark.usefixtures("policy")

SCHEDULER = service_account("kube-system", "hami-scheduler")
AGENT = service_account("kube-system", "hami-device-plugin")
LIST = "hami.io/vgpu-devices-allocated"
NODE = "hami.io/vgpu-node"
EXPECTED = "expected only the scheduler and the agent of the pod's node to write it; leave it out or as it was"


class User:
    """Somebody who talks to the API server with a token of their own."""

    def __init__(self, api: Api, namespace: str, arguments: tuple[str, ...]) -> None:
        self.api = api
        self._options = (f"--namespace={namespace}", *arguments)

    def do(self, *arguments: str, input: object = None) -> str:
        text = json.dumps(input) if input else None
        return self.api.cluster.kubectl(*self._options, *arguments, input=text)

    def refusal(self, *arguments: str, input: object = None) -> str:
        with pytest.raises(TestbedFailed) as refused:
            self.do(*arguments, input=input)
        said = str(refused.value).partition("failed: ")[2]
        assert "denied request: " in said
        return said.partition("denied request: ")[2]


@pytest.fixture(scope="module")
def policy(admission_api):
    writers = Writers(schedulers=(SCHEDULER,), agents=(AGENT,))
    manifests = policy_manifests(CATALOGUE, writers)
    accounts = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "kube-system"}}
        for name in ("hami-scheduler", "hami-device-plugin")
    ]
    rights = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "everybody-may-try"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [
            {"kind": "ServiceAccount", "name": account["metadata"]["name"], "namespace": "kube-system"}
            for account in accounts
        ],
    }
    nodes = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}} for name in ("gpu-07", "gpu-08")]
    make_namespace(admission_api, "canary")
    admission_api.apply(*accounts, rights, *nodes, *manifests)
    eventually(lambda: is_guarded(admission_api))
    yield
    admission_api.delete(rights, *nodes, *manifests)


def is_guarded(api):
    try:
        api.create(a_pod("canary", "canary", annotations={LIST: "x"}), "--dry-run=server")
    except TestbedFailed as refusal:
        return "denied request" in str(refusal)
    return False


@pytest.fixture
def user(admission_api, namespace):
    """The administrator, who may do everything else."""
    return User(admission_api, namespace, ())


@pytest.fixture
def scheduler(admission_api, namespace):
    return User(admission_api, namespace, (f"--as={SCHEDULER}",))


def an_agent(api, namespace, node):
    token = api.cluster.kubectl(
        "create", "token", "hami-device-plugin", "--namespace=kube-system", "--bound-object-kind=Node",
        f"--bound-object-name={node}",
    )  # fmt: skip
    server = json.loads(api.cluster.kubectl("config", "view", "-o", "json"))["clusters"][0]["cluster"]["server"]
    authority = api.cluster.control_plane.authority.files.certificate
    anybody = ("--kubeconfig=/dev/null", f"--server={server}", f"--certificate-authority={authority}")
    return User(api, namespace, (*anybody, f"--token={token.strip()}"))


@pytest.fixture
def agent(admission_api, namespace):
    return an_agent(admission_api, namespace, "gpu-07")


@pytest.fixture
def bound(user, scheduler, namespace):
    """A pod that our scheduler has bound to gpu-07, with its cards in the Binding."""
    user.do("create", "-f", "-", input=a_pod("trainer", namespace))
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


@pytest.mark.parametrize("key", [LIST, NODE, "hami.io/bind-phase", "huawei.com/Ascend910B3", "volcano.sh/vgpu-ids-new"])
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
        "tessera.io/allocation={}",
    ],
)
def test_a_user_cannot_change_an_allocation(user, bound, namespace, change):
    key = change.partition("=")[0].removesuffix("-")
    said = user.refusal("annotate", "--overwrite", "pod", bound, change)
    assert said == f"{namespace}/{bound}: annotation {key} is written by kubernetes-admin, {EXPECTED}"


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
