"""What is said of pods and nodes: endpoints, budgets, taints."""

from tests.contract.api import MERGE_PATCH
from tests.contract.waiting import eventually
from tests.embedded.controllers.workloads import CONTAINER, NODE, workload


def test_endpoints_are_the_pods_that_run(of, pods):
    port = {"name": "http", "port": 80, "targetPort": 8080}
    of("services").create({"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [port]}})
    slices = of("discovery.k8s.io/v1/endpointslices")
    of("apps/v1/deployments").create(workload("Deployment", "web", replicas=3))

    def endpoints():
        found = slices.listing(labelSelector="kubernetes.io/service-name=web")["items"]
        return [endpoint for one in found for endpoint in one["endpoints"] or () if endpoint["conditions"]["ready"]]

    eventually(lambda: len(endpoints()) == 3)
    addresses = {one["status"]["podIP"] for one in pods.listing()["items"]}
    assert {endpoint["addresses"][0] for endpoint in endpoints()} == addresses
    (made,) = slices.listing()["items"]
    assert made["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]
    of("apps/v1/deployments").patch("web/scale", MERGE_PATCH, {"spec": {"replicas": 1}})
    eventually(lambda: len(endpoints()) == 1)
    of("services").delete("web")
    eventually(lambda: slices.names() == [])


def test_a_headless_service_tells_the_names_of_a_stateful_set(of):
    of("services").create({"metadata": {"name": "db"}, "spec": {"selector": {"app": "db"}, "clusterIP": "None"}})
    of("apps/v1/statefulsets").create(workload("StatefulSet", "db", replicas=1, serviceName="db"))
    slices = of("discovery.k8s.io/v1/endpointslices")
    found = eventually(lambda: [end for one in slices.listing()["items"] for end in one["endpoints"] or ()])
    assert found[0]["hostname"] == "db-0"


def test_a_budget_counts_by_what_the_controller_wants(of):
    budgets = of("policy/v1/poddisruptionbudgets")
    spec = {"maxUnavailable": "50%", "selector": {"matchLabels": {"app": "web"}}}
    budgets.create({"metadata": {"name": "half"}, "spec": spec})
    of("apps/v1/deployments").create(workload("Deployment", "web", replicas=4))
    expected = {"expectedPods": 4, "currentHealthy": 4, "desiredHealthy": 2, "disruptionsAllowed": 2}
    eventually(lambda: expected.items() <= budgets.get("half").get("status", {}).items())


def test_a_node_that_is_cordoned_is_tainted_until_it_is_not(api):
    nodes = api.collection("nodes")
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    nodes.patch(NODE, MERGE_PATCH, {"spec": {"unschedulable": True}})
    eventually(lambda: taint in nodes.get(NODE)["spec"].get("taints", []))
    nodes.patch(NODE, MERGE_PATCH, {"spec": {"unschedulable": None}})
    eventually(lambda: not nodes.get(NODE)["spec"].get("taints"))


def test_a_pod_whose_node_is_gone_goes_too_also_if_nobody_saw_the_node_go(controllers, pods):
    controllers.kill()
    pods.create({"metadata": {"name": "lost"}, "spec": {"nodeName": "no-such-node", "containers": [CONTAINER]}})
    controllers.start()
    eventually(lambda: not pods.exists("lost"))
