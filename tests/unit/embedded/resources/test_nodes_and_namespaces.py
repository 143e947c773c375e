"""Nodes and namespaces: what lives outside namespaces, and namespaces themselves."""

from tests.unit.embedded.resources.making import by_field, complaints, created, refusals, served, updated, with_status

NODES = served("nodes")
NAMESPACES = served("namespaces")
NODE = {"metadata": {"name": "node-a"}}


def test_a_new_node_is_tainted_until_it_says_that_it_is_ready():
    assert created(NODES, NODE)["spec"]["taints"] == [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]


def test_what_a_node_has_when_it_is_made_is_kept():
    made = created(NODES, NODE | {"status": {"capacity": {"cpu": 4, "memory": "8192Mi"}}})
    assert made["status"]["capacity"] == made["status"]["allocatable"] == {"cpu": "4", "memory": "8Gi"}
    assert made["status"]["nodeInfo"]["kubeletVersion"] == ""


def test_allocatable_follows_capacity_only_when_it_is_absent():
    first = with_status(NODES, created(NODES, NODE), status={"capacity": {"nvidia.com/gpu": "8"}})
    assert first["status"]["allocatable"] == {"nvidia.com/gpu": "8"}
    more = first["status"] | {"capacity": {"nvidia.com/gpu": "8", "nvidia.com/gpumem": "65536"}}
    second = with_status(NODES, first, status=more)
    assert second["status"]["allocatable"] == {"nvidia.com/gpu": "8"}


def test_an_update_of_a_node_leaves_its_status_alone():
    old = created(NODES, NODE)
    assert updated(NODES, old, status={"capacity": {"cpu": "1"}})["status"] == old["status"]


def test_cards_are_whole():
    old = created(NODES, NODE)
    new = with_status(NODES, old, status={"capacity": {"nvidia.com/gpu": "1.5", "cpu": "1500m"}})
    told = by_field(NODES.strategy.validate_status(new, old))
    assert told["status.capacity.nvidia.com/gpu"] == 'Invalid value: "1500m": must be an integer'
    assert "status.capacity.cpu" not in told


def test_taints_are_checked_and_unique():
    taint = {"key": "a", "effect": "NoSchedule"}
    told = complaints(NODES, NODE | {"spec": {"taints": [{"key": "", "effect": "X"}, taint, taint]}})
    assert told["metadata.taints[0].effect"].startswith('Unsupported value: "X"')
    assert told["metadata.taints[2]"].startswith("Duplicate value")


def test_the_addresses_of_a_nodes_pods_are_given_once():
    old = created(NODES, NODE | {"spec": {"podCIDR": "10.0.0.0/24"}})
    assert old["spec"]["podCIDRs"] == ["10.0.0.0/24"]
    told = refusals(NODES, old, spec=old["spec"] | {"podCIDR": "10.1.0.0/24"})
    assert told == {"spec.podCIDRs": 'Forbidden: node updates may not change podCIDR except from "" to valid'}


def test_a_namespace_is_active_labelled_with_its_name_and_held():
    made = created(NAMESPACES, {"metadata": {"name": "lab"}})
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": "lab"}
    assert made["spec"]["finalizers"] == ["kubernetes"]
    assert made["status"] == {"phase": "Active"}


def test_a_namespace_keeps_its_label_and_its_finalizer():
    old = created(NAMESPACES, {"metadata": {"name": "lab"}})
    labels = {"kubernetes.io/metadata.name": "other", "team": "ml"}
    new = updated(NAMESPACES, old, metadata=old["metadata"] | {"labels": labels}, spec={"finalizers": []})
    assert new["metadata"]["labels"] == {"kubernetes.io/metadata.name": "lab", "team": "ml"}
    assert new["spec"]["finalizers"] == ["kubernetes"]
