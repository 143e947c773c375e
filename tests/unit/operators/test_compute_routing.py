"""Whether a route leads to its Compute, and where its Gateways are reached."""

import pytest

from tessera.operators.compute_routing import find_hindrance, find_parents, read_gateway

GATE = {"name": "gate"}
TAKEN = {"type": "Accepted", "status": "True", "reason": "Accepted"}
REFUSED = {"type": "Accepted", "status": "False", "reason": "NotAllowedByListeners", "message": "not from there"}
UNRESOLVED = {"type": "ResolvedRefs", "status": "False", "reason": "BackendNotFound", "message": "no such Service"}


def a_route(*parents, told=()):
    """`told` has a parentRef and its conditions each."""
    status = [{"parentRef": parent, "controllerName": "c", "conditions": conditions} for parent, conditions in told]
    metadata = {"name": "demo", "namespace": "ml", "generation": 2}
    return {"metadata": metadata, "spec": {"parentRefs": list(parents)}, "status": {"parents": status}}


def hindrance_of(*told):
    route = a_route(GATE, told=told)
    (parent,) = find_parents(route)
    trouble = find_hindrance(route, parent)
    return trouble.reason if trouble else None


def test_a_route_leads_nowhere_until_its_gateway_has_taken_it():
    assert hindrance_of() == "RoutePending"
    assert hindrance_of(({"name": "other"}, [TAKEN])) == "RoutePending"
    assert hindrance_of((GATE, [])) == "RoutePending"
    assert hindrance_of((GATE, [TAKEN])) is None


def test_why_a_route_is_not_taken_is_told_in_the_gateways_words():
    route = a_route(GATE, told=[(GATE, [REFUSED])])
    trouble = find_hindrance(route, find_parents(route)[0])
    assert trouble is not None
    assert trouble.reason == "RouteNotAccepted"
    assert "Gateway ml/gate does not take the GRPCRoute: NotAllowedByListeners: not from there" in trouble.message
    assert hindrance_of((GATE, [TAKEN, UNRESOLVED])) == "RouteNotResolved"


def test_what_was_said_of_an_earlier_route_does_not_count():
    assert hindrance_of((GATE, [TAKEN | {"observedGeneration": 1}])) == "RoutePending"
    assert hindrance_of((GATE, [TAKEN | {"observedGeneration": 2}])) is None


def test_of_several_who_speak_for_a_gateway_one_that_takes_it_is_enough():
    assert hindrance_of((GATE, [REFUSED]), (GATE, [TAKEN])) is None


def test_a_parent_is_the_same_however_much_of_it_is_spelt_out():
    spelt = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": "ml", "name": "gate"}
    assert hindrance_of((spelt, [TAKEN])) is None
    assert hindrance_of((spelt | {"sectionName": "tls"}, [TAKEN])) == "RoutePending"


LISTENERS = [
    {"name": "plain", "port": 80, "protocol": "HTTP"},
    {"name": "tls", "port": 443, "protocol": "HTTPS"},
    {"name": "names", "port": 53, "protocol": "UDP"},
    {"name": "again", "port": 80, "protocol": "HTTP"},
]
ADDRESSES = [
    {"value": "1.2.3.4"},
    {"type": "Hostname", "value": "gate.example"},
    {"type": "NamedAddress", "value": "x"},
]


@pytest.mark.parametrize(
    ("parent", "ports"),
    [(GATE, [80, 443]), (GATE | {"sectionName": "tls"}, [443]), (GATE | {"port": 80}, [80]), (GATE | {"port": 53}, [])],
    ids=["all of it", "a section", "a port", "a port that is not for HTTP"],
)
def test_a_gateway_is_reached_by_the_ports_that_the_route_hangs_on(parent, ports):
    gateway = {"spec": {"listeners": LISTENERS}, "status": {"addresses": ADDRESSES}}
    read = read_gateway(gateway, find_parents(a_route(parent)))
    assert [(one.value, one.port) for one in read] == [
        (value, port) for value in ("1.2.3.4", "gate.example") for port in ports
    ]


def test_a_route_may_hang_on_what_is_no_gateway():
    parents = find_parents(a_route(GATE, {"name": "other", "namespace": "edge"}, {"name": "mesh", "kind": "Service"}))
    assert [str(one.key) for one in parents if one.is_gateway] == ["ml/gate", "edge/other"]
