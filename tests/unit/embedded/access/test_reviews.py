"""Questions about access, as the API answers them."""

import pytest

from tessera.embedded.access import Authorizer, Tokens, User
from tessera.embedded.access.reviews import Asking, answer, request_token
from tessera.embedded.access.tokens import AUDIENCE
from tessera.embedded.refusals import ApiRefusal
from tessera.embedded.resources import table
from tests.unit.embedded.access.cluster import Cluster, account, rule, user

NOW = "2026-01-02T03:04:05Z"
ALICE = User(name="alice", uid="7", groups=("system:authenticated",), extra={"how": ("token",)})
ROBOT = account("lab", "robot")


@pytest.fixture
def asking():
    cluster = Cluster()
    cluster.write("serviceaccounts", ROBOT)
    cluster.role("lab", "some", rule(["list"], "pods"))
    cluster.bind("lab", "Role", "some", user("alice"))
    return Asking(ALICE, "", Authorizer(cluster), Tokens(cluster, b"k" * 32), NOW)


def attributes(verb, namespace="lab"):
    return {"resourceAttributes": {"namespace": namespace, "verb": verb, "resource": "pods"}}


def test_whoami_tells_who_asks(asking):
    told = answer(table.SELF_SUBJECT_REVIEWS, {}, asking)
    assert told["status"]["userInfo"] == {
        "username": "alice",
        "uid": "7",
        "groups": ["system:authenticated"],
        "extra": {"how": ["token"]},
    }
    assert told["metadata"] == {"creationTimestamp": NOW}


def test_own_rights_can_be_asked_for(asking):
    def allowed(verb):
        return answer(table.SELF_ACCESS_REVIEWS, {"spec": attributes(verb)}, asking)["status"]

    told = 'RBAC: allowed by RoleBinding "bind-some/lab" of Role "some" to User "alice"'
    assert allowed("list") == {"allowed": True, "reason": told}
    assert allowed("delete") == {"allowed": False}


def test_own_rules_can_be_asked_for(asking):
    status = answer(table.SELF_RULES_REVIEWS, {"spec": {"namespace": "lab"}}, asking)["status"]
    assert {"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]} in status["resourceRules"]
    assert status["incomplete"] is False
    with pytest.raises(ApiRefusal, match="no namespace on request"):
        answer(table.SELF_RULES_REVIEWS, {"spec": {}}, asking)


def test_anybodys_rights_can_be_asked_for(asking):
    review = {"spec": {"user": "alice"} | attributes("list")}
    told = answer(table.ACCESS_REVIEWS, review, asking)
    assert (told["kind"], told["apiVersion"]) == ("SubjectAccessReview", "authorization.k8s.io/v1")
    assert told["status"]["allowed"] is True
    review = {"spec": {"user": "bob"} | attributes("list")}
    assert answer(table.ACCESS_REVIEWS, review, asking)["status"] == {"allowed": False}


def test_a_path_can_be_asked_for(asking):
    path = {"nonResourceAttributes": {"path": "/healthz", "verb": "get"}}
    review = {"spec": {"user": "bob", "groups": ["system:unauthenticated"]} | path}
    assert answer(table.ACCESS_REVIEWS, review, asking)["status"]["allowed"] is True


def test_a_question_about_nobody_or_nothing_is_refused(asking):
    with pytest.raises(ApiRefusal) as refusal:
        answer(table.ACCESS_REVIEWS, {"spec": {}}, asking)
    assert [cause["field"] for cause in refusal.value.details["causes"]] == ["spec.resourceAttributes", "spec.user"]


def test_a_local_review_is_about_its_namespace(asking):
    review = {"spec": {"user": "alice"} | attributes("list")}
    told = answer(table.LOCAL_ACCESS_REVIEWS, review, asking._replace(namespace="lab"))
    assert (told["status"]["allowed"], told["metadata"]) == (True, {"namespace": "lab"})
    with pytest.raises(ApiRefusal):
        answer(table.LOCAL_ACCESS_REVIEWS, review, asking._replace(namespace="other"))


def requested(asking, **spec):
    return request_token({"spec": spec}, ROBOT, asking.tokens, token_id="t", now=NOW)


def test_a_token_is_given_and_can_be_looked_up(asking):
    given = requested(asking, expirationSeconds=600)
    assert given["spec"] == {"audiences": [AUDIENCE], "expirationSeconds": 600, "boundObjectRef": None}
    assert given["metadata"]["name"] == "robot"
    review = {"spec": {"token": given["status"]["token"]}}
    status = answer(table.TOKEN_REVIEWS, review, asking)["status"]
    assert status["authenticated"] is True
    assert status["user"]["username"] == "system:serviceaccount:lab:robot"
    assert status["audiences"] == [AUDIENCE]


def test_nonsense_is_nobodys_token(asking):
    status = answer(table.TOKEN_REVIEWS, {"spec": {"token": "nonsense"}}, asking)["status"]
    assert status == {"user": {}, "error": "invalid bearer token"}


def test_a_review_needs_a_token(asking):
    with pytest.raises(ApiRefusal) as refusal:
        answer(table.TOKEN_REVIEWS, {"spec": {}}, asking)
    assert refusal.value.code == 400


def test_a_token_lasts_ten_minutes_at_least(asking):
    with pytest.raises(ApiRefusal) as refusal:
        requested(asking, expirationSeconds=5)
    told = "spec.expirationSeconds: Invalid value: 5: may not specify a duration less than 10 minutes"
    assert refusal.value.message == f'TokenRequest.authentication.k8s.io "" is invalid: {told}'
