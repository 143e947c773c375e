"""Rules in a schema: which values they see, when they hold, and in which words they are told."""

from typing import Any, NamedTuple

import pytest

from tessera.embedded.refusals import Cause
from tessera.embedded.rules import broken_rules, rule_violations

VALIDATIONS = "x-kubernetes-validations"
TEXT = {"type": "string"}


class Schema(NamedTuple):
    raw: dict[str, Any]


def schema(spec):
    return Schema({"type": "object", "properties": {"spec": spec}})


def spec(properties, *rules):
    described = {"type": "object", "properties": properties}
    return schema(described | {VALIDATIONS: [{"rule": rule} if isinstance(rule, str) else rule for rule in rules]})


def found(described, new, old=None):
    old = None if old is None else {"spec": old}
    return [(cause.field, cause.message) for cause in rule_violations(described, {"spec": new}, old)]


def test_a_rule_that_holds_is_not_heard_of():
    assert found(spec({"count": {"type": "integer"}}, "self.count > 0"), {"count": 1}) == []


def test_a_rule_that_does_not_hold_is_told_with_its_message_and_place():
    rule = {"rule": "self.count > 0", "message": " more than none \n"}
    described = spec({"count": {"type": "integer"}}, rule)
    assert rule_violations(described, {"spec": {"count": 0}}, None) == [
        Cause("FieldValueInvalid", "Invalid value: more than none", "spec")
    ]


def test_without_a_message_the_rule_itself_is_told():
    described = spec({"count": {"type": "integer"}}, "self.count\n  > 0")
    assert found(described, {"count": 0}) == [("spec", "Invalid value: failed rule: self.count > 0")]


def test_a_message_is_computed():
    rule = {"rule": "self.count > 0", "message": "plain", "messageExpression": "'not ' + string(self.count)"}
    assert found(spec({"count": {"type": "integer"}}, rule), {"count": 0}) == [("spec", "Invalid value: not 0")]


@pytest.mark.parametrize("expression", ["self.name", "''", "'two\\nlines'"])
def test_a_message_that_cannot_be_used_gives_way_to_the_plain_one(expression):
    rule = {"rule": "false", "message": "plain", "messageExpression": expression}
    assert found(spec({"name": TEXT}, rule), {}) == [("spec", "Invalid value: plain")]


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("FieldValueForbidden", "Forbidden: no"),
        ("FieldValueRequired", "Required value: no"),
        ("FieldValueDuplicate", "Duplicate value: no"),
        ("FieldValueInvalid", "Invalid value: no"),
    ],
)
def test_a_rule_chooses_its_reason_and_its_field(reason, message):
    rule = {"rule": "false", "message": "no", "reason": reason, "fieldPath": ".name"}
    causes = rule_violations(spec({"name": TEXT}, rule), {"spec": {}}, None)
    assert causes == [Cause(reason, message, "spec.name")]


def test_a_rule_that_cannot_be_decided_is_a_violation():
    described = spec({"name": TEXT}, "self.name == 'a'")
    assert found(described, {}) == [
        ("spec", "Invalid value: no such key: name evaluating rule: failed rule: self.name == 'a'")
    ]


def test_rules_of_the_whole_object_know_its_name():
    raw = {"type": "object", VALIDATIONS: [{"rule": "self.metadata.name != 'a' && self.kind == 'Widget'"}]}
    document = {"kind": "Widget", "metadata": {"name": "a"}}
    (cause,) = rule_violations(Schema(raw), document, None)
    assert cause.field == "<nil>"


FIXED = {"type": "string", VALIDATIONS: [{"rule": "self == oldSelf", "message": "fixed"}]}


def test_a_rule_about_a_change_is_not_asked_at_creation():
    described = spec({"node": FIXED})
    assert found(described, {"node": "a"}) == []
    assert found(described, {"node": "a"}, {}) == []
    assert found(described, {"node": "a"}, {"node": "a"}) == []
    assert found(described, {"node": "b"}, {"node": "a"}) == [("spec.node", "Invalid value: fixed")]


def test_a_rule_may_be_asked_with_and_without_what_was():
    rule = {"rule": "!oldSelf.hasValue() || self == oldSelf.value()", "optionalOldSelf": True, "message": "fixed"}
    described = spec({"node": TEXT | {VALIDATIONS: [rule]}})
    assert found(described, {"node": "a"}) == []
    assert found(described, {"node": "b"}, {"node": "a"}) == [("spec.node", "Invalid value: fixed")]
    only_once = {"rule": "oldSelf.hasValue()", "optionalOldSelf": True, "message": "must have been"}
    assert found(spec({"node": TEXT | {VALIDATIONS: [only_once]}}), {"node": "a"}) == [
        ("spec.node", "Invalid value: must have been")
    ]


def test_elements_of_a_list_with_keys_are_known_again_wherever_they_are():
    item = {"type": "object", "properties": {"name": TEXT, "node": FIXED}}
    ports = {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    before = {"ports": [{"name": "a", "node": "1"}, {"name": "b", "node": "2"}]}
    after = {"ports": [{"name": "b", "node": "3"}, {"name": "c", "node": "9"}, {"name": "a", "node": "1"}]}
    assert found(spec({"ports": ports}), after, before) == [("spec.ports[0].node", "Invalid value: fixed")]


def test_elements_of_a_list_without_keys_are_never_known_again():
    described = spec({"nodes": {"type": "array", "items": FIXED}})
    assert found(described, {"nodes": ["b"]}, {"nodes": ["a"]}) == []


def test_values_of_a_map_are_known_by_their_keys():
    described = spec({"nodes": {"type": "object", "additionalProperties": FIXED}})
    before, after = {"nodes": {"x": "1", "y": "2"}}, {"nodes": {"x": "1", "y": "3", "z": "4"}}
    assert found(described, after, before) == [("spec.nodes[y]", "Invalid value: fixed")]


def test_fields_whose_names_are_no_names_are_written_otherwise():
    properties = {"a-b.c/d": TEXT, "namespace": TEXT, "two__": TEXT}
    rule = "self.a__dash__b__dot__c__slash__d == 'x' && self.__namespace__ == 'y' && has(self.two__underscores__)"
    assert found(spec(properties, rule), {"a-b.c/d": "x", "namespace": "y", "two__": ""}) == []


def test_a_field_of_two_types_is_looked_at_when_it_is_there():
    described = spec({"size": {"x-kubernetes-int-or-string": True}}, "type(self.size) == int ? self.size > 0 : true")
    assert found(described, {"size": "8Mi"}) == []
    assert len(found(described, {"size": 0})) == 1


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("self.absent > 1", "undefined field 'absent'"),
        ("has(self.absent)", "undefined field 'absent'"),
        ("self.name > 1", "found no matching overload for '_>_' applied to '(string, int)'"),
        ("self.kept.anything", "undefined field 'anything'"),
        ("self.name", "must evaluate to bool"),
        ("self.name ==", "Syntax error"),
        ("", "Syntax error"),
    ],
)
def test_a_rule_that_does_not_fit_its_schema_is_refused_with_its_path(rule, why):
    kept = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    (cause,) = broken_rules(spec({"name": TEXT, "kept": kept}, {"rule": rule}).raw)
    assert cause.field == f"spec.validation.openAPIV3Schema.properties[spec].{VALIDATIONS}[0].rule"
    assert "compilation failed: " in cause.message
    assert why in cause.message


def test_a_broken_message_is_refused_as_well():
    rule = {"rule": "true", "messageExpression": "self.name + 1"}
    (cause,) = broken_rules(spec({"name": TEXT}, rule).raw, "schema")
    assert cause.field == f"schema.properties[spec].{VALIDATIONS}[0].messageExpression"


def test_nothing_passes_a_schema_whose_rule_is_broken():
    assert len(rule_violations(spec({"name": TEXT}, "self.absent"), {"spec": {"name": "a"}}, None)) == 1
