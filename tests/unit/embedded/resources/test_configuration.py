"""ConfigMaps and Secrets."""

import pytest

from tessera.embedded.refusals import ApiRefusal
from tests.unit.embedded.resources.making import begun, complaints, created, refusals, served, updated

MAPS = served("configmaps")
SECRETS = served("secrets")
NAMED = {"metadata": {"name": "key"}}


def test_the_strings_of_a_secret_become_data():
    made = created(SECRETS, NAMED | {"data": {"token": "b2xk", "other": "eA=="}, "stringData": {"token": "abc"}})
    assert made["data"] == {"token": "YWJj", "other": "eA=="}
    assert made["type"] == "Opaque"
    assert "stringData" not in made


@pytest.mark.parametrize(("kind", "part"), [(MAPS, "binaryData"), (SECRETS, "data")])
def test_bytes_that_are_no_base64_are_a_bad_request(kind, part):
    with pytest.raises(ApiRefusal, match="illegal base64 data") as refusal:
        begun(kind, NAMED | {part: {"a": "!!"}})
    assert refusal.value.code == 400


@pytest.mark.parametrize("key", ["a b", ".", "..", "..hidden", ""])
@pytest.mark.parametrize("kind", [MAPS, SECRETS], ids=lambda kind: kind.kind.kind)
def test_a_key_must_be_able_to_name_a_file(kind, key):
    assert complaints(kind, NAMED | {"data": {key: "YQ=="}})[f"data[{key}]"].startswith("Invalid value: ")


def test_a_key_is_in_one_of_both_kinds_of_data():
    told = complaints(MAPS, NAMED | {"data": {"a": "b"}, "binaryData": {"a": "YQ=="}})
    assert told == {"data[a]": 'Invalid value: "a": duplicate of key present in binaryData'}


@pytest.mark.parametrize("kind", [MAPS, SECRETS], ids=lambda kind: kind.kind.kind)
def test_nothing_larger_than_a_mebibyte_is_kept(kind):
    much = {"a": "aaaa" * (1 << 20)}
    assert "Too long: may not be more than 1048576 bytes" in complaints(kind, NAMED | {"data": much}).values()


def test_a_secret_for_tls_has_a_certificate_and_a_key():
    told = complaints(SECRETS, NAMED | {"type": "kubernetes.io/tls", "data": {"tls.crt": ""}})
    assert told == {"data[tls.key]": "Required value"}


@pytest.mark.parametrize("kind", [MAPS, SECRETS], ids=lambda kind: kind.kind.kind)
def test_what_is_sealed_stays_as_it_is(kind):
    sealed = created(kind, NAMED | {"data": {"a": "YQ=="}, "immutable": True})
    seal = "Forbidden: field is immutable when `immutable` is set"
    assert refusals(kind, sealed, data={"a": "Yg=="}) == {"data": seal}
    assert refusals(kind, sealed, immutable=False) == {"immutable": seal}
    assert refusals(kind, sealed, metadata=sealed["metadata"] | {"labels": {"a": "b"}}) == {}


def test_the_type_of_a_secret_is_fixed():
    assert list(refusals(SECRETS, created(SECRETS, NAMED), type="other")) == ["type"]


def test_a_map_whose_data_is_gone_has_no_data():
    made = created(MAPS, NAMED | {"data": {"a": "b"}})
    assert "data" not in updated(MAPS, made, data=None)
