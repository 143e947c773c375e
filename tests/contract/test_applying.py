"""Server-side apply: every field has its owners, and nobody takes one by accident."""

import pytest

from tests.contract.api import APPLY_PATCH, MERGE_PATCH
from tests.contract.custom_resources import ANYTHING
from tests.contract.objects import config_map, deployment
from tests.contract.refusals import refused

pytestmark = pytest.mark.contract(area="Server-side apply", needed_by="operators, Compute")


def owned_fields(answer, manager, operation="Apply"):
    entries = answer["metadata"]["managedFields"]
    fields = {(entry["manager"], entry["operation"]): entry["fieldsV1"] for entry in entries}
    return fields.get((manager, operation), {})


def web_with(container):
    """A Deployment as somebody applies it who cares for one container."""
    wanted = deployment("web", replicas=0)
    wanted["spec"]["template"]["spec"]["containers"] = [{"name": "main", "image": "registry.invalid/none"} | container]
    return wanted


@pytest.mark.contract(promise="An apply of something absent creates it, with 201")
def test_an_apply_creates(api, config_maps):
    query = {"fieldManager": "alice"}
    headers = {"Content-Type": APPLY_PATCH}
    path = f"{config_maps.path}/settings"
    created = api.send("PATCH", path, config_map("settings"), query=query, headers=headers)
    again = api.send("PATCH", path, config_map("settings"), query=query, headers=headers)
    assert (created.status, again.status) == (201, 200)
    assert again.body["metadata"]["resourceVersion"] == created.body["metadata"]["resourceVersion"]


@pytest.mark.contract(promise="managedFields tells who owns which field, by which operation")
def test_the_applied_fields_are_owned(config_maps):
    applied = config_maps.apply("settings", config_map("settings"), manager="alice")
    entry = applied["metadata"]["managedFields"][0]
    assert (entry["manager"], entry["operation"], entry["apiVersion"]) == ("alice", "Apply", "v1")
    assert (entry["fieldsType"], entry["fieldsV1"]) == ("FieldsV1", {"f:data": {"f:colour": {}}})
    assert entry["time"]


@pytest.mark.contract(promise="A conflict is 409 and names every field and its owner")
def test_a_field_of_somebody_else_is_a_conflict(config_maps):
    config_maps.apply("settings", config_map("settings"), manager="alice")
    with refused(409, "Conflict") as refusal:
        config_maps.apply("settings", config_map("settings", {"colour": "blue"}), manager="bob")
    assert refusal.value.message == 'Apply failed with 1 conflict: conflict with "alice": .data.colour'
    assert refusal.value.causes == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "alice"', "field": ".data.colour"}
    ]


@pytest.mark.contract(promise="force takes the field over, and its owner loses it")
def test_force_takes_a_field_over(config_maps):
    config_maps.apply("settings", config_map("settings"), manager="alice")
    taken = config_maps.apply("settings", config_map("settings", {"colour": "blue"}), manager="bob", force=True)
    assert taken["data"] == {"colour": "blue"}
    assert owned_fields(taken, "bob") == {"f:data": {"f:colour": {}}}
    assert owned_fields(taken, "alice") == {}


@pytest.mark.contract(promise="Two who apply the same value share the field")
def test_two_who_agree_share_a_field(config_maps):
    config_maps.apply("settings", config_map("settings"), manager="alice")
    shared = config_maps.apply("settings", config_map("settings"), manager="bob")
    assert owned_fields(shared, "alice") == owned_fields(shared, "bob") == {"f:data": {"f:colour": {}}}


@pytest.mark.contract(promise="A field that its only owner leaves out goes; one that is shared stays")
def test_a_field_goes_with_its_last_owner(config_maps):
    both = config_map("settings", {"colour": "red", "shape": "round"})
    config_maps.apply("settings", both, manager="alice")
    config_maps.apply("settings", config_map("settings", {"colour": "red"}), manager="bob")
    left = config_maps.apply("settings", config_map("settings", {}), manager="alice")
    assert left["data"] == {"colour": "red"}


@pytest.mark.contract(
    promise="Whoever writes otherwise owns what was changed, as an Update, and an apply conflicts with it"
)
def test_an_update_owns_what_it_changes(config_maps):
    config_maps.apply("settings", config_map("settings"), manager="alice")
    patched = config_maps.patch("settings", MERGE_PATCH, {"data": {"colour": "blue"}}, fieldManager="editor")
    assert owned_fields(patched, "editor", "Update") == {"f:data": {"f:colour": {}}}
    with refused(409, "Conflict") as refusal:
        config_maps.apply("settings", config_map("settings"), manager="alice")
    assert 'conflict with "editor" using v1' in refusal.value.causes[0]["message"]


@pytest.mark.contract(promise="Fields that an apply does not mention are left alone", needed_by="operators, Compute")
def test_what_is_not_applied_is_preserved(config_maps):
    config_maps.create(config_map("settings", {"shape": "round"}, labels={"team": "ml"}))
    applied = config_maps.apply("settings", config_map("settings", {"colour": "red"}), manager="alice")
    assert applied["data"] == {"shape": "round", "colour": "red"}
    assert applied["metadata"]["labels"] == {"team": "ml"}


@pytest.mark.contract(promise="Containers, env and ports have their keys: each element has its own owner")
def test_elements_of_a_keyed_list_are_owned_one_by_one(deployments):
    deployments.apply("web", web_with({"env": [{"name": "A", "value": "1"}]}), manager="alice")
    port = {"containerPort": 80, "protocol": "TCP"}
    applied = deployments.apply("web", web_with({"env": [{"name": "B", "value": "2"}], "ports": [port]}), manager="bob")
    container = applied["spec"]["template"]["spec"]["containers"][0]
    assert [entry["name"] for entry in container["env"]] == ["A", "B"]
    pods = owned_fields(applied, "bob")["f:spec"]["f:template"]["f:spec"]
    owned = pods["f:containers"]['k:{"name":"main"}']
    assert set(owned["f:env"]) == {'k:{"name":"B"}'}
    assert set(owned["f:ports"]) == {'k:{"containerPort":80,"protocol":"TCP"}'}


@pytest.mark.contract(promise="An element that its only owner leaves out goes from the list")
def test_an_element_goes_with_its_last_owner(deployments):
    both = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    deployments.apply("web", web_with({"env": both}), manager="alice")
    applied = deployments.apply("web", web_with({"env": both[1:]}), manager="alice")
    assert applied["spec"]["template"]["spec"]["containers"][0]["env"] == both[1:]


LISTS = {
    "spec": {
        "type": "object",
        "properties": {
            "keyed": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {"name": {"type": "string"}, "size": {"type": "integer"}},
                },
            },
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "whole": {"type": "array", "items": {"type": "string"}},
        },
    }
}


@pytest.mark.contract(promise="Lists of a custom resource are merged as its schema says: map by keys, set by value")
def test_lists_of_a_custom_resource_are_merged_by_their_type(serve):
    widgets = serve(schema=LISTS)
    first = {"keyed": [{"name": "a", "size": 1}], "tags": ["x"]}
    second = {"keyed": [{"name": "b", "size": 2}], "tags": ["y"]}
    widgets.apply("w", widgets.widget("w", first), manager="alice")
    merged = widgets.apply("w", widgets.widget("w", second), manager="bob")
    assert merged["spec"] == {"keyed": first["keyed"] + second["keyed"], "tags": ["x", "y"]}


@pytest.mark.contract(promise="A list without a type is atomic: it has one owner as a whole")
def test_an_atomic_list_has_one_owner(serve):
    widgets = serve(schema=LISTS)
    widgets.apply("w", widgets.widget("w", {"whole": ["a"]}), manager="alice")
    with refused(409, "Conflict") as refusal:
        widgets.apply("w", widgets.widget("w", {"whole": ["b"]}), manager="bob")
    assert refusal.value.causes[0]["field"] == ".spec.whole"


@pytest.mark.contract(promise="Two elements of one key are refused", needed_by="operators")
def test_a_key_appears_once_in_a_list(serve):
    widgets = serve(schema=LISTS)
    with refused(422, "Invalid") as refusal:
        widgets.create(widgets.widget("w", {"keyed": [{"name": "a"}, {"name": "a"}]}))
    assert refusal.value.causes[0]["reason"] == "FieldValueDuplicate"


@pytest.mark.contract(promise="Status is applied and owned apart from the rest")
def test_status_is_applied_apart(serve):
    widgets = serve(schema={"spec": ANYTHING, "status": ANYTHING}, subresources={"status": {}})
    widgets.apply("w", widgets.widget("w", {"size": 1}), manager="client")
    applied = widgets.apply("w/status", widgets.widget("w") | {"status": {"phase": "Bound"}}, manager="operator")
    assert (applied["spec"], applied["status"]) == ({"size": 1}, {"phase": "Bound"})
    entries = {entry["manager"]: entry.get("subresource") for entry in applied["metadata"]["managedFields"]}
    assert entries == {"client": None, "operator": "status"}


@pytest.mark.contract(promise="An apply needs a field manager, and none of its own managedFields")
def test_an_apply_says_who_it_is(config_maps):
    with refused(422, "Invalid") as refusal:
        config_maps.patch("settings", APPLY_PATCH, config_map("settings"))
    assert refusal.value.causes[0]["field"] == "fieldManager"
    read = config_maps.create(config_map("settings"))
    with refused(400, "BadRequest") as refusal:
        config_maps.apply(
            "settings", config_map("settings", managedFields=read["metadata"]["managedFields"]), manager="a"
        )
    assert refusal.value.message == "metadata.managedFields must be nil"


@pytest.mark.contract(promise="An apply that carries an old resourceVersion is 409")
def test_an_apply_can_be_held_to_a_version(config_maps):
    read = config_maps.create(config_map("settings"))
    config_maps.patch("settings", MERGE_PATCH, {"data": {"shape": "round"}})
    stale = config_map("settings", {"size": "s"}, resourceVersion=read["metadata"]["resourceVersion"])
    with refused(409, "Conflict"):
        config_maps.apply("settings", stale, manager="alice")


@pytest.mark.contract(promise="An apply that carries the uid of an object that is gone is 409, and makes no other")
def test_an_apply_can_be_held_to_an_object(config_maps):
    read = config_maps.create(config_map("settings"))
    config_maps.delete("settings")
    with refused(409, "Conflict"):
        config_maps.apply("settings", config_map("settings", uid=read["metadata"]["uid"]), manager="alice")
    with refused(404, "NotFound"):
        config_maps.get("settings")
