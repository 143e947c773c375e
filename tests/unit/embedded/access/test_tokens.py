"""Whose token is it?"""

import base64

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera.embedded.access import Tokens, User
from tessera.embedded.access.signing import Bound, Claims, Subject, sign, verify
from tessera.embedded.access.tokens import AUDIENCE, fingerprint
from tests.unit.embedded.access.cluster import Cluster, account

KEY = b"k" * 32
NOW = 1_800_000_000
ROBOT = account("lab", "robot")
POD = {"metadata": {"name": "worker", "namespace": "lab", "uid": "pod-uid"}, "spec": {"nodeName": "node-a"}}


class Clock:
    now = NOW

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def cluster():
    cluster = Cluster(with_builtin_roles=False)
    cluster.write("serviceaccounts", ROBOT)
    cluster.write("pods", POD)
    return cluster


@pytest.fixture
def tokens(cluster, clock):
    return Tokens(cluster, KEY, {fingerprint("secret"): User(name="root", groups=("system:masters",))}, clock)


def issued(tokens, *audiences, **more):
    return tokens.issue(ROBOT, audiences=audiences, lasting_s=600, token_id="t1", **more).token


def test_a_static_token_is_known_by_its_hash(tokens):
    assert tokens.authenticate("secret") == User(name="root", groups=("system:masters", "system:authenticated"))
    assert tokens.authenticate("secrets") is None


def test_a_token_that_is_admitted_later_counts_from_then_on(tokens):
    tokens.admit("another", User(name="alice"))
    assert tokens.authenticate("another").name == "alice"


def test_an_issued_token_speaks_for_its_account(tokens):
    robot = tokens.authenticate(issued(tokens))
    assert robot.name == "system:serviceaccount:lab:robot"
    assert robot.uid == "account-uid"
    assert robot.groups == ("system:serviceaccounts", "system:serviceaccounts:lab", "system:authenticated")
    assert robot.extra == {"authentication.kubernetes.io/credential-id": ("JTI=t1",)}


def test_the_claims_are_those_that_kubernetes_writes(tokens):
    payload = issued(tokens, pod=POD).split(".")[1]
    claims = msgspec.json.decode(base64.urlsafe_b64decode(payload + "=="))
    assert claims == {
        "aud": [AUDIENCE],
        "exp": NOW + 600,
        "iat": NOW,
        "iss": "https://kubernetes.default.svc.cluster.local",
        "jti": "t1",
        "kubernetes.io": {
            "namespace": "lab",
            "serviceaccount": {"name": "robot", "uid": "account-uid"},
            "pod": {"name": "worker", "uid": "pod-uid"},
            "node": {"name": "node-a"},
        },
        "nbf": NOW,
        "sub": "system:serviceaccount:lab:robot",
    }


def test_a_token_is_for_its_audience(tokens):
    elsewhere = issued(tokens, "tessera")
    assert tokens.authenticate(elsewhere) is None
    reviewed = tokens.review(elsewhere, ["tessera", "other"])
    assert reviewed.user.name == "system:serviceaccount:lab:robot"
    assert reviewed.audiences == ["tessera"]
    assert "is invalid for the target audiences" in tokens.review(issued(tokens), ["tessera"]).error


def test_a_token_ends(tokens, clock):
    token = issued(tokens)
    clock.now = NOW + 599
    assert tokens.authenticate(token) is not None
    clock.now = NOW + 600
    assert tokens.authenticate(token) is None


def test_a_token_ends_with_its_account_and_a_new_one_of_that_name_is_another(tokens, cluster):
    token = issued(tokens)
    assert tokens.authenticate(token) is not None
    cluster.remove("serviceaccounts", "lab", "robot")
    assert tokens.authenticate(token) is None
    cluster.write("serviceaccounts", account("lab", "robot", "other-uid"))
    assert tokens.authenticate(token) is None


def test_a_token_that_was_given_to_a_pod_ends_with_it(tokens, cluster):
    token = issued(tokens, pod=POD)
    told = tokens.authenticate(token)
    assert told.extra["authentication.kubernetes.io/pod-name"] == ("worker",)
    cluster.remove("pods", "lab", "worker")
    assert tokens.authenticate(token) is None


def test_a_token_of_another_server_is_nobodys(tokens, cluster, clock):
    other = Tokens(cluster, b"x" * 32, clock=clock)
    assert tokens.authenticate(issued(other)) is None


def test_a_token_that_claims_to_need_no_signature_is_nobodys(tokens):
    header = base64.urlsafe_b64encode(b'{"alg":"none","typ":"JWT"}').rstrip(b"=").decode()
    payload = issued(tokens).split(".")[1]
    assert tokens.authenticate(f"{header}.{payload}.") is None


CLAIMS = Claims(
    aud=[AUDIENCE],
    exp=NOW + 600,
    iat=NOW,
    iss=AUDIENCE,
    jti="t",
    bound=Bound(namespace="lab", serviceaccount=Subject("robot", "1")),
    nbf=NOW,
    sub="s",
)


def test_what_is_signed_is_read_back():
    assert verify(sign(CLAIMS, KEY), KEY) == CLAIMS


@given(st.data())
def test_a_token_with_any_character_changed_is_nobodys(data):
    token = sign(CLAIMS, KEY)
    place = data.draw(st.integers(0, len(token) - 2))  # the last character has bits that mean nothing
    letter = data.draw(st.sampled_from("AbZ_-9.").filter(lambda letter: letter != token[place]))
    assert verify(token[:place] + letter + token[place + 1 :], KEY) is None


@given(st.text())
def test_nonsense_is_nobodys(text):
    assert verify(text, KEY) is None
