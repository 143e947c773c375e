"""What the contract does not show: odd requests, and who may use the doors that are for tests."""

import json
import threading

import pytest
import yaml

from tests.contract.api import MERGE_PATCH, Api
from tests.contract.objects import config_map
from tests.contract.refusals import refused

WRITERS, WRITES = 8, 25


@pytest.fixture
def nobody(server, api, tmp_path):
    """Somebody who may do nothing."""
    document = yaml.safe_load(server.kubeconfig.read_text())
    document["users"][0]["user"]["token"] = api.ask("POST", "/debug/admit?user=nobody")
    path = tmp_path / "nobody.kubeconfig"
    path.write_text(json.dumps(document))
    with Api(path) as nobody:
        yield nobody


@pytest.mark.parametrize("path", ["/debug/admit?user=root&group=system:masters", "/debug/forget?before=5"])
def test_only_an_administrator_uses_the_doors_for_tests(nobody, path):
    with refused(403, "Forbidden"):
        nobody.ask("POST", path)


def test_a_request_without_a_token_may_ask_how_we_are_and_nothing_else(server, tmp_path):
    document = yaml.safe_load(server.kubeconfig.read_text())
    document["users"][0]["user"] = {}
    path = tmp_path / "stranger.kubeconfig"
    path.write_text(json.dumps(document))
    with Api(path) as stranger:
        assert stranger.get("/healthz") == "ok"
        with refused(403, "Forbidden"):
            stranger.get("/api/v1/pods")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("GET", "/api/v2/pods", 404),
        ("GET", "/api/v1/namespaces/default/nodes", 404),
        ("GET", "/api/v1/namespaces/default/pods/a/nothing", 404),
        ("POST", "/api/v1/pods", 405),
        ("POST", "/api/v1/namespaces/default/pods/a", 405),
        ("TRACE", "/api/v1/pods", 405),
        ("POST", "/version", 405),
    ],
)
def test_a_path_or_method_that_means_nothing_is_told_so(api, method, path, status):
    answer = api.send(method, path)
    assert (answer.status, answer.body["kind"]) == (status, "Status")


def test_a_path_that_means_nothing_has_details_for_clients_that_look_into_them(api):
    answer = api.send("GET", "/api/v1/namespaces/default/pods/a/ephemeralcontainers")
    assert (answer.status, answer.body["details"]) == (404, {})


@pytest.mark.parametrize("header", ["Impersonate-Group", "Impersonate-Uid", "Impersonate-Extra-scopes"])
def test_nobody_acts_as_a_part_of_somebody(api, header):
    with refused(400, "BadRequest"):
        api.ask("GET", "/api/v1/pods", headers={header: "x"})


def test_an_account_that_is_impersonated_is_in_the_groups_of_accounts(api):
    body = {"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"}
    headers = {"Impersonate-User": "system:serviceaccount:team:robot", "Impersonate-Extra-Scopes%2fa": "x"}
    user = api.ask("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body, headers=headers)["status"][
        "userInfo"
    ]
    expected = ["system:serviceaccounts", "system:serviceaccounts:team", "system:authenticated"]
    assert (user["groups"], user["extra"]) == (expected, {"scopes/a": ["x"]})


def test_only_who_may_impersonate_every_part_of_somebody_acts_as_that_one(nobody, api):
    rule = {"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"], "resourceNames": ["bob"]}
    rbac = "rbac.authorization.k8s.io"
    api.collection(f"{rbac}/v1/clusterroles").create({"metadata": {"name": "bobs"}, "rules": [rule]})
    subjects = [{"kind": "User", "name": "nobody", "apiGroup": rbac}]
    role = {"kind": "ClusterRole", "name": "bobs", "apiGroup": rbac}
    binding = {"metadata": {"name": "bobs"}, "subjects": subjects, "roleRef": role}
    api.collection(f"{rbac}/v1/clusterrolebindings").create(binding)
    bob = {"Impersonate-User": "bob"}
    assert nobody.send("GET", "/version", headers=bob).status == 200
    for more in ({"Impersonate-Group": "system:masters"}, {"Impersonate-Uid": "1"}, {"Impersonate-User": "eve"}):
        assert nobody.send("GET", "/version", headers=bob | more).status == 403


@pytest.mark.parametrize(
    "query",
    [{"limit": "many"}, {"dryRun": "Some"}, {"resourceVersion": "new"}, {"propagationPolicy": "Sideways"}],
    ids=str,
)
def test_a_query_that_cannot_be_read_is_a_bad_request(config_maps, query):
    with refused(400, "BadRequest"):
        config_maps.listing(**query)


def test_many_who_patch_one_object_at_once_all_succeed(server, config_maps):
    config_maps.create(config_map("counted", {}))

    def write(writer):
        with Api(server.kubeconfig) as api:
            for number in range(WRITES):
                body = {"data": {f"{writer}-{number}": ""}}
                api.collection("configmaps", "default").patch("counted", MERGE_PATCH, body)

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(config_maps.get("counted")["data"]) == WRITERS * WRITES
