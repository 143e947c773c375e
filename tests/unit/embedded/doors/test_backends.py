"""Who stands behind a Service, and what it is called."""

import msgspec

from tessera.embedded.controllers.objects import EndpointSlice, Service
from tessera.embedded.doors.backends import Backend, Front, Name, backends_of, fronts_of, hosts_entry, names_of


def service(address="127.128.0.9", *ports, **spec):
    ports = ports or ({"name": "web", "port": 80},)
    metadata = {"name": "web", "namespace": "blue"}
    document = {"metadata": metadata, "spec": {"clusterIP": address, "ports": list(ports), **spec}}
    return msgspec.convert(document, Service)


def slice_of(*endpoints, ports=(("web", 8080),)):
    told = [{"name": name, "port": port} for name, port in ports]
    document = {"metadata": {"name": "web-1"}, "ports": told, "endpoints": list(endpoints)}
    return msgspec.convert(document, EndpointSlice)


def endpoint(address, ready=True, **more):
    return {"addresses": [address], "conditions": {"ready": ready}, **more}


def test_only_ready_pods_with_the_named_port_stand_behind_a_service():
    slices = [
        slice_of(endpoint("127.64.0.1"), endpoint("127.64.0.2", ready=False)),
        slice_of({"addresses": ["127.64.0.3"]}, endpoint("127.64.0.1"), ports=[("web", 8080), ("other", 1)]),
    ]
    assert backends_of(slices, "web") == [Backend("127.64.0.1", 8080), Backend("127.64.0.3", 8080)]
    assert backends_of(slices, "none") == []


def test_a_service_is_listened_for_at_each_of_its_tcp_ports():
    ports = {"port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "tls", "port": 443}
    assert fronts_of(service("127.128.0.9", *ports)) == [Front("127.128.0.9", 80, ""), Front("127.128.0.9", 443, "tls")]
    assert fronts_of(service("None")) == []


def test_a_service_has_one_name_for_its_one_address():
    assert names_of(service(), [slice_of(endpoint("127.64.0.1"))]) == [Name("127.128.0.9", "web", "blue")]
    assert names_of(service("", type="ExternalName"), []) == []


def test_a_headless_service_names_its_ready_pods():
    slices = [slice_of(endpoint("127.64.0.1", hostname="worker-0"), endpoint("127.64.0.2", ready=False))]
    assert names_of(service("None"), slices) == [
        Name("127.64.0.1", "web", "blue"),
        Name("127.64.0.1", "worker-0.web", "blue"),
    ]


def test_only_pods_of_its_namespace_may_leave_the_namespace_out():
    name = Name("127.64.0.1", "web", "blue")
    everywhere = "web.blue.svc.cluster.local web.blue.svc web.blue"
    assert hosts_entry(name, "blue") == ("127.64.0.1", f"{everywhere} web")
    assert hosts_entry(name, "red") == ("127.64.0.1", everywhere)
