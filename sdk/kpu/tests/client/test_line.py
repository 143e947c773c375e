"""The connection of a Compute: when it is kept, when it is made anew, and what a caller is told who meets its end."""

import asyncio
import socket
import threading

import numpy as np
import pytest

from kpu.client import Compute, ReadyTimeout, ServerGone, Suspended, Unreachable
from kpu.client import compute as compute_module
from kpu.client.api import Api
from kpu.client.computes import Computes, PodPort
from kpu.client.deadlines import Deadline
from kpu.errors import NotReady, Unauthenticated

SECRET = "/api/v1/namespaces/lab/secrets/worker-token"
PODS = "/api/v1/namespaces/lab/pods"
EVENTS = "/api/v1/namespaces/lab/events"
PATIENCE_S = 10


@pytest.fixture(scope="module")
def tensor_server(serve):
    return serve()


@pytest.fixture
def ready_compute(server, compute, says):
    server.set_conditions(says("Ready", "True", "StatefulSetReady"), says("Stalled", "False", "Fine"))
    return compute


@pytest.fixture
def usable_compute(server, says, tensor_server):
    made = Compute("worker", host="127.0.0.1", port=tensor_server.port)
    server.set_conditions(says("Ready", "True", "StatefulSetReady"), says("Stalled", "False", "Fine"))
    return made


def test_a_line_that_leads_to_the_same_compute_is_kept(ready_compute):
    async def main():
        await ready_compute.ready()
        first = ready_compute._line.client
        await ready_compute.ready()
        assert ready_compute._line.client is first

    asyncio.run(main())


def another_uid(server):
    server.change(lambda document: document["metadata"].update(uid="uid-2"))


def another_token(server):
    server.objects[SECRET] = {"data": {"token": "c2VjcmV0"}}


@pytest.mark.parametrize("change", [another_uid, another_token])
def test_a_compute_that_was_made_anew_is_connected_to_anew(server, ready_compute, change):
    async def main():
        await ready_compute.ready()
        first = ready_compute._line.client
        change(server)
        await ready_compute.ready()
        assert ready_compute._line.client is not first

    asyncio.run(main())


def test_a_token_that_was_replaced_is_looked_up_again_and_the_caller_sees_nothing_of_it(server, says, serve):
    guarded = serve(KPU_TOKEN="secret")
    server.objects[SECRET] = {"data": {"token": "b2xk"}}
    compute = Compute("worker", host="127.0.0.1", port=guarded.port)
    server.set_conditions(says("Ready", "True", "StatefulSetReady"), says("Stalled", "False", "Fine"))

    async def main():
        await compute.ready()
        with pytest.raises(Unauthenticated, match="is not this server's"):
            await compute.send_tensors(np.ones(3))
        another_token(server)
        assert (await compute.send_tensors(np.ones(3))).success
        server.objects[SECRET] = {"data": {"token": "b2xk"}}
        await compute.close()
        await compute.ready()
        another_token(server)
        assert (await compute.send_tensors(np.ones(3))).success
        await compute.close()

    asyncio.run(main())


def test_a_token_that_was_removed_is_shown_until_there_is_another(server, says, serve):
    guarded = serve(KPU_TOKEN="secret")
    another_token(server)
    compute = Compute("worker", host="127.0.0.1", port=guarded.port)
    server.set_conditions(says("Ready", "True", "StatefulSetReady"), says("Stalled", "False", "Fine"))

    async def main():
        await compute.ready()
        del server.objects[SECRET]
        await compute.ready()
        assert (await compute.send_tensors(np.ones(3))).success
        await compute.close()

    asyncio.run(main())


def test_a_token_in_the_env_of_a_compute_is_shown_before_that_of_its_secret(server, says, serve):
    guarded = serve(KPU_TOKEN="mine")
    another_token(server)
    compute = Compute("worker", host="127.0.0.1", port=guarded.port, env={"KPU_TOKEN": "mine"})
    server.set_conditions(says("Ready", "True", "StatefulSetReady"), says("Stalled", "False", "Fine"))

    async def main():
        assert (await compute.send_tensors(np.ones(3))).success
        await compute.close()

    asyncio.run(main())


def test_a_token_that_only_the_pod_can_know_is_told_of_when_the_compute_is_ready(server, says, tensor_server):
    env = {"KPU_TOKEN_FILE": "/run/token"}
    compute = Compute("worker", host="127.0.0.1", port=tensor_server.port, env=env)
    server.set_conditions(says("Ready", "True", "StatefulSetReady"), says("Stalled", "False", "Fine"))
    with pytest.raises(Unauthenticated, match=r"Compute lab/worker has a token of its own, by KPU_TOKEN_FILE in env"):
        asyncio.run(compute.ready())


def test_a_given_host_that_does_not_answer_is_told_of(server, says):
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    compute = Compute("worker", host="127.0.0.1", port=port)
    server.set_conditions(says("Ready", "True", "StatefulSetReady"))
    with pytest.raises(Unreachable, match=f"127.0.0.1:{port}: UNAVAILABLE"):
        asyncio.run(compute.ready(timeout=0))


def test_a_server_that_stopped_answering_is_noticed_when_the_compute_is_waited_for_again(server, says, answering):
    health, port = answering(b"\x08\x01")
    compute = Compute("worker", host="127.0.0.1", port=port)
    server.set_conditions(says("Ready", "True", "StatefulSetReady"))

    async def main():
        await compute.ready(timeout=0)
        health.answer = b"\x08\x02"
        with pytest.raises(Unreachable, match="the server says that it is not serving"):
            await compute.ready(timeout=0)

    asyncio.run(main())


def test_a_call_that_fails_late_leaves_the_line_that_others_have_opened_since(ready_compute):
    async def main():
        line = ready_compute._line
        await ready_compute.ready()
        failed = line.client
        await line.close()
        await ready_compute.ready()
        line.drop(failed)
        assert line.client is not None

    asyncio.run(main())


class Capsule:
    """Speaks DLPack alone, and only when it is let."""

    def __init__(self, array):
        self.array, self.asked, self.let = array, threading.Event(), threading.Event()

    def __dlpack__(self, **options):
        self.asked.set()
        assert self.let.wait(PATIENCE_S)
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_a_call_that_fails_does_not_end_the_calls_of_others(usable_compute):
    async def fail(_server):
        raise ServerGone("of this call alone")

    async def main():
        capsule = Capsule(np.ones(3))
        await usable_compute.ready()
        sending = asyncio.ensure_future(usable_compute.send_tensors(capsule))
        assert await asyncio.to_thread(capsule.asked.wait, PATIENCE_S)
        with pytest.raises(ServerGone, match="of this call alone"):
            await usable_compute._use(fail)
        capsule.let.set()
        assert (await sending).success
        assert (await usable_compute.send_tensors(np.ones(3))).success
        await usable_compute.close()

    asyncio.run(main())


def test_closing_while_another_task_connects_is_no_suspension(server, usable_compute):
    held = threading.Event()
    server.misbehave(lambda request: request.path == SECRET, held=held)

    async def main():
        sending = asyncio.ensure_future(usable_compute.send_tensors(np.ones(3)))
        await asyncio.to_thread(server.wait_for, lambda request: request.path == SECRET)
        await usable_compute.close()
        held.set()
        with pytest.raises(ServerGone, match="was closed while it was being opened"):
            await sending
        assert (await usable_compute.send_tensors(np.ones(3))).success
        await usable_compute.close()

    asyncio.run(main())


def test_suspending_while_another_task_connects_is_one(server, usable_compute):
    held = threading.Event()
    server.misbehave(lambda request: request.path == SECRET, held=held)

    async def main():
        sending = asyncio.ensure_future(usable_compute.send_tensors(np.ones(3)))
        await asyncio.to_thread(server.wait_for, lambda request: request.path == SECRET)
        await usable_compute.suspend()
        held.set()
        with pytest.raises(Suspended):
            await sending

    asyncio.run(main())


def test_what_the_last_call_did_is_known_after_the_connection_was_made_anew(usable_compute):
    async def main():
        await usable_compute.send_tensors(np.ones(3))
        told = usable_compute.transfer.stats
        await usable_compute.close()
        await usable_compute.ready()
        assert usable_compute.transfer.stats is told is not None
        await usable_compute.stream_tensors(np.ones(5))
        assert usable_compute.transfer.stats.bytes == 80
        await usable_compute.close()

    asyncio.run(main())


@pytest.mark.parametrize("path", [EVENTS, PODS, SECRET])
def test_no_request_takes_longer_than_the_caller_waits(server, says, here, path):
    compute = Compute("worker", **here)
    status = "True" if path == SECRET else "False"
    server.set_conditions(says("Ready", status, "OfAnOperatorThatDoesNotExplainItself"))
    held = threading.Event()
    server.misbehave(lambda request: request.path == path, held=held, times=100)

    async def main():
        with pytest.raises(ReadyTimeout, match=r"within 0\.5 s"):
            await asyncio.wait_for(compute.ready(timeout=0.5), PATIENCE_S)

    asyncio.run(main())
    held.set()


def test_the_time_that_a_predecessor_takes_to_go_is_not_given_twice(server, compute, here, monkeypatch):
    assert compute.resource
    asked = []
    monkeypatch.setattr(compute_module, "Wait", lambda *given: asked.append(given[2]) or Gone())
    server.change(lambda document: document["metadata"].update(deletionTimestamp="2026-01-02T03:04:05Z"))
    successor = Compute("worker", **here)
    with pytest.raises(NotReady):
        asyncio.run(successor.ready(timeout=7))
    for_the_predecessor, for_itself = asked
    assert for_the_predecessor is for_itself


class Gone:
    given_up = threading.Event()

    def until_gone(self, _uid):
        return True

    def until_ready(self):
        raise NotReady("seen enough")


def test_is_ready_holds_up_a_loop_for_a_moment_at_most_and_then_says_why(server, here, monkeypatch):
    monkeypatch.setattr(compute_module, "BLOCKED_S", 0.1)
    held = threading.Event()
    server.misbehave(lambda request: request.method == "PATCH", held=held)

    async def main():
        compute = Compute("worker", **here)
        with pytest.raises(ReadyTimeout, match=r"within 0\.1 s: the API server has not answered its apply yet"):
            compute.is_ready()
        held.set()
        with pytest.raises(NotReady):
            await compute.ready(timeout=0)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("seconds", "text"), [(1200, "1200 s"), (0.25, "0.25 s"), (86400, "86400 s"), (None, "no limit")]
)
def test_a_deadline_is_told_as_the_caller_gave_it(seconds, text):
    assert str(Deadline.after(seconds)) == text


@pytest.fixture
def computes(api, configuration_for):
    return Computes(Api(configuration_for(api.url)), "lab")


def pod(name, phase, *ports):
    containers = [{"name": "sidecar"}, {"name": "server", "ports": [*ports]}]
    return {"metadata": {"name": name}, "spec": {"containers": containers}, "status": {"phase": phase}}


def test_the_pod_that_runs_is_forwarded_to_where_it_serves(api, computes):
    grpc_port = {"name": "grpc", "containerPort": 6000}
    metrics_port = {"name": "metrics", "containerPort": 9090}
    api.objects[PODS] = {"items": [pod("old", "Succeeded"), pod("worker-0", "Running", metrics_port, grpc_port)]}
    assert computes.server_of("worker", 50051) == PodPort(f"{PODS}/worker-0", 6000)
    api.objects[PODS] = {"items": [pod("worker-0", "Running", metrics_port)]}
    assert computes.server_of("worker", 50051) == PodPort(f"{PODS}/worker-0", 50051)


def test_a_pod_of_something_else_with_the_same_instance_is_not_asked_for(api, computes):
    api.objects[PODS] = {"items": []}
    with pytest.raises(Unreachable, match="Compute lab/worker has no pod that runs"):
        computes.server_of("worker", 50051)
    (request,) = api.requests
    assert request.query["labelSelector"] == (
        "app.kubernetes.io/name=kpu-torch-server,app.kubernetes.io/instance=worker"
    )


def test_who_may_not_list_pods_is_forwarded_to_the_usual_one(api, computes):
    api.misbehave(lambda _: True, status=403, content=b'{"details": {}}')
    assert computes.server_of("worker", 50051) == PodPort(f"{PODS}/worker-0", 50051)


def test_a_compute_with_a_long_name_has_a_set_and_a_pod_with_shorter_ones(api, computes):
    api.objects[EVENTS] = {"items": []}
    computes.events("w" * 53, None)
    asked = [request.query["fieldSelector"].removeprefix("involvedObject.name=") for request in api.requests]
    shortened = f"{'w' * 43}-a00c4669"
    assert asked == ["w" * 53, shortened, f"{shortened}-0"]
    api.misbehave(lambda _: True, status=403, content=b'{"details": {}}')
    assert computes.server_of("w" * 53, 50051).path == f"{PODS}/{shortened}-0"


def test_only_events_about_the_compute_and_its_pod_are_asked_for(api, computes):
    api.objects[EVENTS] = {"items": []}
    assert computes.events("worker", None) == []
    assert [request.query["fieldSelector"] for request in api.requests] == [
        "involvedObject.name=worker",
        "involvedObject.name=worker-0",
    ]
