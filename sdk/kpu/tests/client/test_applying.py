"""Making a Compute: one apply, bounded in time, whose refusal is raised where the Compute is made."""

import asyncio
import json
import socket
import threading

import pytest
from kubernetes.client import ApiException

from kpu.client import Compute, ReadyTimeout, compute


def is_apply(request):
    return request.method == "PATCH"


def test_a_compute_is_applied_by_our_manager_and_by_force(server):
    made = Compute("worker", image="a")
    (request,) = server.requests
    assert (request.method, request.path) == (
        "PATCH",
        "/apis/compute.kpu.dev/v1alpha1/namespaces/lab/computes/worker",
    )
    assert request.query == {"fieldManager": "kpu-python-client", "force": "true"}
    assert request.headers["content-type"] == "application/apply-patch+yaml"
    assert request.body["spec"] == {"image": "a", "suspend": False}
    assert made.resource
    assert made.resource.spec.image == "a"


@pytest.mark.parametrize("status", [400, 401, 403, 409, 422])
def test_what_the_server_refuses_is_raised_where_the_compute_is_made_and_not_repeated(server, status):
    server.refuse("PATCH", status, "computes is forbidden: User cannot patch")
    with pytest.raises(ApiException) as refused:
        Compute("worker")
    assert refused.value.status == status
    assert json.loads(refused.value.body or "")["message"] == "computes is forbidden: User cannot patch"
    assert "User cannot patch" in str(refused.value)
    assert len(server.requests) == 1


def test_it_is_raised_within_a_running_event_loop_too(server):
    async def main() -> None:
        server.refuse("PATCH", 403, "no")
        with pytest.raises(ApiException) as refused:
            Compute("worker")
        assert refused.value.status == 403

    asyncio.run(main())


@pytest.mark.parametrize("content", [b"404 page not found\n", b'{"kind": "Status", "code": 404, "details": {}}'])
def test_a_server_that_does_not_know_the_kind_has_no_operator(server, content):
    server.misbehave(is_apply, status=404, content=content)
    with pytest.raises(ApiException, match="the KPU operator is not installed there") as refused:
        Compute("worker")
    assert refused.value.status == 404


def test_a_namespace_that_is_missing_is_not_mistaken_for_a_missing_operator(server):
    server.refuse("PATCH", 404, 'namespaces "lab" not found')
    with pytest.raises(ApiException, match=r"namespaces .* not found") as refused:
        Compute("worker")
    assert "operator" not in str(refused.value)


def test_a_server_that_is_busy_for_a_moment_is_asked_again(server):
    server.refuse("PATCH", 503, "later", times=2)
    assert Compute("worker").resource
    assert len(server.requests) == 3


def test_a_server_that_stays_busy_is_given_up_after_a_few_attempts(server):
    server.refuse("PATCH", 503, "later", times=100)
    with pytest.raises(ApiException) as refused:
        Compute("worker")
    assert refused.value.status == 503
    assert len(server.requests) == 3


def test_a_server_that_is_not_there_is_told_in_one_sentence(fresh, configuration_for):
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        url = f"http://127.0.0.1:{reserved.getsockname()[1]}"
    fresh(client_config=configuration_for(url))
    with pytest.raises(ApiException) as refused:
        Compute("worker")
    assert refused.value.status == 0
    assert str(refused.value.reason).startswith(f"{url} does not answer as an API server does: ")


def test_a_page_of_something_else_is_not_taken_for_an_answer(server):
    server.misbehave(is_apply, content=b"<html>Please log in</html>")
    with pytest.raises(ApiException, match="does not answer as an API server does"):
        Compute("worker")


def test_a_slow_server_does_not_hold_up_the_event_loop_and_its_refusal_comes_with_the_next_call(server, monkeypatch):
    monkeypatch.setattr(compute, "BLOCKED_S", 0.05)
    released = threading.Event()
    content = json.dumps({"message": "no", "details": {}}).encode()
    server.misbehave(is_apply, status=403, content=content, held=released)

    async def main() -> None:
        made = Compute("worker")
        assert made.resource is None
        waiting = asyncio.ensure_future(made.ready())
        await asyncio.sleep(0)
        released.set()
        with pytest.raises(ApiException) as refused:
            await waiting
        assert refused.value.status == 403

    asyncio.run(main())


def test_who_waits_for_a_slow_apply_waits_no_longer_than_asked(server, monkeypatch):
    monkeypatch.setattr(compute, "BLOCKED_S", 0.05)
    released = threading.Event()
    server.misbehave(is_apply, held=released)

    async def main() -> None:
        made = Compute("worker")
        with pytest.raises(ReadyTimeout, match=r"within 0\.1 s: the API server has not answered its apply yet"):
            await made.ready(timeout=0.1)

    asyncio.run(main())
    released.set()


def test_a_slow_apply_is_finished_beside_the_loop(server, monkeypatch, says, here):
    monkeypatch.setattr(compute, "BLOCKED_S", 0.05)
    released = threading.Event()
    server.misbehave(is_apply, held=released)

    async def main() -> None:
        made = Compute("worker", **here)
        waiting = asyncio.ensure_future(made.ready())
        await asyncio.sleep(0)
        released.set()
        await asyncio.to_thread(server.wait_for, lambda request: request.is_watch)
        server.set_conditions(says("Ready", "True", "StatefulSetReady"))
        await waiting
        assert made.resource

    asyncio.run(main())
