"""Bodies in protobuf, written here by hand as a program in Go would send them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera.embedded.serving.protobuf import Undecodable, decode_message
from tessera.embedded.serving.protobuf.wire import fields, signed


def varint(value):
    value &= 2**64 - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def message(*numbered):
    return b"".join(field(number, value) for number, value in numbered)


def envelope(api_version, kind, raw):
    return b"k8s\x00" + message((1, message((1, api_version), (2, kind))), (2, raw), (3, ""), (4, ""))


def test_a_config_map_is_what_it_would_be_in_json():
    metadata = message((1, "settings"), (2, ""), (3, "default"), (7, 0), (8, b""), (11, message((1, "a"), (2, "1"))))
    data = message((1, "colour"), (2, "red"))
    body = envelope("v1", "ConfigMap", message((1, metadata), (2, data), (3, message((1, "raw"), (2, b"\x00\xff")))))
    assert decode_message(body) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": "default", "labels": {"a": "1"}},
        "data": {"colour": "red"},
        "binaryData": {"raw": "AP8="},
    }


def test_a_zero_that_was_meant_is_kept_and_one_that_means_nothing_is_not():
    spec = message((1, 0), (5, 0), (7, 0))
    decoded = decode_message(envelope("apps/v1", "Deployment", message((2, spec))))
    assert decoded["spec"] == {"replicas": 0}


def test_a_part_that_json_does_not_name_is_merged_into_its_whole():
    probe = message((1, message((3, message((1, message((1, 0), (2, 8080))))))), (2, 5))
    container = message((1, "main"), (2, "image"), (11, probe))
    decoded = decode_message(envelope("v1", "Pod", message((2, message((2, container))))))
    assert decoded["spec"]["containers"][0]["readinessProbe"] == {"tcpSocket": {"port": 8080}, "initialDelaySeconds": 5}


@pytest.mark.parametrize(
    ("text", "expected"), [((1, message((1, 1), (3, "http"))), "http"), ((1, message((2, -1))), -1)]
)
def test_a_number_or_a_text_is_told_apart(text, expected):
    container = message((1, "main"), (11, message((1, message((3, message(text)))))))
    decoded = decode_message(envelope("v1", "Pod", message((2, message((2, container))))))
    assert decoded["spec"]["containers"][0]["readinessProbe"]["tcpSocket"]["port"] == expected


def test_times_are_written_as_json_has_them():
    spec = message((1, "me"), (4, message((1, 1_767_323_045), (2, 678_901_000))))
    decoded = decode_message(envelope("coordination.k8s.io/v1", "Lease", message((2, spec))))
    assert decoded["spec"] == {"holderIdentity": "me", "renewTime": "2026-01-02T03:04:05.678901Z"}


def test_a_field_of_a_newer_kubernetes_is_passed_over():
    assert "data" not in decode_message(envelope("v1", "ConfigMap", message((999, "new"))))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"k8s\x00\x0a\xff",
        envelope("v1", "Nothing", b""),
        envelope("v1", "ConfigMap", b"\x0a\x10short"),
        envelope("v1", "ConfigMap", b"\x0b"),
        envelope("v1", "ConfigMap", field(1, 7)),
        envelope("v1", "ConfigMap", b"\xff" * 20),
    ],
)
def test_what_cannot_be_read_is_told(body):
    with pytest.raises(Undecodable):
        decode_message(body)


@given(st.binary(max_size=200))
def test_no_bytes_make_it_fail_otherwise(data):
    for body in (b"k8s\x00" + data, envelope("v1", "Pod", data)):
        try:
            decode_message(body)
        except Undecodable:
            continue


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_number_survives_the_wire(number):
    ((_, value),) = fields(field(3, number))
    assert isinstance(value, int)
    assert signed(value) == number
