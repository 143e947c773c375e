"""Tensors to a Compute and back, and what becomes of those who use it while it changes under them."""

import asyncio
import json
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from kubernetes import client

from kpu.client import (
    Compute,
    ComputeDeleted,
    ComputeFailed,
    ReadyTimeout,
    Suspended,
    TensorClient,
    Unauthenticated,
    connecting,
)
from kpu.client.api import Api
from kpu.client.computes import Computes
from kpu.client.port_forward import PortForward
from testbed.certificates import Authority
from tests.computes.conftest import MakeCompute
from tests.contract.command_line import CommandLine
from tests.contract.waiting import eventually
from tests.operators.compute_life import IMAGE

pytestmark = pytest.mark.asyncio


def a_tensor(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(shape, np.float32)


async def test_a_whole_life(kubectl: CommandLine, make_compute: MakeCompute):
    told = list[tuple[str, str]]()
    compute = make_compute("worker", image=IMAGE, on_event=lambda *event: told.append(event))
    await compute.ready(timeout=120)
    assert compute.is_ready()
    assert told[-1][0] == "Ready"
    assert len(told) > 1

    response = await compute.send_tensors(a_tensor(100, 100), a_tensor(50, 50))
    assert response.success
    assert len(response.received_tensor_ids) == 2
    first, second = await compute.receive_tensors(count=2, parameters={"shape": "20,20"})
    assert first.shape == second.shape == (20, 20)
    sent = a_tensor(300, 7)
    (back,) = await compute.stream_tensors(sent)
    assert np.array_equal(np.asarray(back), sent)
    assert compute.transfer.stats
    assert compute.transfer.stats.bytes == 2 * sent.nbytes

    await compute.suspend()
    assert not compute.is_ready()
    with pytest.raises(Suspended):
        await compute.send_tensors(sent)
    await compute.resume()
    assert (await compute.send_tensors(sent)).success

    await compute.delete()
    assert kubectl("get", "computes,statefulsets,pods", "-o", "name") == ""
    with pytest.raises(ComputeDeleted):
        await compute.ready(timeout=5)


async def test_a_block_waits_uses_and_clears_up(kubectl: CommandLine, make_compute: MakeCompute):
    async def fail_in_the_middle() -> None:
        async with make_compute("worker", image=IMAGE) as compute:
            assert (await compute.send_tensors(a_tensor(4))).success
            raise LookupError("the user's own")

    with pytest.raises(LookupError, match="the user's own"):
        await fail_in_the_middle()
    assert kubectl("get", "computes,pods", "-o", "name") == ""


async def test_a_changed_intent_is_rolled_out_before_it_is_ready(kubectl: CommandLine, make_compute: MakeCompute):
    await make_compute("worker", image=IMAGE, env={"LOG_LEVEL": "INFO"}).ready()
    await make_compute("worker", image=IMAGE, env={"LOG_LEVEL": "DEBUG"}).ready()
    pod = json.loads(kubectl("get", "pod", "worker-0", "-o", "json"))
    env = {one["name"]: one.get("value") for one in pod["spec"]["containers"][0]["env"]}
    assert env["LOG_LEVEL"] == "DEBUG"


@pytest.mark.parametrize("env", [{}, {"KPU_PORT": "6000"}], ids=["usual port", "port of its own"])
async def test_outside_the_cluster_a_port_is_forwarded_by_itself(
    env: dict[str, str], make_compute: MakeCompute, monkeypatch
):
    monkeypatch.setattr(connecting, "candidates", lambda _compute, _port: [])
    compute = make_compute("worker", image=IMAGE, env=env)
    await compute.ready()
    sent = a_tensor(1 << 10)
    (back,) = await compute.stream_tensors(sent)
    assert np.array_equal(np.asarray(back), sent)


async def test_through_a_forwarded_port_much_goes_both_ways_at_once_and_a_new_pod_is_found(
    make_compute: MakeCompute, configuration: client.Configuration, namespace: str
):
    name = f"worker-{'x' * 56}"
    compute = make_compute(name, image=IMAGE)
    await compute.ready()
    computes = Computes(Api(configuration), namespace)
    token = computes.secret(f"{name}-token")["token"].decode()
    with closing(PortForward(computes.api, lambda: computes.server_of(name, 50051))) as forward:
        async with TensorClient(forward.host, forward.port, token=token, shared=False) as server:
            sent = a_tensor(1 << 22)
            for (back,) in await asyncio.gather(*(server.stream_tensors(sent) for _ in range(3))):
                assert np.array_equal(np.asarray(back), sent)
            await compute.suspend()
            await compute.resume()
            await compute.ready()
            assert (await server.send_tensors(sent)).success


async def test_a_given_host_is_used_as_it_is(make_compute: MakeCompute, kubectl: CommandLine):
    compute = make_compute("worker", image=IMAGE)
    await compute.ready()
    with kubectl.running("port-forward", "service/worker", ":50051") as lines:
        port = int(next(lines).split(":")[1].split(" ")[0])
        through = make_compute("worker", image=IMAGE, host="localhost", port=port)
        await through.ready()
        assert (await through.send_tensors(a_tensor(4))).success
        with pytest.raises(Unauthenticated):
            async with TensorClient("localhost", port) as stranger:
                await stranger.send_tensors(a_tensor(4))


async def test_a_compute_that_others_suspend_or_delete_says_so_when_it_is_used(
    kubectl: CommandLine, make_compute: MakeCompute
):
    compute = make_compute("worker", image=IMAGE)
    await compute.ready()
    kubectl("patch", "compute", "worker", "--type=merge", '--patch={"spec":{"suspend":true}}')
    kubectl("wait", "--for=delete", "pod/worker-0", "--timeout=60s")
    with pytest.raises(Suspended):
        await compute.send_tensors(a_tensor(4))
    await compute.resume()
    await compute.ready()
    kubectl("delete", "compute", "worker", "--cascade=foreground")
    with pytest.raises(ComputeDeleted):
        await compute.send_tensors(a_tensor(4))


async def test_a_token_that_others_removed_is_replaced_and_who_uses_the_compute_sees_nothing_of_it(
    kubectl: CommandLine, make_compute: MakeCompute
):
    compute = make_compute("worker", image=IMAGE)
    await compute.ready()
    assert (await compute.send_tensors(a_tensor(4))).success
    told = "jsonpath={.metadata.uid} {.status.conditions[?(@.type=='Ready')].status}"

    def pod() -> tuple[str, str]:
        uid, _, is_ready = kubectl("get", "pod", "worker-0", "--ignore-not-found", "-o", told).partition(" ")
        return uid, is_ready

    before, _ = pod()
    kubectl("delete", "secret", "worker-token")
    kubectl("annotate", "compute", "worker", "note=look")  # so that the operator looks now and not in a minute
    await asyncio.to_thread(eventually, lambda: pod()[0] != before and pod()[1] == "True", timeout_s=90)
    await asyncio.to_thread(eventually, compute.is_ready)
    assert (await compute.send_tensors(a_tensor(4))).success


async def test_who_uses_a_compute_with_a_long_name_is_told_what_happens_to_its_pod(make_compute: MakeCompute):
    told = set[str]()
    compute = make_compute("w" * 63, image=IMAGE, on_event=lambda reason, _: told.add(reason))
    await compute.ready(timeout=120)
    assert {"SuccessfulCreate", "Scheduled"} <= told


async def test_a_token_of_the_users_own_is_the_one_that_is_shown(make_compute: MakeCompute):
    compute = make_compute("worker", image=IMAGE, env={"KPU_TOKEN": "pa$$word"})
    await compute.ready()
    assert (await compute.send_tensors(a_tensor(4))).success


@pytest.mark.parametrize("grace", [0, 45])
async def test_a_compute_and_its_pod_are_gone_after_any_grace(
    grace: int, kubectl: CommandLine, make_compute: MakeCompute
):
    compute = make_compute("worker", image=IMAGE)
    await compute.ready()
    await compute.delete(grace_period_seconds=grace)
    assert kubectl("get", "computes,pods", "-o", "name") == ""


async def test_a_name_can_be_used_again_at_once(make_compute: MakeCompute):
    for _ in range(2):
        compute = make_compute("worker", image=IMAGE)
        await compute.ready()
        assert (await compute.send_tensors(a_tensor(4))).success
        await compute.delete()


async def test_a_compute_that_another_program_made_anew_is_connected_to_anew(make_compute: MakeCompute):
    compute = make_compute("worker", image=IMAGE)
    await compute.ready()
    assert (await compute.send_tensors(a_tensor(4))).success
    await make_compute("worker", image=IMAGE).delete()
    make_compute("worker", image=IMAGE)
    await compute.ready()
    assert (await compute.send_tensors(a_tensor(4))).success


async def test_an_image_that_cannot_be_one_fails_at_once_with_its_reason(make_compute: MakeCompute):
    compute = make_compute("worker", image="No Such:Image:Name")
    with pytest.raises(ComputeFailed) as failed:
        await compute.ready(timeout=60)
    assert "image" in f"{failed.value.reason} {failed.value.message}".lower()


async def test_what_no_node_has_is_told_while_waiting(make_compute: MakeCompute):
    compute = make_compute("worker", image=IMAGE, resources={"nvidia.com/gpu": 64})
    with pytest.raises((ComputeFailed, ReadyTimeout), match="Unschedulable"):
        await compute.ready(timeout=15)


async def test_a_server_with_a_certificate_is_trusted_by_the_authority_in_its_secret(
    make_compute: MakeCompute, kubectl: CommandLine, namespace: str, tmp_path: Path
):
    authority = Authority(tmp_path, "authority")
    pair = authority.issue("server", "server", reachable_at=[f"worker.{namespace}.svc.cluster.local"])
    files = {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": authority.files.certificate}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": "worker-tls"},
        "stringData": {name: path.read_text() for name, path in files.items()},
    }
    kubectl("create", "-f", "-", input=json.dumps(secret))
    compute = make_compute("worker", image=IMAGE, tls="worker-tls")
    await compute.ready(timeout=90)
    assert (await compute.send_tensors(a_tensor(4))).success


async def test_it_can_be_measured(make_compute: MakeCompute):
    async with make_compute("worker", image=IMAGE) as compute:
        report = await compute.benchmark(sizes=[1 << 10, 1 << 20], rounds=2)
    assert [(row.direction, row.size_bytes) for row in report.rows] == [
        (direction, size) for size in (1 << 10, 1 << 20) for direction in ("up", "down", "both ways")
    ]
    assert all(row.gigabytes_per_second > 0 for row in report.rows)
    assert "GB/s" in repr(report)


async def test_several_computes_are_used_at_once(make_compute: MakeCompute):
    async def use(compute: Compute) -> str:
        async with compute:
            return (await compute.send_tensors(a_tensor(64))).message

    computes = [make_compute(f"worker-{letter}", image=IMAGE) for letter in "abc"]
    assert await asyncio.gather(*map(use, computes)) == ["Received 1 tensor(s)"] * 3


async def test_two_event_loops_use_one_compute(make_compute: MakeCompute):
    compute = make_compute("worker", image=IMAGE)
    await compute.ready()
    assert (await compute.send_tensors(a_tensor(4))).success

    async def elsewhere() -> bool:
        sent = await compute.send_tensors(a_tensor(4))
        await compute.close()
        return sent.success

    assert await asyncio.to_thread(asyncio.run, elsewhere())
