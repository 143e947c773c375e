"""How an API server says no: the Status object, its reason and its causes."""

import pytest

from tests.contract.api import MERGE_PATCH
from tests.contract.objects import config_map, pod
from tests.contract.refusals import refused

pytestmark = pytest.mark.contract(area="Refusals", needed_by="everything")


@pytest.mark.contract(promise="What is not there is 404 NotFound, with the kind and the name in details")
def test_a_missing_object_is_named_in_the_refusal(config_maps):
    with refused(404, "NotFound") as refusal:
        config_maps.get("gone")
    assert refusal.value.message == 'configmaps "gone" not found'
    assert refusal.value.body["details"] == {"name": "gone", "kind": "configmaps"}


@pytest.mark.contract(promise="A path that no resource has is 404")
def test_an_unknown_resource_is_not_found(api, namespace):
    with refused(404):
        api.get(f"/apis/nobody.example/v1/namespaces/{namespace}/things")


@pytest.mark.contract(promise="What is already there is 409 AlreadyExists", needed_by="everything, MPIJob")
def test_a_second_object_of_the_same_name_is_refused(config_maps):
    config_maps.create(config_map("settings"))
    with refused(409, "AlreadyExists") as refusal:
        config_maps.create(config_map("settings"))
    assert refusal.value.message == 'configmaps "settings" already exists'
    assert refusal.value.body["details"] == {"name": "settings", "kind": "configmaps"}


@pytest.mark.contract(promise="What is invalid is 422 Invalid, one cause for each field with its path")
def test_every_invalid_field_is_a_cause_of_its_own(pods):
    wrong = pod("worker", spec={"restartPolicy": "Sometimes"}, container={"image": "", "name": "Main"})
    with refused(422, "Invalid") as refusal:
        pods.create(wrong)
    causes = {cause["field"]: cause["reason"] for cause in refusal.value.causes}
    assert causes["spec.containers[0].image"] == "FieldValueRequired"
    assert causes["spec.containers[0].name"] == "FieldValueInvalid"
    assert causes["spec.restartPolicy"] == "FieldValueNotSupported"
    assert refusal.value.message.startswith('Pod "worker" is invalid: [')
    assert refusal.value.body["details"]["kind"] == "Pod"


@pytest.mark.contract(promise="A name that is no DNS name is 422 on metadata.name", needed_by="everything, MPIJob")
def test_a_bad_name_is_refused(config_maps):
    with refused(422, "Invalid") as refusal:
        config_maps.create(config_map("Not_A_Name"))
    assert refusal.value.causes[0]["field"] == "metadata.name"
    assert "a lowercase RFC 1123 subdomain must consist of" in refusal.value.causes[0]["message"]


@pytest.mark.contract(
    promise="A part of an extended resource, or requests that differ from limits, are 422", needed_by="HAMi clients"
)
@pytest.mark.parametrize(
    ("resources", "complaint"),
    [
        ({"limits": {"nvidia.com/gpu": "500m"}}, "must be an integer"),
        (
            {"limits": {"nvidia.com/gpu": "2"}, "requests": {"nvidia.com/gpu": "1"}},
            "must be equal to nvidia.com/gpu limit",
        ),
    ],
    ids=["a fraction", "less than the limit"],
)
def test_an_extended_resource_is_whole_and_never_overcommitted(pods, resources, complaint):
    with refused(422, "Invalid") as refusal:
        pods.create(pod("worker", container={"resources": resources}))
    assert complaint in refusal.value.message


@pytest.mark.contract(promise="A body that does not fit the type is 400 BadRequest")
def test_a_field_of_the_wrong_type_is_a_bad_request(pods):
    with refused(400, "BadRequest") as refusal:
        pods.create(pod("worker", spec={"hostNetwork": "yes"}))
    assert "cannot unmarshal string into Go struct field" in refusal.value.message


@pytest.mark.contract(promise="A body of another kind, name or namespace than the path is 400 BadRequest")
def test_the_body_must_agree_with_the_path(config_maps):
    config_maps.create(config_map("settings"))
    with refused(400, "BadRequest"):
        config_maps.replace("settings", config_map("others"))
    with refused(400, "BadRequest"):
        config_maps.create(config_map("settings", namespace="elsewhere"))
    with refused(400, "BadRequest"):
        config_maps.create(pod("settings"))


@pytest.mark.contract(
    promise="A resourceVersion that is not the current one is 409 Conflict", needed_by="kube, operators"
)
def test_two_writers_of_one_version_get_one_conflict(config_maps):
    read = config_maps.create(config_map("settings"))
    config_maps.replace("settings", read | {"data": {"colour": "blue"}})
    with refused(409, "Conflict") as refusal:
        config_maps.replace("settings", read | {"data": {"colour": "green"}})
    assert "the object has been modified; please apply your changes to the latest version" in refusal.value.message
    assert config_maps.get("settings")["data"]["colour"] == "blue"


@pytest.mark.contract(
    promise="A patch that carries a resourceVersion is held to it as well", needed_by="kube, operators"
)
def test_a_patch_with_an_old_version_conflicts(config_maps):
    read = config_maps.create(config_map("settings"))
    version = read["metadata"]["resourceVersion"]
    config_maps.patch("settings", MERGE_PATCH, {"metadata": {"resourceVersion": version}, "data": {"colour": "blue"}})
    with refused(409, "Conflict"):
        config_maps.patch("settings", MERGE_PATCH, {"metadata": {"resourceVersion": version}, "data": {"a": "b"}})


@pytest.mark.contract(promise="A uid that is not the object's is 409 Conflict", needed_by="kube, operators")
def test_a_replacement_of_an_earlier_object_of_that_name_conflicts(config_maps):
    earlier = config_maps.create(config_map("settings"))
    config_maps.delete("settings")
    config_maps.create(config_map("settings"))
    earlier["metadata"].pop("resourceVersion")
    with refused(409, "Conflict") as refusal:
        config_maps.replace("settings", earlier)
    assert "Precondition failed: UID in precondition" in refusal.value.message


@pytest.mark.contract(promise="Fields that must not change are 422", needed_by="operators")
def test_an_immutable_field_stays(pods):
    pods.create(pod("worker"))
    with refused(422, "Invalid") as refusal:
        pods.patch("worker", MERGE_PATCH, {"spec": {"schedulerName": "another"}})
    assert "pod updates may not change fields other than" in refusal.value.message


@pytest.mark.contract(promise="With fieldValidation=Strict an unknown field is 400", needed_by="kubectl")
def test_a_strict_request_with_an_unknown_field_is_refused(pods):
    with refused(400, "BadRequest") as refusal:
        pods.create(pod("worker", spec={"colour": "red"}), fieldValidation="Strict")
    assert 'strict decoding error: unknown field "spec.colour"' in refusal.value.message


@pytest.mark.contract(
    promise="By default an unknown field is dropped with a Warning header", needed_by="kubectl, views"
)
def test_an_unknown_field_is_dropped_with_a_warning(api, pods):
    answer = api.send("POST", pods.path, pod("worker", spec={"colour": "red"}))
    assert answer.status == 201
    assert "colour" not in answer.body["spec"]
    assert answer.headers["Warning"] == '299 - "unknown field \\"spec.colour\\""'


@pytest.mark.contract(promise="A method that a resource does not have is 405 MethodNotAllowed")
def test_a_resource_refuses_methods_it_does_not_have(api):
    with refused(405, "MethodNotAllowed"):
        api.ask("DELETE", "/api/v1/namespaces")


@pytest.mark.contract(promise="A patch of an unknown media type is 415 UnsupportedMediaType", needed_by="kube")
def test_an_unknown_kind_of_patch_is_refused(config_maps):
    config_maps.create(config_map("settings"))
    with refused(415, "UnsupportedMediaType"):
        config_maps.patch("settings", "application/json", {"data": {"colour": "blue"}})


@pytest.mark.contract(
    promise="Nothing can be created in a namespace that is not there, or is going", needed_by="operators"
)
def test_a_namespace_must_be_there(api, namespace, config_maps):
    with refused(404, "NotFound") as refusal:
        api.collection("configmaps", "no-such-namespace").create(config_map("settings"))
    assert refusal.value.message == 'namespaces "no-such-namespace" not found'
    config_maps.create(config_map("kept", finalizers=["contract.example/hold"]))
    api.collection("namespaces").delete(namespace)
    with refused(403, "Forbidden") as refusal:
        config_maps.create(config_map("settings"))
    assert "because it is being terminated" in refusal.value.message
    assert refusal.value.causes[0]["reason"] == "NamespaceTerminating"
    config_maps.patch("kept", MERGE_PATCH, {"metadata": {"finalizers": None}})
