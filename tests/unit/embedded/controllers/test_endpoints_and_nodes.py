from tessera.embedded.controllers import endpoints, nodes
from tessera.embedded.controllers.writes import Create, Delete, Patch
from tests.unit.embedded.controllers.making import NOW, endpoint_slice, going, node, pod, service


def made(*writes):
    return [endpoint_slice(write.body) for write in writes if isinstance(write, Create)]


def test_a_slice_that_says_all_is_left_as_it_is():
    pods = [pod("a"), pod("b", ready=False)]
    slices = made(*endpoints.plan(service(), pods, []))
    assert len(slices) == 1
    assert endpoints.plan(service(), pods, slices) == []


def test_a_pod_that_is_going_serves_and_is_not_ready():
    (one,) = made(*endpoints.plan(service(), [going("a")], []))
    assert one.endpoints is not None
    assert one.endpoints[0]["conditions"] == {"ready": False, "serving": True, "terminating": True}


def test_a_service_may_want_pods_before_they_are_ready():
    (one,) = made(*endpoints.plan(service(publishNotReadyAddresses=True), [pod("a", ready=False)], []))
    assert one.endpoints is not None
    assert one.endpoints[0]["conditions"]["ready"] is True


def test_pods_that_call_their_ports_differently_are_told_apart():
    def listening(name, number):
        port = {"name": "http", "containerPort": number}
        return pod(name, spec={"containers": [{"name": "main", "ports": [port]}]})

    named = service(ports=[{"name": "web", "port": 80, "targetPort": "http"}])
    slices = made(*endpoints.plan(named, [listening("a", 8080), listening("b", 9090)], []))
    assert sorted(one.ports[0]["port"] for one in slices if one.ports) == [8080, 9090]


def test_a_slice_that_is_no_longer_needed_goes():
    many = [pod(f"p{number:04}") for number in range(endpoints.MOST_ENDPOINTS + 1)]
    slices = made(*endpoints.plan(service(), many, []))
    assert len(slices) == 2
    writes = endpoints.plan(service(), many[:1], slices)
    assert {type(write) for write in writes} == {Patch, Delete}


def test_pods_without_an_address_or_at_their_end_are_left_out():
    (one,) = made(*endpoints.plan(service(), [pod("a", status={"podIP": ""}), pod("b", "Succeeded")], []))
    assert not one.endpoints


def taints(*keys):
    return [{"key": key, "effect": "NoSchedule"} for key in keys]


def test_a_node_is_tainted_as_its_conditions_have_it():
    assert nodes.wanted_taints(node("True", taints=taints(nodes.NOT_READY))) == []
    assert nodes.wanted_taints(node("False")) == taints(nodes.NOT_READY)
    assert nodes.wanted_taints(node(None)) == taints(nodes.NOT_READY)
    assert nodes.wanted_taints(node("Unknown", taints=taints(nodes.NOT_READY))) == taints(nodes.UNREACHABLE)
    assert nodes.wanted_taints(node("True", unschedulable=True)) == taints(nodes.UNSCHEDULABLE)


def test_taints_of_others_are_left():
    theirs = [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]
    assert nodes.wanted_taints(node("True", taints=theirs + taints(nodes.NOT_READY))) == theirs


def test_a_node_that_falls_silent_is_unknown_and_one_without_a_lease_is_believed():
    (told,) = nodes.plan(node("True"), nodes.SILENCE_S, NOW)
    assert isinstance(told, Patch)
    assert told.body["status"]["conditions"][0]["reason"] == "NodeStatusUnknown"
    assert nodes.plan(node("True"), nodes.SILENCE_S - 1, NOW) == []
    assert nodes.plan(node("True"), None, NOW) == []
