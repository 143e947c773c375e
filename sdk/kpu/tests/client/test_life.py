"""What becomes of a Compute between its making and its end."""

import asyncio
import socket
from types import MappingProxyType

import pytest
from kubernetes.client import ApiException

from kpu.client import (
    Compute,
    ComputeDeleted,
    ComputeFailed,
    InvalidCompute,
    SharedComputeWarning,
    Suspended,
    Unreachable,
    deleting,
    line,
)
from kpu.client.computes import FINALIZER, GRACE, Computes


@pytest.fixture
def ready_compute(server, compute, says):
    server.set_conditions(says("Ready", "True", "StatefulSetReady"), says("Stalled", "False", "Fine"))
    return compute


def test_suspending_and_resuming_send_the_whole_intent_again(server, here):
    made = Compute("worker", image="a", env={"A": "1"}, **here)

    async def main():
        await made.suspend()
        assert made.resource
        assert made.resource.spec.suspend is True
        await made.resume()

    asyncio.run(main())
    *_, suspended, resumed = (request.body for request in server.asked("PATCH"))
    intent = {"image": "a", "env": [{"name": "A", "value": "1"}]}
    assert suspended["spec"] == {**intent, "suspend": True}
    assert resumed["spec"] == {**intent, "suspend": False}


def test_what_the_user_does_with_its_dict_later_changes_nothing(server, here):
    env = {"A": "1"}
    made = Compute("worker", env=env, **here)
    env["B"] = "2"
    asyncio.run(made.suspend())
    assert server.asked("PATCH")[-1].body["spec"]["env"] == [{"name": "A", "value": "1"}]


def test_any_mapping_and_any_address_will_do(server, here):
    made = Compute("worker", env=MappingProxyType({"A": "1"}), host="[::1]", port=here["port"])
    assert made.resource
    assert server.asked("PATCH")[-1].body["spec"]["env"] == [{"name": "A", "value": "1"}]


def test_a_deleted_compute_is_not_brought_back_by_suspending_it(server, compute):
    server.remove()
    with pytest.raises(ComputeDeleted):
        asyncio.run(compute.suspend())
    assert server.compute is None


@pytest.mark.parametrize("act", [Compute.suspend, Compute.resume])
def test_a_compute_that_others_delete_in_that_very_moment_is_not_brought_back(server, compute, act, monkeypatch):
    look = Computes.get

    def look_and_remove(*asked):
        found = look(*asked)
        server.remove()
        return found

    monkeypatch.setattr(Computes, "get", look_and_remove)
    with pytest.raises(ComputeDeleted):
        asyncio.run(act(compute))
    assert server.compute is None


def test_a_compute_that_others_are_deleting_is_neither_changed_nor_made_anew(server, ready_compute):
    server.change(lambda document: document["metadata"].update(deletionTimestamp="2026-01-02T03:04:05Z"))
    assert not ready_compute.is_ready()
    for refused in (ready_compute.ready(), ready_compute.suspend(), ready_compute.ready()):
        with pytest.raises(ComputeDeleted):
            asyncio.run(refused)
    assert len(server.asked("PATCH")) == 1


def test_is_ready_asks_every_time(server, ready_compute, says):
    assert ready_compute.is_ready()
    server.set_conditions(says("Ready", "False", "StatefulSetNotReady"))
    assert not ready_compute.is_ready()
    assert ready_compute.resource.status.conditions[0].reason == "StatefulSetNotReady"
    server.remove()
    assert not ready_compute.is_ready()


def test_a_suspended_compute_says_so_when_it_is_used(compute):
    async def main():
        await compute.suspend()
        with pytest.raises(Suspended, match=r"is suspended: call resume\(\)"):
            await compute.send_tensors(object())

    asyncio.run(main())


def test_deleting_waits_until_the_compute_is_gone_and_what_it_owns_before_it(server, ready_compute):
    asyncio.run(ready_compute.delete())
    (request,) = server.asked("DELETE")
    assert request.body == {"propagationPolicy": "Foreground", "gracePeriodSeconds": 30}
    assert server.compute is None


def test_deleting_what_is_not_there_is_fine(server, ready_compute):
    async def main():
        await ready_compute.delete()
        await ready_compute.delete()

    asyncio.run(main())
    assert len(server.asked("DELETE")) == 1


def test_a_grace_of_its_own_is_left_to_the_operator_that_keeps_it(server, ready_compute):
    server.change(lambda document: document["metadata"].update(finalizers=["example/other"]))
    asyncio.run(ready_compute.delete(grace_period_seconds=60))
    marked = server.asked("PATCH")[-1]
    assert marked.headers["content-type"] == "application/merge-patch+json"
    assert marked.body["metadata"]["annotations"] == {GRACE: "60"}
    assert sorted(marked.body["metadata"]["finalizers"]) == [FINALIZER, "example/other"]
    assert marked.body["metadata"]["resourceVersion"]
    assert server.asked("DELETE")[0].body == {"propagationPolicy": "Background", "gracePeriodSeconds": 60}


def test_a_grace_is_marked_again_when_others_wrote_first(server, ready_compute):
    server.refuse("PATCH", 409, "the object has been modified", times=2)
    asyncio.run(ready_compute.delete(grace_period_seconds=60))
    assert server.compute is None


def test_an_operator_that_does_not_know_our_finalizer_is_given_none(server, says, here):
    compute = Compute("worker", **here)
    server.set_conditions(says("Ready", "True", "StatefulSetReady"))
    asyncio.run(compute.delete(grace_period_seconds=5))
    assert len(server.asked("PATCH")) == 1
    assert server.asked("DELETE")[0].body["gracePeriodSeconds"] == 5


@pytest.mark.parametrize("grace", [-1, 1.5, "30", None, True, 2**31])
def test_a_grace_that_is_no_number_of_seconds_is_refused(compute, grace):
    with pytest.raises(InvalidCompute, match=r"grace_period_seconds is .*, expected a whole number of seconds"):
        asyncio.run(compute.delete(grace_period_seconds=grace))


def test_a_compute_that_does_not_go_is_told_of_and_not_waited_for_any_longer(server, compute, monkeypatch, caplog):
    monkeypatch.setattr(deleting, "MARGIN_S", 0.1)
    server.misbehave(lambda request: request.method == "DELETE", content=b"{}")
    asyncio.run(compute.delete(grace_period_seconds=0))
    assert "Compute lab/worker is still being deleted" in caplog.text


def test_leaving_the_block_deletes_the_compute(server, ready_compute):
    async def main():
        async with ready_compute as entered:
            assert entered is ready_compute
            assert server.compute is not None

    asyncio.run(main())
    assert server.compute is None


def test_an_error_of_the_block_wins_over_one_of_the_deletion(server, ready_compute):
    server.refuse("DELETE", 403, "may not delete")

    async def main():
        async with ready_compute:
            raise LookupError("the user's own")

    with pytest.raises(LookupError, match="the user's own") as error:
        asyncio.run(main())
    assert "Compute worker could not be deleted" in error.value.__notes__[0]


def test_a_deletion_that_fails_is_raised_where_nothing_else_went_wrong(server, ready_compute):
    server.refuse("DELETE", 403, "may not delete")

    async def main():
        async with ready_compute:
            pass

    with pytest.raises(ApiException, match="may not delete"):
        asyncio.run(main())


def test_a_compute_that_never_gets_ready_is_deleted_too(server, compute, says):
    server.set_conditions(says("Stalled", "True", "ImagePullFailed", "not found"))

    async def main():
        async with compute:
            raise AssertionError("the block must not be entered")

    with pytest.raises(ComputeFailed):
        asyncio.run(main())
    assert server.compute is None


def test_a_block_that_is_cancelled_deletes_the_compute(server, ready_compute):
    async def main():
        entered = asyncio.Event()

        async def use():
            async with ready_compute:
                entered.set()
                await asyncio.Event().wait()

        task = asyncio.ensure_future(use())
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert server.compute is None


def test_an_apply_that_meets_a_compute_on_its_way_out_is_repeated_once_that_is_gone(server, compute, says, here):
    assert compute.resource
    server.change(lambda document: document["metadata"].update(deletionTimestamp="2026-01-02T03:04:05Z"))
    successor = Compute("worker", **here)

    async def main():
        ready = asyncio.ensure_future(successor.ready())
        await asyncio.to_thread(server.wait_for, lambda request: request.is_watch)
        applied = len(server.asked("PATCH"))
        server.remove()
        await asyncio.to_thread(server.wait_for, lambda _: len(server.asked("PATCH")) > applied)
        server.set_conditions(says("Ready", "True", "StatefulSetReady"))
        await ready

    asyncio.run(main())


def test_another_intent_for_the_same_compute_is_noticed_when_the_first_object_is_used(ready_compute, here):
    Compute("worker", image="of-another-program", **here)
    with pytest.warns(SharedComputeWarning, match="lab/worker was changed by another program"):
        ready_compute.is_ready()


def test_the_same_intent_twice_is_no_reason_to_warn(ready_compute, here):
    Compute("worker", **here)
    assert ready_compute.is_ready()


def test_before_the_first_transfer_there_is_none_to_tell_of(compute):
    assert compute.transfer.stats is None


def test_a_compute_shows_its_name_and_state(ready_compute):
    ready_compute.is_ready()
    assert repr(ready_compute) == "<Compute lab/worker: Ready>"


def test_a_compute_that_nothing_leads_to_says_what_was_tried(server, says, monkeypatch):
    monkeypatch.setattr(line, "CONNECT_S", 0.0)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    lost = Compute("worker")
    server.set_conditions(says("Ready", "True", "StatefulSetReady"))
    address = {"type": "IPAddress", "value": "127.0.0.1", "port": port}
    server.change(lambda document: document["status"].update(addresses=[address]))
    with pytest.raises(Unreachable) as nowhere:
        asyncio.run(lost.ready())
    assert f"127.0.0.1:{port}: UNAVAILABLE" in str(nowhere.value)
    assert "worker.lab.svc.cluster.local:50051: " in str(nowhere.value)
    assert "Compute(host='localhost', port=...)" in str(nowhere.value)
