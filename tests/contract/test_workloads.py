"""Deployments, StatefulSets, Jobs and Services: the pods that they make, and what they say of them."""

import pytest

from tests.contract.api import MERGE_PATCH, STRATEGIC_PATCH, Object
from tests.contract.objects import deployment, pod, pod_template
from tests.contract.refusals import refused
from tests.contract.waiting import eventually

pytestmark = pytest.mark.contract(area="Workloads", needed_by="operators, helm")

ADDRESS = "198.51.100.7"


def make_ready(pods, name):
    """Say what a kubelet would say of a running pod."""
    status = {
        "phase": "Running",
        "podIP": ADDRESS,
        "podIPs": [{"ip": ADDRESS}],
        "conditions": [{"type": kind, "status": "True"} for kind in ("Initialized", "ContainersReady", "Ready")],
    }
    pods.patch(f"{name}/status", STRATEGIC_PATCH, {"status": status})


def names_when(pods, count, **query):
    """The names of the pods, once there are so many."""
    eventually(lambda: len(pods.names(**query)) == count)
    return pods.names(**query)


def condition_when(collection, name, kind):
    """The condition of this type, once it is True."""

    def met():
        conditions = collection.get(name)["status"].get("conditions", [])
        return [entry for entry in conditions if (entry["type"], entry["status"]) == (kind, "True")]

    return eventually(met)[0]


@pytest.mark.contract(
    promise="A Deployment makes its pods through a ReplicaSet, with owners", needed_by="operators, helm, Compute"
)
def test_a_deployment_makes_its_pods(api, namespace, deployments, pods):
    deployments.create(deployment("web", replicas=2))
    first, _ = names_when(pods, 2)
    made = pods.get(first)["metadata"]
    assert made["labels"]["app"] == "web"
    owner = made["ownerReferences"][0]
    assert (owner["kind"], owner["controller"]) == ("ReplicaSet", True)
    assert api.collection("apps/v1/replicasets", namespace).get(owner["name"])["spec"]["replicas"] == 2


@pytest.mark.contract(
    promise="A Deployment counts its ready pods and says that it is available", needed_by="operators, helm, Compute"
)
def test_a_deployment_counts_its_ready_pods(deployments, pods):
    deployments.create(deployment("web"))
    make_ready(pods, names_when(pods, 1)[0])
    available = condition_when(deployments, "web", "Available")
    assert available["reason"] == "MinimumReplicasAvailable"
    status = deployments.get("web")["status"]
    assert (status["readyReplicas"], status["observedGeneration"]) == (1, 1)


@pytest.mark.contract(
    promise="Scaling makes and removes pods; a pod that is deleted is replaced", needed_by="operators, Compute"
)
def test_a_deployment_keeps_its_number(deployments, pods):
    deployments.create(deployment("web", replicas=1))
    first = names_when(pods, 1)[0]
    pods.delete(first)
    assert eventually(lambda: (names := pods.names()) and first not in names)
    deployments.patch("web/scale", MERGE_PATCH, {"spec": {"replicas": 3}})
    names_when(pods, 3)
    deployments.patch("web/scale", MERGE_PATCH, {"spec": {"replicas": 0}})
    names_when(pods, 0)


@pytest.mark.contract(promise="Deleting a Deployment deletes its ReplicaSet and its pods", needed_by="operators, helm")
def test_a_deployment_takes_its_pods_along(deployments, pods):
    deployments.create(deployment("web", replicas=2))
    names_when(pods, 2)
    deployments.delete("web")
    names_when(pods, 0)


@pytest.mark.contract(promise="A changed template rolls out: new pods first, old ones after", needed_by="helm")
def test_a_changed_template_is_rolled_out(kubectl, deployments, pods):
    deployments.create(deployment("web"))
    old = names_when(pods, 1)[0]
    make_ready(pods, old)
    eventually(lambda: deployments.get("web")["status"].get("readyReplicas"))
    deployments.patch("web", STRATEGIC_PATCH, {"spec": {"template": {"metadata": {"labels": {"version": "2"}}}}})
    new = names_when(pods, 1, labelSelector="version=2")[0]
    assert pods.exists(old)
    make_ready(pods, new)
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", "--timeout=30s")
    eventually(lambda: pods.names() == [new])


@pytest.mark.contract(
    promise="A StatefulSet makes numbered pods, each when the one before is ready", needed_by="operators, MPIJob"
)
def test_a_stateful_set_makes_numbered_pods_in_order(api, namespace, pods):
    sets = api.collection("apps/v1/statefulsets", namespace)
    wanted: Object = deployment("worker", replicas=2) | {"kind": "StatefulSet"}
    wanted["spec"]["serviceName"] = "worker"
    sets.create(wanted)
    assert names_when(pods, 1) == ["worker-0"]
    make_ready(pods, "worker-0")
    assert names_when(pods, 2) == ["worker-0", "worker-1"]
    assert pods.get("worker-1")["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "1"


@pytest.fixture
def jobs(api, namespace):
    return api.collection("batch/v1/jobs", namespace)


@pytest.fixture
def pod_of_job(jobs, pods):
    """The name of the one pod of a Job called `once`, which has one try."""
    template = pod_template("job")
    spec = template["spec"] | {"restartPolicy": "Never"}
    jobs.create({"metadata": {"name": "once"}, "spec": {"template": template | {"spec": spec}, "backoffLimit": 0}})
    return names_when(pods, 1, labelSelector="batch.kubernetes.io/job-name=once")[0]


@pytest.mark.contract(
    promise="A Job makes a pod, and is Complete when the pod has succeeded", needed_by="operators, MPIJob"
)
def test_a_job_is_complete_when_its_pod_is(jobs, pods, pod_of_job):
    pods.patch(f"{pod_of_job}/status", STRATEGIC_PATCH, {"status": {"phase": "Succeeded"}})
    condition_when(jobs, "once", "Complete")
    status = jobs.get("once")["status"]
    assert status["succeeded"] == 1
    assert status["completionTime"]


@pytest.mark.contract(
    promise="A Job whose pod fails more often than backoffLimit is Failed, and says why", needed_by="MPIJob"
)
def test_a_job_fails_with_its_pod(jobs, pods, pod_of_job):
    pods.patch(f"{pod_of_job}/status", STRATEGIC_PATCH, {"status": {"phase": "Failed"}})
    assert condition_when(jobs, "once", "Failed")["reason"] == "BackoffLimitExceeded"


@pytest.fixture
def service(api, namespace):
    services = api.collection("services", namespace)
    port = {"name": "grpc", "port": 50051, "targetPort": 50051}
    return services.create({"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [port]}})


@pytest.mark.contract(
    promise="A Service gets an address, or none with clusterIP None", needed_by="operators, Compute, MPIJob"
)
def test_a_service_gets_an_address(api, namespace, service):
    assert service["spec"]["clusterIP"].count(".") == 3
    headless = {"metadata": {"name": "headless"}, "spec": {"clusterIP": "None", "selector": {"app": "web"}}}
    assert api.collection("services", namespace).create(headless)["spec"]["clusterIP"] == "None"


@pytest.mark.usefixtures("service")
@pytest.mark.contract(
    promise="An EndpointSlice lists the ready pods that a Service selects", needed_by="operators, views, Compute"
)
def test_endpoints_follow_the_ready_pods(api, namespace, pods, unique, create_for_now):
    create_for_now(api.collection("nodes"), {"metadata": {"name": unique}})
    slices = api.collection("discovery.k8s.io/v1/endpointslices", namespace)

    def ready_addresses():
        items = slices.listing(labelSelector="kubernetes.io/service-name=web")["items"]
        endpoints = [endpoint for item in items for endpoint in item["endpoints"] or []]
        return {endpoint["addresses"][0] for endpoint in endpoints if endpoint["conditions"]["ready"]}

    pods.create(pod("worker", labels={"app": "web"}, spec={"nodeName": unique}))
    make_ready(pods, "worker")
    eventually(lambda: ready_addresses() == {ADDRESS})
    pods.delete("worker", {"gracePeriodSeconds": 0})
    eventually(lambda: ready_addresses() == set())


@pytest.mark.contract(promise="A NetworkPolicy is held to its schema", needed_by="operators, MPIJob")
def test_a_network_policy_is_checked(api, namespace):
    policies = api.collection("networking.k8s.io/v1/networkpolicies", namespace)
    spec = {"podSelector": {"matchLabels": {"app": "web"}}, "ingress": [{"ports": [{"port": 22, "protocol": "TCP"}]}]}
    assert policies.create({"metadata": {"name": "ssh"}, "spec": spec})["spec"]["policyTypes"] == ["Ingress"]
    spec["ingress"][0]["ports"][0]["port"] = 70000
    with refused(422, "Invalid"):
        policies.create({"metadata": {"name": "wrong"}, "spec": spec})
