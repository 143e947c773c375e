"""Where the API server serves a kind, and what is refused before it is asked."""

import msgspec
import pytest

from tessera.errors import InvalidTarget, UnreadableReply
from tessera.kube.kinds import CONFIG_MAPS, DEPLOYMENTS, LEASES, NODES, PODS, Kind, Selection


@pytest.mark.parametrize(
    ("kind", "namespace", "path"),
    [
        (PODS, "", "/api/v1/pods"),
        (PODS, "team", "/api/v1/namespaces/team/pods"),
        (NODES, "", "/api/v1/nodes"),
        (LEASES, "team", "/apis/coordination.k8s.io/v1/namespaces/team/leases"),
    ],
)
def test_a_collection_has_its_place(kind: Kind[object], namespace: str, path: str) -> None:
    assert kind.collection_path(namespace) == path


def test_a_subresource_is_below_its_object() -> None:
    path = DEPLOYMENTS.object_path("web", "team", "scale")

    assert path == "/apis/apps/v1/namespaces/team/deployments/web/scale"


def test_a_name_cannot_leave_its_place_in_the_path() -> None:
    assert CONFIG_MAPS.object_path("../../x?y", "n") == "/api/v1/namespaces/n/configmaps/..%2F..%2Fx%3Fy"


@pytest.mark.parametrize(
    ("kind", "name", "namespace", "complaint"),
    [
        (PODS, "web", "", "pods web: namespace is empty"),
        (PODS, "", "team", "pods: name is empty"),
        (NODES, "gpu-1", "team", 'nodes: namespace is "team", expected none'),
    ],
)
def test_an_object_that_cannot_be_meant_is_refused(
    kind: Kind[object], name: str, namespace: str, complaint: str
) -> None:
    with pytest.raises(InvalidTarget, match=complaint):
        kind.object_path(name, namespace)


class Node(msgspec.Struct):
    kind: str


def test_a_derived_kind_decodes_into_the_struct_of_its_caller() -> None:
    kind = NODES.decoded_as(Node)

    assert kind.decode(b'{"kind":"Node","spec":{}}', "nodes a") == Node("Node")
    assert kind.object_path("a") == NODES.object_path("a")


def test_an_answer_that_does_not_fit_is_unreadable_and_says_where() -> None:
    with pytest.raises(UnreadableReply, match="nodes a: cannot be read as Node"):
        NODES.decoded_as(Node).decode(b'{"kind":1}', "nodes a")


def test_a_selection_says_only_what_it_selects() -> None:
    assert Selection().params() == {}
    assert Selection(labels="app=web", fields="a=b").params() == {"labelSelector": "app=web", "fieldSelector": "a=b"}
