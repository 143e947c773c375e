"""Where a Compute can be reached: addresses that it tells, and whether a server of ours answers there."""

import socket
from dataclasses import replace

import pytest

from kpu.client import KpuV1alpha1Compute
from kpu.client.channels import is_near
from kpu.client.endpoints import Endpoint, candidates, first_that_answers, is_in_cluster

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


@pytest.fixture
def serve(answering):
    def start(answer: bytes):
        health, port = answering(answer)
        return health, Endpoint("127.0.0.1", port, NAME)

    return start


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


@pytest.mark.parametrize(
    ("own", "url", "is_so"),
    [
        ("10.96.0.1", "https://10.96.0.1:443", True),
        ("fd00::1", "https://[fd00::1]:443", True),
        ("10.96.0.1", "https://kubernetes.default.svc", True),
        ("10.96.0.1", "https://other.example:6443", False),
        ("", "https://10.96.0.1:443", False),
    ],
)
def test_a_pod_that_talks_to_another_cluster_is_outside_of_that(own, url, is_so, monkeypatch):
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", own)
    assert is_in_cluster(url) is is_so


def test_a_server_of_something_else_is_not_ours():
    """It takes connections and says nothing that we understand: no token may go there."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        stranger = Endpoint("127.0.0.1", silent.getsockname()[1], NAME)
        found, why = first_that_answers([stranger], [], None, within_s=0.2)
    assert found is None
    assert stranger in why


def test_a_grpc_server_without_health_checks_is_only_taken_where_the_user_named_it(serve):
    _, old = serve(b"")
    chosen = replace(old, is_chosen=True)
    assert first_that_answers([old], [], None)[0] is None
    assert first_that_answers([chosen], [], None)[0] == chosen


def test_a_proxy_for_the_internet_is_not_asked_for_what_is_near(serve, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{reserved.getsockname()[1]}")
    monkeypatch.delenv("no_proxy", raising=False)
    _, serving = serve(b"\x08\x01")
    assert first_that_answers([serving], [], None) == (serving, {})


@pytest.mark.parametrize(
    ("host", "near"),
    [
        ("localhost", True),
        ("127.3.0.1", True),
        ("10.0.0.1", True),
        ("fd00::1", True),
        ("[::1]", True),
        (NAME, True),
        ("8.8.8.8", False),
        ("gpu.example.com", False),
    ],
)
def test_what_has_a_meaning_in_one_network_only_is_near(host, near):
    assert is_near(host) is near
