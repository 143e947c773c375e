"""Schemas of built-in kinds: what the models say, and what is laid over them."""

import subprocess
import sys

import pytest

from tessera.embedded.kinds import Kind
from tessera.embedded.schemas import Schema, builtin_schema
from tests.unit.embedded.schemas.samples import DEPLOYMENT, LEASE, NODE, POD, schema_of


def at(schema: Schema, *steps: str | int) -> Schema:
    for step in steps:
        child = schema.child(step)
        assert child is not None, step
        schema = child
    return schema


def test_a_kind_that_is_not_built_in_has_no_schema():
    assert builtin_schema(Kind(group="contract.example", version="v1", kind="Pod", plural="pods")) is None


def test_what_a_field_refers_to_is_reached_through_it():
    image = at(schema_of(DEPLOYMENT), "spec", "template", "spec", "containers", 0, "image")
    assert image.type == "string"
    assert at(schema_of(POD), "metadata", "labels", "any").type == "string"
    assert schema_of(POD).child("colour") is None


def test_raw_shows_the_fields_of_what_is_referred_to():
    assert "nodeName" in at(schema_of(POD), "spec").raw["properties"]


@pytest.mark.parametrize(
    ("steps", "keys", "merge_key"),
    [
        (("spec", "containers"), ("name",), "name"),
        (("spec", "containers", 0, "ports"), ("containerPort", "protocol"), "containerPort"),
        (("spec", "volumes"), ("name",), "name"),
        (("status", "conditions"), ("type",), "type"),
        (("metadata", "ownerReferences"), ("uid",), "uid"),
    ],
)
def test_lists_of_objects_have_their_keys(steps, keys, merge_key):
    found = at(schema_of(POD), *steps)
    assert (found.list_type, found.list_keys, found.patch_merge_key) == ("map", keys, merge_key)
    assert "merge" in found.patch_strategy.split(",")


def test_lists_are_atomic_unless_said_otherwise():
    assert at(schema_of(POD), "spec", "containers", 0, "command").list_type == "atomic"
    assert at(schema_of(POD), "metadata", "finalizers").list_type == "set"


def test_a_type_can_be_atomic_wherever_it_is_used():
    assert at(schema_of(DEPLOYMENT), "spec", "selector").map_type == "atomic"
    assert at(schema_of(POD), "spec", "nodeSelector").map_type == "atomic"
    assert at(schema_of(POD), "spec").map_type == "granular"


def test_a_key_that_may_be_left_out_has_a_default():
    assert at(schema_of(POD), "spec", "containers", 0, "ports", 0, "protocol").default == "TCP"


def test_quantities_and_times_are_told_from_other_strings():
    assert at(schema_of(NODE), "status", "capacity", "cpu").format == "quantity"
    assert at(schema_of(LEASE), "spec", "renewTime").format == "micro-time"
    assert at(schema_of(POD), "metadata", "creationTimestamp").format == "date-time"


def test_a_port_is_a_number_or_a_name():
    assert at(schema_of(POD), "spec", "containers", 0, "livenessProbe", "httpGet", "port").is_int_or_string


def test_the_official_client_is_not_needed_at_run_time():
    program = (
        "import sys; from tessera.embedded.kinds import Kind; from tessera.embedded.schemas import builtin_schema; "
        "assert builtin_schema(Kind(version='v1', kind='Pod', plural='pods')); "
        "sys.exit('kubernetes' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
