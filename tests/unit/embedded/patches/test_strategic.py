"""Strategic merge patches: lists are merged as the schema says, directives say the rest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera.embedded.kinds import Kind
from tessera.embedded.patches.strategic import strategic_merge
from tessera.embedded.refusals import ApiRefusal
from tessera.embedded.schemas import Schema, builtin_schema


def schema_of(kind: str, group: str = "") -> Schema:
    schema = builtin_schema(Kind(group=group, version="v1", kind=kind, plural=f"{kind.lower()}s"))
    assert schema is not None
    return schema


POD = schema_of("Pod")
DEPLOYMENT = schema_of("Deployment", "apps")
CONFIG_MAP = schema_of("ConfigMap")


def patched_spec(live, patch):
    return strategic_merge({"spec": live}, {"spec": patch}, POD)["spec"]


def patched_env(live, patch):
    """The environment of the one container."""
    containers = patched_spec(
        {"containers": [{"name": "main", "env": live}]}, {"containers": [{"name": "main"} | patch]}
    )
    return containers["containers"][0]["env"]


def variables(*names, value="1"):
    return [{"name": name, "value": value} for name in names]


def test_elements_are_merged_by_their_key():
    live = {"containers": [{"name": "main", "image": "a"}, {"name": "side", "image": "b"}]}
    patched = patched_spec(live, {"containers": [{"name": "side", "image": "c"}]})
    assert patched["containers"] == [{"name": "main", "image": "a"}, {"name": "side", "image": "c"}]


def test_a_list_of_plain_values_that_merges_becomes_the_union():
    live = {"metadata": {"finalizers": ["a"]}}
    patched = strategic_merge(live, {"metadata": {"finalizers": ["b", "a"]}}, CONFIG_MAP)
    assert sorted(patched["metadata"]["finalizers"]) == ["a", "b"]


def test_a_list_that_does_not_merge_is_replaced():
    live = {"containers": [{"name": "main", "command": ["a", "b"]}]}
    patched = patched_spec(live, {"containers": [{"name": "main", "command": ["c"]}]})
    assert patched["containers"] == [{"name": "main", "command": ["c"]}]


def test_conditions_are_merged_by_type():
    one, two = ({"type": kind, "status": "True"} for kind in ("One", "Two"))
    patched = strategic_merge({"status": {"conditions": [one]}}, {"status": {"conditions": [two]}}, POD)
    assert {condition["type"] for condition in patched["status"]["conditions"]} == {"One", "Two"}


def test_null_deletes_and_means_nothing_in_what_is_new():
    live = {"metadata": {"labels": {"a": "1", "b": "2"}}, "data": {"c": "d"}}
    patch = {"metadata": {"labels": {"a": None}, "annotations": {"x": None, "y": "z"}}, "data": None}
    patched = strategic_merge(live, patch, CONFIG_MAP)
    assert patched == {"metadata": {"labels": {"b": "2"}, "annotations": {"y": "z"}}}


def test_one_element_is_deleted():
    assert patched_env(variables("A", "B"), {"env": [{"name": "A", "$patch": "delete"}]}) == variables("B")


def test_all_elements_are_replaced():
    assert patched_env(variables("A", "B"), {"env": [*variables("C"), {"$patch": "replace"}]}) == variables("C")


def test_an_object_is_replaced_or_emptied():
    live = {"securityContext": {"runAsUser": 1, "fsGroup": 2}}
    assert patched_spec(live, {"securityContext": {"$patch": "replace", "runAsUser": 3}}) == {
        "securityContext": {"runAsUser": 3}
    }
    assert patched_spec(live, {"securityContext": {"$patch": "delete"}}) == {"securityContext": {}}


def test_the_order_can_be_said():
    patch = {"env": variables("C"), "$setElementOrder/env": [{"name": name} for name in "CBA"]}
    assert patched_env(variables("A", "B"), patch) == variables("C", "B", "A")


def test_what_the_order_does_not_name_stays_before_what_it_stood_before():
    patch = {"env": [], "$setElementOrder/env": [{"name": "D"}, {"name": "B"}]}
    assert [entry["name"] for entry in patched_env(variables("A", "B", "C", "D"), patch)] == ["A", "C", "D", "B"]


def test_other_choices_of_a_union_give_way():
    live = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert strategic_merge(live, patch, DEPLOYMENT) == {"spec": {"strategy": {"type": "Recreate"}}}


def test_a_volume_changes_its_source():
    live = {"volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}]}
    volume = {"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "c"}}
    patched = patched_spec(live, {"volumes": [volume]})
    assert patched["volumes"][0] == {"name": "v", "configMap": {"name": "c"}}
    assert patched["volumes"][1] == {"name": "w", "emptyDir": {}}


def test_plain_values_are_deleted_from_a_list():
    live = {"metadata": {"finalizers": ["a", "b", "c"]}}
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["b"]}}
    assert strategic_merge(live, patch, CONFIG_MAP) == {"metadata": {"finalizers": ["a", "c"]}}


def test_a_selector_that_replaces_is_not_merged():
    budget = schema_of("PodDisruptionBudget", "policy")
    live = {"spec": {"selector": {"matchLabels": {"a": "1"}}}}
    patch = {"spec": {"selector": {"matchLabels": {"b": "2"}}}}
    assert strategic_merge(live, patch, budget) == patch


@pytest.mark.parametrize(
    "patch",
    [
        {"spec": {"containers": [{"image": "without a name"}]}},
        {"spec": {"containers": ["no object"]}},
        {"spec": {"securityContext": {"$patch": "upend"}}},
        {"spec": {"securityContext": {"$retainKeys": ["fsGroup"], "runAsUser": 1}}},
        {"spec": {"$setElementOrder/containers": "main"}},
    ],
)
def test_a_patch_that_means_nothing_is_a_bad_request(patch):
    live = {"spec": {"containers": [{"name": "main"}], "securityContext": {"fsGroup": 1}}}
    with pytest.raises(ApiRefusal) as refusal:
        strategic_merge(live, patch, POD)
    assert refusal.value.code == 400


def test_neither_document_nor_patch_is_changed_nor_shared():
    live = {"metadata": {"labels": {"a": "1"}}, "spec": {"nodeSelector": {"gpu": "on"}}}
    patch = {"metadata": {"annotations": {"b": "2"}}}
    patched = strategic_merge(live, patch, POD)
    patched["metadata"]["annotations"].clear()
    patched["spec"]["nodeSelector"].clear()
    assert live == {"metadata": {"labels": {"a": "1"}}, "spec": {"nodeSelector": {"gpu": "on"}}}
    assert patch == {"metadata": {"annotations": {"b": "2"}}}


environments = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("ABCDE")}, optional={"value": st.sampled_from("12")}),
    unique_by=lambda entry: entry["name"],
    min_size=1,
)


def difference(live, target):
    """A patch as kubectl writes it: what is new or other, what goes, and the order."""
    before = {entry["name"]: entry for entry in live}
    after = {entry["name"]: entry for entry in target}
    gone = [{"name": name, "$patch": "delete"} for name in before if name not in after]
    changed = [
        {**dict.fromkeys(before.get(name, {})), **entry} for name, entry in after.items() if before.get(name) != entry
    ]
    return {"env": [*changed, *gone], "$setElementOrder/env": [{"name": name} for name in after]}


@given(live=environments, target=environments)
def test_the_difference_of_two_lists_makes_one_of_the_other(live, target):
    assert patched_env(live, difference(live, target)) == target


@given(live=environments, target=environments)
def test_without_an_order_the_elements_are_those_of_both(live, target):
    names = [entry["name"] for entry in patched_env(live, {"env": target})]
    assert set(names) == {entry["name"] for entry in [*live, *target]}
    assert len(names) == len(set(names))
