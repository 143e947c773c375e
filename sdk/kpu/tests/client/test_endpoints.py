"""Where a Compute can be reached: addresses that it tells, and whether a server of ours answers there."""

import socket
from collections.abc import Iterator
from concurrent import futures

import grpc
import pytest

from kpu.client import KpuV1alpha1Compute
from kpu.client.endpoints import Endpoint, candidates, first_that_answers

NAME = "worker.lab.svc.cluster.local"


def compute_at(*addresses) -> KpuV1alpha1Compute:
    return KpuV1alpha1Compute.from_dict(
        {"metadata": {"name": "worker", "namespace": "lab"}, "status": {"addresses": [*addresses]}}
    )


def test_told_addresses_come_before_the_name_that_dns_has():
    told = compute_at(
        {"type": "IPAddress", "value": "10.0.0.1", "port": 6000}, {"type": "IPAddress", "value": "fd00::1"}
    )
    assert [one.target for one in candidates(told, 50051)] == ["10.0.0.1:6000", "[fd00::1]:50051", f"{NAME}:50051"]


def test_the_name_is_not_tried_twice():
    told = compute_at({"type": "Hostname", "value": NAME, "port": 6000})
    assert [one.target for one in candidates(told, 50051)] == [f"{NAME}:6000"]


def test_a_compute_without_status_has_its_name():
    young = KpuV1alpha1Compute.from_dict({"metadata": {"name": "worker", "namespace": "lab"}})
    assert [one.target for one in candidates(young, 50051)] == [f"{NAME}:50051"]


class Health(grpc.GenericRpcHandler):
    """`answer` to a health check, or none where the server has no such service."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.metadata = dict[str, str | bytes]()

    def service(self, handler_call_details):
        self.metadata = dict(handler_call_details.invocation_metadata)
        if not self.answer or handler_call_details.method != "/grpc.health.v1.Health/Check":
            return None
        return grpc.unary_unary_rpc_method_handler(lambda _request, _context: self.answer)


@pytest.fixture
def serve() -> Iterator:
    servers = []

    def start(answer: bytes) -> tuple[Health, Endpoint]:
        health = Health(answer)
        server = grpc.server(futures.ThreadPoolExecutor(2))
        server.add_generic_rpc_handlers([health])
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        servers.append(server)
        return health, Endpoint("127.0.0.1", port, NAME)

    yield start
    for server in servers:
        server.stop(0).wait()


def test_the_first_that_serves_is_chosen(serve):
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        nobody = Endpoint("127.0.0.1", reserved.getsockname()[1], NAME)
    _, stopping = serve(b"\x08\x02")
    health, serving = serve(b"\x08\x01")
    found, why = first_that_answers([nobody, stopping, serving], [("compute-id", "lab/worker")], None)
    assert found == serving
    assert why[nobody].startswith("UNAVAILABLE: ")
    assert why[stopping] == "the server says that it is not serving"
    assert health.metadata["compute-id"] == "lab/worker"


def test_a_server_of_something_else_is_not_ours():
    """It takes connections and says nothing that we understand: no token may go there."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        stranger = Endpoint("127.0.0.1", silent.getsockname()[1], NAME)
        found, why = first_that_answers([stranger], [], None, within_s=0.2)
    assert found is None
    assert stranger in why


def test_a_grpc_server_without_health_checks_is_taken_as_it_is(serve):
    _, old = serve(b"")
    assert first_that_answers([old], [], None)[0] == old
