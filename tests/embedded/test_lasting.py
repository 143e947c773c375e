"""What was answered is there after any end of the process, and nobody else gets at it meanwhile."""

import itertools
import random
import subprocess
import threading
from contextlib import suppress

import urllib3

from tests.contract.api import Api
from tests.contract.objects import config_map, pod

KILLS = 5


def create_until_killed(server, prefix):
    """Versions by name, of what was answered before the server went."""
    acknowledged = dict[str, str]()
    killer = threading.Timer(random.uniform(0.1, 0.6), server.kill)
    killer.start()
    with Api(server.kubeconfig) as api, suppress(urllib3.exceptions.HTTPError, OSError):
        config_maps = api.collection("configmaps", "default")
        for number in itertools.count():
            name = f"{prefix}-{number}"
            acknowledged[name] = config_maps.create(config_map(name))["metadata"]["resourceVersion"]
    killer.join()
    return acknowledged


def test_whatever_was_answered_before_a_kill_is_there_after_it(server):
    acknowledged = dict[str, str]()
    for round in range(KILLS):
        acknowledged |= create_until_killed(server, f"kept-{round}")
        server.start()
    with Api(server.kubeconfig) as api:
        items = api.collection("configmaps", "default").listing()["items"]
    found = {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in items}
    assert acknowledged.items() <= found.items()
    assert len(acknowledged) > KILLS


def test_a_stopped_server_goes_on_where_it_was(server):
    with Api(server.kubeconfig) as api:
        created = api.collection("configmaps", "default").create(config_map("kept"))
        account = api.ask("POST", "/api/v1/namespaces/default/serviceaccounts/default/token", {"spec": {}})
    server.stop()
    server.start()
    with Api(server.kubeconfig) as api:
        assert api.collection("configmaps", "default").get("kept") == created
        later = api.collection("configmaps", "default").create(config_map("later"))
        review = {"spec": {"token": account["status"]["token"]}}
        told = api.ask("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)["status"]
    assert int(later["metadata"]["resourceVersion"]) > int(created["metadata"]["resourceVersion"])
    assert told["user"]["username"] == "system:serviceaccount:default:default"


def test_a_second_server_of_the_same_directory_says_why_it_does_not_start(server):
    second = subprocess.run(server.command(), capture_output=True, text=True, check=False, timeout=60)
    assert second.returncode == 1
    assert len(second.stderr.strip().splitlines()) == 1, second.stderr
    assert "in use" in second.stderr


def test_definitions_are_served_again_after_a_restart(server):
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget"}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"size": {"type": "integer"}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": "lasting.example", "scope": "Namespaced", "names": names, "versions": [version]}
    with Api(server.kubeconfig) as api:
        definitions = api.collection("apiextensions.k8s.io/v1/customresourcedefinitions")
        definitions.create({"metadata": {"name": "widgets.lasting.example"}, "spec": spec})
        api.collection("lasting.example/v1/widgets", "default").create({"metadata": {"name": "w"}, "size": 3})
    server.stop()
    server.start()
    with Api(server.kubeconfig) as again:
        assert again.collection("lasting.example/v1/widgets", "default").get("w")["size"] == 3


def test_an_address_is_given_to_one_service_alone(api):
    services = api.collection("services", "default")
    spec = {"ports": [{"port": 80}]}
    given = [services.create({"metadata": {"name": f"s{number}"}, "spec": spec}) for number in range(3)]
    addresses = {service["spec"]["clusterIP"] for service in given}
    assert len(addresses) == 3
    wanted = {"metadata": {"name": "taken"}, "spec": spec | {"clusterIP": addresses.pop()}}
    answer = api.send("POST", services.path, wanted)
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    assert "provided IP is already allocated" in answer.body["message"]


def test_what_only_a_node_can_answer_is_said_not_to_be_there(api):
    pods = api.collection("pods", "default")
    pods.create(pod("placed", spec={"nodeName": "node-a"}))
    answer = api.send("GET", f"{pods.path}/placed/log")
    assert (answer.status, answer.body["reason"]) == (501, "NotImplemented")
    pods.delete("placed", {"gracePeriodSeconds": 0})
