"""Names, labels, owners and finalizers: the same for every kind."""

import pytest

from tests.unit.embedded.resources.making import NAMESPACE, NOW, UID, complaints, created, refusals, served

MAPS = served("configmaps")
NODES = served("nodes")
OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "1"}


def named(**metadata):
    return {"metadata": {"name": "settings"} | metadata}


def test_a_new_object_is_given_its_identity_and_keeps_none_that_was_sent():
    forged = {"uid": "mine", "creationTimestamp": "1999-01-01T00:00:00Z", "resourceVersion": "7", "generation": 9}
    made = created(MAPS, named(**forged, deletionTimestamp=NOW))["metadata"]
    assert made == {"name": "settings", "namespace": NAMESPACE, "uid": UID, "creationTimestamp": NOW}


def test_a_generated_name_is_its_beginning_and_five_characters():
    assert created(MAPS, {"metadata": {"generateName": "run-"}})["metadata"]["name"] == "run-abcde"


def test_a_generated_name_of_a_long_beginning_is_no_longer_than_a_name_may_be():
    assert len(created(MAPS, {"metadata": {"generateName": "x" * 300}})["metadata"]["name"]) == 63


def test_what_lives_outside_namespaces_has_none():
    assert "namespace" not in created(NODES, named())["metadata"]


def test_an_object_without_a_name_is_refused():
    assert complaints(MAPS, {"metadata": {}})["metadata.name"] == "Required value: name or generateName is required"


@pytest.mark.parametrize(
    ("plural", "wrong"), [("configmaps", "Not_A_Name"), ("services", "a.b"), ("namespaces", "a.b")]
)
def test_a_name_that_is_none_is_refused(plural, wrong):
    document = {"metadata": {"name": wrong}, "spec": {"ports": [{"port": 80}]}}
    assert complaints(served(plural), document)["metadata.name"].startswith(f'Invalid value: "{wrong}": ')


def test_a_role_may_have_a_colon_in_its_name():
    assert created(served("roles", "rbac.authorization.k8s.io"), {"metadata": {"name": "system:lab"}})


@pytest.mark.parametrize(
    ("labels", "complaint"),
    [
        ({"a b": "c"}, 'Invalid value: "a b": name part must consist of'),
        ({"d": "e f"}, 'Invalid value: "e f": a valid label must be an empty string or consist of'),
        ({"g": "x" * 64}, "must be no more than 63 bytes"),
        ({"a/b/c": "d"}, "with an optional DNS subdomain prefix and '/'"),
        ({"/a": "d"}, "prefix part must be non-empty"),
    ],
)
def test_labels_are_checked(labels, complaint):
    assert complaint in complaints(MAPS, named(labels=labels))["metadata.labels"]


def test_annotations_are_not_larger_than_a_quarter_of_a_mebibyte():
    told = complaints(MAPS, named(annotations={"a": "x" * 300_000}))["metadata.annotations"]
    assert told == "Too long: may not be more than 262144 bytes"


def test_an_owner_is_fully_named_and_one_controls():
    told = complaints(MAPS, named(ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "a"}]))
    assert told == {"metadata.ownerReferences.uid": 'Invalid value: "": must not be empty'}
    two = [OWNER | {"controller": True}, OWNER | {"name": "b", "uid": "2", "controller": True}]
    told = complaints(MAPS, named(ownerReferences=two))["metadata.ownerReferences"]
    assert told.endswith('Found "true" in references for Pod/a and Pod/b')


def test_a_finalizer_is_fully_qualified():
    told = complaints(MAPS, named(finalizers=["hold"]))["metadata.finalizers[0]"]
    assert told.endswith("name is neither a standard finalizer name nor is it fully qualified")


def test_a_replacement_without_identity_keeps_the_identity():
    old = created(MAPS, named())
    assert refusals(MAPS, old, metadata={"name": "settings"}) == {}


def test_an_identity_does_not_change():
    old = created(MAPS, named())
    told = refusals(MAPS, old, metadata=old["metadata"] | {"uid": "another"})
    assert told == {"metadata.uid": 'Invalid value: "another": field is immutable'}


def test_an_object_that_is_going_takes_no_new_finalizer():
    old = created(MAPS, named(finalizers=["lab.example/hold"]))
    old["metadata"]["deletionTimestamp"] = NOW
    more = old["metadata"] | {"finalizers": ["lab.example/hold", "lab.example/late"]}
    told = refusals(MAPS, old, metadata=more)["metadata.finalizers"]
    assert "no new finalizers can be added if the object is being deleted" in told
    assert refusals(MAPS, old, metadata=old["metadata"] | {"finalizers": []}) == {}
