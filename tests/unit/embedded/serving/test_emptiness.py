"""What is empty and what only looks so."""

from tessera.embedded.resources.table import PODS
from tessera.embedded.schemas import builtin_schema
from tessera.embedded.serving.emptiness import without_empty


def cleaned(pod):
    schema = builtin_schema(PODS)
    assert schema
    return without_empty(schema, pod)


def test_empty_lists_and_maps_are_left_out_at_every_depth():
    pod = {
        "metadata": {"name": "a", "labels": {}},
        "spec": {"overhead": {}, "securityContext": {"sysctls": []}, "containers": [{"name": "main", "env": []}]},
    }
    assert cleaned(pod) == {
        "metadata": {"name": "a"},
        "spec": {"securityContext": {}, "containers": [{"name": "main"}]},
    }


def test_an_empty_object_and_what_is_required_stay():
    pod = {"spec": {"containers": [], "volumes": [{"name": "scratch", "emptyDir": {}}]}}
    assert cleaned(pod) is pod
