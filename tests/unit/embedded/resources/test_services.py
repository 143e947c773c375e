"""Services and the endpoints behind them."""

import pytest

from tessera.embedded.resources.services import give_address, needs_address
from tests.unit.embedded.resources.making import complaints, created, refusals, served, updated

SERVICES = served("services")
SLICES = served("endpointslices", "discovery.k8s.io")


def service(**spec):
    return {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]} | spec}


def test_a_service_is_completed_and_waits_for_its_address():
    made = created(SERVICES, service())
    assert made["spec"]["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    assert (made["spec"]["type"], made["spec"]["sessionAffinity"]) == ("ClusterIP", "None")
    assert made["status"] == {"loadBalancer": {}}
    assert needs_address(made)
    given = give_address(made, "10.0.0.7")["spec"]
    assert (given["clusterIP"], given["clusterIPs"]) == ("10.0.0.7", ["10.0.0.7"])
    assert not needs_address(made)


def test_a_headless_service_needs_neither_address_nor_ports():
    made = created(SERVICES, service(clusterIP="None", ports=None))
    assert not needs_address(made)
    assert made["spec"]["clusterIPs"] == ["None"]


def test_a_name_for_something_outside_has_no_address():
    made = created(SERVICES, service(type="ExternalName", externalName="a.example", clusterIP=""))
    assert not needs_address(made)
    assert "ipFamilies" not in made["spec"]


def test_a_port_on_nodes_keeps_its_number_when_it_is_not_mentioned():
    made = created(SERVICES, service(type="NodePort", ports=[{"port": 80, "nodePort": 30123}]))
    again = updated(SERVICES, made, spec=service(type="NodePort")["spec"])
    assert again["spec"]["ports"][0]["nodePort"] == 30123


def test_an_address_stays_when_it_is_not_mentioned():
    made = give_address(created(SERVICES, service()), "10.0.0.7")
    assert updated(SERVICES, made, spec=service()["spec"])["spec"]["clusterIP"] == "10.0.0.7"


def test_an_address_does_not_change():
    made = give_address(created(SERVICES, service()), "10.0.0.7")
    moved = made["spec"] | {"clusterIP": "10.0.0.8", "clusterIPs": ["10.0.0.8"]}
    told = refusals(SERVICES, made, spec=moved)
    assert told == {"spec.clusterIPs[0]": 'Invalid value: ["10.0.0.8"]: may not change once set'}


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        ({"ports": []}, "spec.ports", "Required value"),
        ({"ports": [{"port": 80}, {"port": 81}]}, "spec.ports[0].name", "Required value"),
        (
            {"ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "a"}]},
            "spec.ports[1].name",
            'Duplicate value: "a"',
        ),
        (
            {"ports": [{"port": 80, "name": "a"}, {"port": 80, "name": "b"}]},
            "spec.ports[1]",
            'Duplicate value: {"protocol":"TCP","port":80}',
        ),
        (
            {"ports": [{"port": 70000}]},
            "spec.ports[0].port",
            "Invalid value: 70000: must be between 1 and 65535, inclusive",
        ),
        (
            {"clusterIP": "foo"},
            "spec.clusterIPs[0]",
            'Invalid value: "foo": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
        ),
    ],
)
def test_a_service_is_told_what_is_wrong_with_it(spec, field, message):
    assert complaints(SERVICES, service(**spec))[field] == message


def test_a_slice_of_endpoints_is_completed_and_keeps_its_type():
    made = created(
        SLICES,
        {
            "metadata": {"name": "web-1"},
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["1.2.3.4"]}],
            "ports": [{"port": 80}],
        },
    )
    assert made["endpoints"] == [{"addresses": ["1.2.3.4"], "conditions": {}}]
    assert made["ports"] == [{"name": "", "protocol": "TCP", "port": 80}]
    assert list(refusals(SLICES, made, addressType="IPv6")) == ["addressType"]
