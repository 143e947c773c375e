"""Waiting for a Compute, whatever becomes of the watch."""

import asyncio
import json
import threading

import pytest

from kpu.client import Compute, ComputeDeleted, ComputeFailed, ReadyTimeout, Suspended, waiting

PODS = "/api/v1/namespaces/lab/pods"


@pytest.fixture(autouse=True)
def brisk(monkeypatch):
    monkeypatch.setattr(waiting, "PAUSE_S", 0.01)


def is_watch(request):
    return request.is_watch


def is_read(request):
    return request.method == "GET" and not request.is_watch and request.path.endswith("/computes/worker")


def run_while_watched(server, compute, act, timeout=20):
    """Wait for it; once it is watched, `act`."""

    async def main():
        ready = asyncio.ensure_future(compute.ready(timeout))
        await asyncio.to_thread(server.wait_for, is_watch)
        act()
        return await ready

    return asyncio.run(main())


def make_ready(server, says):
    return lambda: server.set_conditions(says("Ready", "True", "StatefulSetReady"), says("Stalled", "False", "Fine"))


def test_a_compute_that_is_ready_already_is_not_watched(server, compute, says):
    make_ready(server, says)()
    assert asyncio.run(compute.ready()) is compute
    assert not any(request.is_watch for request in server.requests)


def test_with_no_time_at_all_it_is_looked_at_once(server, compute, says):
    with pytest.raises(ReadyTimeout, match="the last known reason is StatefulSetNotReady"):
        asyncio.run(compute.ready(timeout=0))
    make_ready(server, says)()
    asyncio.run(compute.ready(timeout=0))


@pytest.mark.parametrize("timeout", ["soon", True, float("nan")])
def test_a_time_that_is_none_is_refused(compute, timeout):
    with pytest.raises(ValueError, match="expected seconds, such as 300, or None to wait for ever"):
        asyncio.run(compute.ready(timeout))


def test_a_change_is_seen_by_the_watch_from_the_version_that_was_read(server, compute, says):
    version = server.compute["metadata"]["resourceVersion"]
    run_while_watched(server, compute, make_ready(server, says))
    (watch,) = [request for request in server.requests if request.is_watch]
    assert watch.query["resourceVersion"] == version
    assert watch.query["allowWatchBookmarks"] == "true"
    assert watch.query["fieldSelector"] == "metadata.name=worker"
    assert int(watch.query["timeoutSeconds"]) > 0


EXPIRED = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}
BOOKMARK = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "900"}}}


@pytest.mark.parametrize(
    "how",
    [
        {"content": json.dumps(EXPIRED).encode() + b"\n"},
        {"status": 410, "content": b'{"code": 410, "details": {}}'},
        {"content": b'{"type": "MODIF'},
        {"content": b"<html>Please log in</html>\n"},
        {"content": json.dumps(BOOKMARK).encode() + b"\n"},
        {"status": 503, "content": b"overloaded"},
        {"status": 429, "content": b"slow down"},
    ],
    ids=["expired event", "expired answer", "cut", "garbled", "ended after a bookmark", "overloaded", "too many"],
)
def test_after_a_watch_that_ends_badly_the_compute_is_read_anew(server, compute, says, how):
    """The change came while nobody watched: only reading shows it."""
    held = threading.Event()
    server.misbehave(is_watch, held=held, **how)

    def act():
        make_ready(server, says)()
        held.set()

    run_while_watched(server, compute, act)
    assert len([request for request in server.requests if is_read(request)]) == 2


def test_a_watch_that_hangs_is_given_up(server, compute, says, monkeypatch):
    monkeypatch.setattr(waiting, "WATCH_S", 0)
    monkeypatch.setattr(waiting, "SILENCE_S", 0.1)
    never = threading.Event()
    server.misbehave(is_watch, held=never, content=b"{}")
    run_while_watched(server, compute, make_ready(server, says))
    never.set()


def test_where_watching_is_forbidden_the_compute_is_read_again_and_again(server, compute, says, monkeypatch):
    monkeypatch.setattr(waiting, "LOOK_S", 0.01)
    server.misbehave(is_watch, status=403, content=b'{"code": 403, "details": {}}', times=1000)
    run_while_watched(server, compute, make_ready(server, says))


def test_an_api_server_that_is_away_for_a_while_does_not_end_the_waiting(server, compute, says):
    server.misbehave(is_read, status=500, content=b"etcd is away", times=4)
    make_ready(server, says)()
    asyncio.run(compute.ready())


def test_a_ready_of_an_older_spec_does_not_count(server, compute, says, here):
    assert compute.resource
    make_ready(server, says)()
    changed = Compute("worker", image="another", **here)
    assert not changed.is_ready()
    with pytest.raises(ReadyTimeout):
        asyncio.run(changed.ready(timeout=0.2))
    run_while_watched(server, changed, make_ready(server, says))


def test_a_stalled_compute_fails_at_once_with_its_reason(server, compute, says):
    stalled = says("Stalled", "True", "ImagePullFailed", "registry.example/none: not found")
    with pytest.raises(ComputeFailed) as failed:
        run_while_watched(server, compute, lambda: server.set_conditions(stalled))
    assert (failed.value.reason, failed.value.message) == ("ImagePullFailed", "registry.example/none: not found")
    assert "Compute lab/worker cannot become ready (ImagePullFailed): registry.example/none: not found" in str(
        failed.value
    )


def test_a_timeout_tells_the_last_known_reason(server, compute, says):
    server.set_conditions(says("Ready", "False", "Unschedulable", "no card is free"), says("Stalled", "False", "Fine"))
    with pytest.raises(TimeoutError, match=r"within 0\.2 s; the last known reason is Unschedulable: no card is free"):
        asyncio.run(compute.ready(timeout=0.2))


def test_a_suspended_compute_is_not_waited_for(server, compute):
    server.change(lambda document: document["spec"].update(suspend=True))
    with pytest.raises(Suspended, match=r"Compute lab/worker is suspended: call resume\(\)"):
        asyncio.run(compute.ready())


def test_a_compute_that_is_deleted_meanwhile_is_not_waited_for(server, compute):
    with pytest.raises(ComputeDeleted, match="lab/worker has been deleted"):
        run_while_watched(server, compute, server.remove)


def test_a_compute_that_is_being_deleted_is_not_waited_for(server, compute):
    def act():
        server.change(lambda document: document["metadata"].update(deletionTimestamp="2026-01-02T03:04:05Z"))

    with pytest.raises(ComputeDeleted):
        run_while_watched(server, compute, act)


def test_what_happens_meanwhile_is_told_in_its_order(server, says, monkeypatch, here):
    monkeypatch.setattr(waiting, "LOOK_S", 1)
    told = []
    compute = Compute("worker", **here, on_event=lambda reason, message: told.append((reason, message)))
    server.set_conditions(says("Ready", "False", "Pulling", "the image is large"), says("Stalled", "False", "Fine"))
    server.change(lambda document: document["metadata"].update(creationTimestamp="2026-01-02T03:04:05Z"))
    event = {
        "metadata": {"uid": "e"},
        "involvedObject": {"name": "worker-0"},
        "reason": "Scheduled",
        "message": "to a",
        "lastTimestamp": "2026-01-02T03:04:06Z",
    }
    of_another = {**event, "involvedObject": {"name": "worker-2"}}
    of_an_earlier_one = {**event, "lastTimestamp": "2026-01-02T03:04:04Z"}
    server.objects["/api/v1/namespaces/lab/events"] = {"items": [of_another, event, of_an_earlier_one]}
    run_while_watched(server, compute, make_ready(server, says))
    assert told == [
        ("Scheduled", "to a"),
        ("Pulling", "the image is large"),
        ("Ready", "Compute lab/worker is ready"),
    ]


def test_events_that_cannot_be_had_hide_no_readiness(server, says, monkeypatch, here):
    monkeypatch.setattr(waiting, "LOOK_S", 0.1)
    told = []
    compute = Compute("worker", **here, on_event=lambda reason, _message: told.append(reason))
    make_ready(server, says)()
    held = threading.Event()
    server.misbehave(lambda request: request.path.endswith("/events"), held=held, times=100)
    asyncio.run(compute.ready(timeout=2))
    held.set()
    assert told == ["Ready"]


def test_where_the_operator_does_not_explain_itself_its_pods_are_looked_at(server, says, here):
    compute = Compute("worker", **here)
    server.set_conditions(says("Ready", "False", "StatefulSetNotReady", "StatefulSet has 0/1 ready replicas"))
    crashing = {
        "name": "server",
        "restartCount": 3,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"exitCode": 1, "reason": "Error", "message": "no such module"}},
    }
    server.objects[PODS] = {"items": [{"status": {"containerStatuses": [crashing]}}]}
    with pytest.raises(ComputeFailed, match=r"exit code 1 \(Error\): no such module") as failed:
        asyncio.run(compute.ready())
    assert failed.value.reason == "CrashLoopBackOff"


def test_who_may_not_read_pods_still_waits(server, says, here):
    compute = Compute("worker", **here)
    server.set_conditions(says("Ready", "False", "StatefulSetNotReady"))
    server.misbehave(lambda request: "/pods" in request.path, status=403, content=b'{"details": {}}', times=100)
    run_while_watched(server, compute, make_ready(server, says))


def test_a_wait_that_is_cancelled_gives_control_back_at_once(server, compute):
    async def main():
        ready = asyncio.ensure_future(compute.ready())
        await asyncio.to_thread(server.wait_for, is_watch)
        ready.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ready

    asyncio.run(main())


def test_many_computes_are_waited_for_at_once(server, compute, says):
    """More than a pool of threads for a machine of this size would have."""

    async def main():
        all_ready = asyncio.gather(*(compute.ready() for _ in range(40)))
        await asyncio.to_thread(server.wait_for, lambda _: sum(request.is_watch for request in server.requests) >= 40)
        make_ready(server, says)()
        await all_ready

    asyncio.run(main())
