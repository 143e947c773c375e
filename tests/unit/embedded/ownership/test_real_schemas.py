"""Owning by the schemas that the server has: those of Kubernetes' kinds, and those of definitions."""

import pytest
from hypothesis import given

from tessera.embedded.kinds import Kind
from tessera.embedded.ownership import Write, apply, note_update
from tessera.embedded.ownership.shapes import shape_of
from tessera.embedded.ownership.surveying import everything, stated
from tessera.embedded.schemas import builtin_schema, read_definition
from tests.unit.embedded.ownership.drawn import NOW, RAW, SCHEMA, owned_by
from tests.unit.embedded.ownership.generated import things

DEFINED = RAW | {"properties": {name: RAW["properties"][name] for name in ("data", "spec", "status")}}
LABELS = {"app": "web"}


@pytest.fixture(scope="module")
def deployments():
    return builtin_schema(Kind(group="apps", version="v1", kind="Deployment", plural="deployments"))


def deployment(**pod):
    container = {"name": "main", "image": "none"} | pod.pop("container", {})
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [container]} | pod}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": LABELS}, "template": template},
    }


def by(manager):
    return Write(manager, "apps/v1", NOW)


def of_pod(document, manager):
    return (owned_by(document, manager) or {})["f:spec"]["f:template"]["f:spec"]


def test_a_deployment_is_owned_as_kubernetes_owns_it(deployments):
    wanted = deployment(
        container={"ports": [{"containerPort": 80}], "args": ["a"], "resources": {"limits": {"cpu": "1"}}},
        tolerations=[{"key": "gpu"}],
        nodeSelector={"gpu": "on"},
    )
    applied = apply(None, wanted, by("alice"), deployments, force=False)
    main = {
        ".": {},
        "f:name": {},
        "f:image": {},
        "f:args": {},
        "f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}},
        "f:resources": {"f:limits": {"f:cpu": {}}},
    }
    pod = {"f:containers": {'k:{"name":"main"}': main}, "f:tolerations": {}, "f:nodeSelector": {}}
    template = {"f:metadata": {"f:labels": {"f:app": {}}}, "f:spec": pod}
    assert owned_by(applied, "alice") == {"f:spec": {"f:selector": {}, "f:template": template}}


def test_containers_and_their_env_are_shared_by_their_names(deployments):
    first = deployment(container={"env": [{"name": "A", "value": "1"}]})
    second = deployment(container={"env": [{"name": "B", "value": "2"}]})
    live = apply(None, first, by("alice"), deployments, force=False)
    both = apply(live, second, by("bob"), deployments, force=False)
    assert [entry["name"] for entry in both["spec"]["template"]["spec"]["containers"][0]["env"]] == ["A", "B"]
    assert set(of_pod(both, "bob")["f:containers"]['k:{"name":"main"}']["f:env"]) == {'k:{"name":"B"}'}


def test_who_scales_owns_the_replicas_and_nothing_else(deployments):
    live = note_update(None, deployment(), by("maker"), deployments)
    scaled = note_update(live, live | {"spec": live["spec"] | {"replicas": 3}}, by("scaler"), deployments)
    assert owned_by(scaled, "scaler", "Update") == {"f:spec": {"f:replicas": {}}}


@given(things)
def test_a_definition_divides_objects_as_the_drawn_schema_does(document):
    defined, drawn = shape_of(read_definition(DEFINED)), shape_of(SCHEMA)
    assert stated(document, defined) == stated(document, drawn)
    assert everything(document, defined) == everything(document, drawn)
