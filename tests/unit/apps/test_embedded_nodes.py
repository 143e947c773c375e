"""What the engine says of its nodes."""

from datetime import UTC, datetime

from tessera.apps.embedded_machine import node_names
from tessera.apps.embedded_node_status import is_ours, node_status, unsaid
from tessera.apps.embedded_tiles import with_own_libraries
from tessera.embedded.runtime.sources import Additions

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LATER = datetime(2026, 1, 2, 4, 0, 0, tzinfo=UTC)
SHARES = {"nvidia.com/gpu": (20, 10)}


def test_nodes_are_named_by_letters():
    assert node_names(2) == ["node-a", "node-b"]
    assert node_names(28)[-3:] == ["node-z", "node-aa", "node-ab"]


def test_unhealthy_shares_are_there_and_not_to_be_had():
    status = node_status("node-a", SHARES, NOW)
    assert (status["capacity"]["nvidia.com/gpu"], status["allocatable"]["nvidia.com/gpu"]) == ("20", "10")


def test_what_a_node_says_already_is_not_said_again():
    node = {"status": node_status("node-a", SHARES, NOW)}
    assert unsaid(node, node_status("node-a", SHARES, LATER)) == {}


def test_what_others_put_on_a_node_is_no_reason_to_say_anything():
    status = node_status("node-a", SHARES, NOW)
    status["capacity"] |= {"example.com/thing": "1"}
    assert unsaid({"status": status}, node_status("node-a", SHARES, NOW)) == {}


def test_a_node_that_was_called_silent_is_said_to_be_ready_again():
    status = node_status("node-a", SHARES, NOW)
    status["conditions"][-1] |= {"status": "Unknown"}
    assert list(unsaid({"status": status}, node_status("node-a", SHARES, NOW))) == ["conditions"]


def test_fewer_healthy_shares_are_news():
    node = {"status": node_status("node-a", SHARES, NOW)}
    assert list(unsaid(node, node_status("node-a", {"nvidia.com/gpu": (20, 0)}, NOW))) == ["allocatable"]


def test_nodes_of_an_engine_are_told_from_those_that_others_made():
    assert is_ours({"status": node_status("node-a", SHARES, NOW)})
    assert not is_ours({"status": {"nodeInfo": {"containerRuntimeVersion": "containerd://2.1.4"}}})
    assert not is_ours({})


def test_the_simulated_driver_is_found_before_the_containers_own_libraries():
    env = [{"name": "LD_LIBRARY_PATH", "value": "/opt/lib"}]
    pod = {"spec": {"containers": [{"name": "main", "env": env}, {"name": "other"}]}}
    given = Additions(environment={"TESSERA_SIM": "/cards", "LD_LIBRARY_PATH": "/sim"})
    assert with_own_libraries(given, pod, "main").environment == {
        "TESSERA_SIM": "/cards",
        "LD_LIBRARY_PATH": "/sim:/opt/lib",
    }
    assert with_own_libraries(given, pod, "other") == given
    assert with_own_libraries(Additions(), pod, "main") == Additions()
