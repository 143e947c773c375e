"""Values of the wrong type: what a built-in kind cannot be read from."""

import pytest

from tests.unit.embedded.schemas.samples import LEASE, NODE, POD, schema_of, widgets


@pytest.mark.parametrize(
    ("document", "field", "message"),
    [
        (
            {"spec": {"hostNetwork": "yes"}},
            "spec.hostNetwork",
            "json: cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork of type bool",
        ),
        (
            {"spec": {"containers": [{"image": 3}]}},
            "spec.containers[0].image",
            "json: cannot unmarshal number into Go struct field Container.spec.containers.image of type string",
        ),
        (
            {"metadata": {"labels": {"a": True}}},
            "metadata.labels.a",
            "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            {"spec": {"priority": 1.5}},
            "spec.priority",
            "json: cannot unmarshal number 1.5 into Go struct field PodSpec.spec.priority of type int32",
        ),
        (
            {"spec": {"containers": {}}},
            "spec.containers",
            "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container",
        ),
        ({"spec": []}, "spec", "json: cannot unmarshal array into Go struct field Pod.spec of type v1.PodSpec"),
    ],
)
def test_a_wrong_type_is_told_as_a_decoder_tells_it(document, field, message):
    (cause,) = schema_of(POD).mismatches(document)
    assert (cause.field, cause.message) == (field, message)


def test_a_bool_is_no_number():
    assert schema_of(POD).mismatches({"spec": {"priority": True}})


def test_null_reads_as_absent_but_not_in_a_list():
    assert schema_of(POD).mismatches({"spec": {"containers": None, "nodeName": None}}) == []
    assert schema_of(POD).mismatches({"spec": {"containers": [None]}})


def test_a_quantity_is_a_string_or_a_number():
    assert schema_of(NODE).mismatches({"status": {"capacity": {"cpu": 2, "memory": "1.5Gi", "pods": 1e3}}}) == []
    (cause,) = schema_of(NODE).mismatches({"status": {"capacity": {"cpu": "two"}}})
    assert "quantities must match the regular expression" in cause.message
    assert schema_of(NODE).mismatches({"status": {"capacity": {"cpu": True}}})


@pytest.mark.parametrize(
    "time", ["2026-01-02T03:04:05.678Z", "2026-01-02T03:04:05Z", "soon", "2026-02-30T03:04:05.678901Z"]
)
def test_a_time_of_a_lease_has_six_digits_for_the_parts_of_a_second(time):
    (cause,) = schema_of(LEASE).mismatches({"spec": {"renewTime": time}})
    assert cause.message.startswith(f'parsing time "{time}" as "2006-01-02T15:04:05.000000Z07:00"')
    assert schema_of(LEASE).mismatches({"spec": {"renewTime": "2026-01-02T03:04:05.678901Z"}}) == []


@pytest.mark.parametrize("time", ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.5+01:00"])
def test_other_times_have_as_many_as_they_like(time):
    assert schema_of(POD).mismatches({"metadata": {"creationTimestamp": time}}) == []


def test_of_a_custom_resource_only_the_metadata_cannot_be_read():
    document = {"metadata": {"labels": {"a": 1}}, "spec": {"count": "two"}}
    (cause,) = widgets(count={"type": "integer"}).mismatches(document)
    assert cause.field == "metadata.labels.a"
