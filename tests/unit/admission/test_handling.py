"""Bytes in, bytes out: an answer to whatever comes."""

import asyncio
import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera.admission import DEFAULT_SETTINGS, Webhook
from tests.unit.admission.pods import CATALOGUE, a_container, a_gpu_pod, a_pod

WEBHOOK = Webhook(CATALOGUE, DEFAULT_SETTINGS)
VERSIONS = ("admission.k8s.io/v1", "admission.k8s.io/v1beta1")


def a_review(pod, version=VERSIONS[0], **changes):
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": "default",
        "operation": "CREATE",
        "userInfo": {"username": "admin"},
        "object": pod,
        "oldObject": None,
        "dryRun": False,
    }
    return {"kind": "AdmissionReview", "apiVersion": version, "request": request | changes}


def ask(review):
    body = review if isinstance(review, bytes) else json.dumps(review).encode()
    return asyncio.run(WEBHOOK.handle(body))


def respond(review):
    answer = ask(review)
    assert (answer.status, answer.content_type) == (200, "application/json")
    return json.loads(answer.body)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_answer_has_the_version_and_the_uid_of_its_question(version):
    answer = respond(a_review(a_gpu_pod(gpu="1"), version))
    assert (answer["apiVersion"], answer["kind"]) == (version, "AdmissionReview")
    assert answer["response"]["uid"] == "705ab4f5-6393-11e8-b7cc-42010a800002"


def test_a_pod_of_ours_is_patched():
    response = respond(a_review(a_gpu_pod(gpu="1")))["response"]
    assert (response["allowed"], response["patchType"]) == (True, "JSONPatch")
    assert json.loads(base64.b64decode(response["patch"])) == [
        {"op": "add", "path": "/spec/containers/0/resources/limits/nvidia.com~1gpucores", "value": "100"},
        {"op": "replace", "path": "/spec/schedulerName", "value": "hami-scheduler"},
    ]
    assert "warnings" not in response


def test_a_guess_is_a_warning():
    response = respond(a_review(a_gpu_pod(gpumem="1")))["response"]
    assert "nvidia.com/gpu of container train was missing" in response["warnings"][0]


def test_a_denial_is_forbidden_with_one_sentence():
    response = respond(a_review(a_gpu_pod(gpumem="1Gi")))["response"]
    assert response["allowed"] is False
    assert (response["status"]["code"], response["status"]["reason"]) == (403, "Forbidden")
    assert response["status"]["message"].startswith('default/web-0: nvidia.com/gpumem is "1Gi", expected ')
    assert "patch" not in response


@pytest.mark.parametrize(
    "changes",
    [
        {"operation": "UPDATE"},
        {"kind": {"group": "apps", "kind": "Deployment"}},
        {"subResource": "status"},
        {"object": a_pod(a_container())},
    ],
)
def test_what_does_not_concern_us_is_allowed_as_it_is(changes):
    uid = "705ab4f5-6393-11e8-b7cc-42010a800002"
    assert respond(a_review(a_gpu_pod(gpu="1"), **changes))["response"] == {"uid": uid, "allowed": True}


@pytest.mark.parametrize("pod", [None, 7, [], {}, {"spec": None}, {"spec": {"containers": None}}])
def test_a_pod_that_is_none_is_denied_with_a_sentence(pod):
    response = respond(a_review(pod))["response"]
    assert response["allowed"] is False
    assert "expected" in response["status"]["message"]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"", "admission review: not readable as JSON (Input data was truncated), expected one AdmissionReview"),
        (b"[" * 100_000, "maximum recursion depth exceeded"),
        (b"7", "admission review: the document is 7, expected an object"),
        (
            b'{"apiVersion": "\xff"}',
            "admission review: not readable as JSON ('utf-8' codec can't decode byte 0xff in position 0: invalid start"
            " byte), expected one AdmissionReview",
        ),
        (b"{}", "admission review: apiVersion is missing, expected it to be set"),
        (
            json.dumps(a_review({}, "admission.k8s.io/v2")).encode(),
            'admission review: apiVersion is "admission.k8s.io/v2", expected one of the words documented for it',
        ),
        (json.dumps(a_review({}, uid=7)).encode(), "admission review: request.uid is 7, expected a string"),
    ],
)
def test_what_is_no_review_is_a_bad_request_with_one_sentence(body, sentence):
    answer = ask(body)
    assert (answer.status, answer.content_type) == (400, "text/plain; charset=utf-8")
    assert sentence in answer.body.decode()
    assert b"\n" not in answer.body


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
)
GARBAGE = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3)
)
FIELDS = st.sampled_from(["metadata", "annotations", "labels", "spec", "containers", "initContainers", "env", "name"])
POD_LIKE = st.recursive(
    SCALARS | st.just({"nvidia.com/gpu": "1"}),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=4),
)


@given(st.binary(max_size=200))
def test_any_bytes_are_answered(body):
    assert ask(body).status in (200, 400)


@given(GARBAGE)
def test_any_json_is_answered(document):
    assert ask(document).status in (200, 400)


@given(GARBAGE | POD_LIKE)
def test_anything_in_place_of_a_pod_is_answered_with_a_review(pod):
    response = respond(a_review(pod))["response"]
    assert response["allowed"] or response["status"]["message"].count("\n") == 0
