"""Bodies: decoded, and in agreement with their path."""

import pytest

from tessera.embedded.kinds import Kind
from tessera.embedded.refusals import ApiRefusal
from tessera.embedded.serving.bodies import MOST_BYTES, agree, decode_any, decode_object, decode_optional, read_bounded
from tessera.embedded.serving.paths import Target

PODS = Kind(version="v1", kind="Pod", plural="pods")
NODES = Kind(version="v1", kind="Node", plural="nodes", is_namespaced=False)
ONE = Target("", "v1", "pods", "default", "a")


def refused_with(code, make, *arguments):
    with pytest.raises(ApiRefusal) as refusal:
        make(*arguments)
    assert refusal.value.code == code
    return refusal.value.message


def test_a_date_in_yaml_is_a_text_as_in_json():
    text = b"spec:\n  renewTime: 2026-01-02T03:04:05.678901Z\n  count: 3\n"
    assert decode_object(text, "application/yaml") == {"spec": {"renewTime": "2026-01-02T03:04:05.678901Z", "count": 3}}


@pytest.mark.parametrize("content_type", ["", "application/json", "application/json; charset=utf-8"])
def test_json_is_json_however_it_is_called(content_type):
    assert decode_any(b'{"a": [1, null]}', content_type) == {"a": [1, None]}


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"{", "application/json"),
        (b"[1]", ""),
        (b"a: [", "application/yaml"),
        (b"x", "application/vnd.kubernetes.protobuf"),
    ],
)
def test_what_cannot_be_read_is_a_bad_request(body, content_type):
    refused_with(400, decode_object, body, content_type)


def test_an_unknown_media_type_is_refused():
    refused_with(415, decode_any, b"<a/>", "application/xml")


def test_options_of_a_deletion_may_be_left_out():
    assert decode_optional(b"", "application/json") == {}
    assert decode_optional(b'{"gracePeriodSeconds": 0}', "") == {"gracePeriodSeconds": 0}


def test_a_body_is_completed_from_its_path():
    document = {"spec": {}}
    agree(document, PODS, ONE)
    assert document == {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "a", "namespace": "default"},
        "spec": {},
    }


@pytest.mark.parametrize(
    "document",
    [
        {"kind": "Node"},
        {"apiVersion": "v2"},
        {"metadata": {"name": "b"}},
        {"metadata": {"namespace": "other"}},
        {"metadata": ["a"]},
    ],
)
def test_a_body_that_contradicts_its_path_is_a_bad_request(document):
    refused_with(400, agree, document, PODS, ONE)


def test_what_lives_outside_namespaces_has_none():
    document = {"metadata": {"name": "n", "namespace": "default"}}
    agree(document, NODES, Target("", "v1", "nodes", "", "n"))
    assert "namespace" not in document["metadata"]


@pytest.mark.asyncio
async def test_a_body_that_is_too_large_is_not_read_to_its_end():
    asked = 0

    async def receive():
        nonlocal asked
        asked += 1
        return {"type": "http.request", "body": b"x" * 2**20, "more_body": True}

    with pytest.raises(ApiRefusal) as refusal:
        await read_bounded(receive)
    assert refusal.value.code == 413
    assert asked == MOST_BYTES // 2**20 + 1
