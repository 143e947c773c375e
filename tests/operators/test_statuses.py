"""Statuses on real API servers, as pods, leases and claims come, change and go."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tessera.errors import Invalid
from tessera.kube.client import Client
from tessera.kube.kinds import GPU_CLAIMS
from tests.operators.life import LOOK_AGAIN_S, PATIENCE_S, Life, operating

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def life(api: Client, namespace: str) -> AsyncIterator[Life]:
    """With an operator that looks on, the leases being in the test's own namespace."""
    async with operating(api, namespace):
        yield Life(api, namespace)


async def test_a_claim_goes_from_pending_by_reserved_to_bound_and_back(life: Life):
    await life.claim(count=2)
    assert "no pod names this claim" in (await life.phase("Pending"))["message"]

    uid = await life.pod("web")
    await life.refuse("web", "0/2 nodes are available: 2 TooFewCards")
    waiting = await life.until(lambda status: "TooFewCards" in status["message"])
    assert (waiting["phase"], waiting["podName"], waiting["podUid"]) == ("Pending", "web", uid)

    leases = [await life.lease(card, uid) for card in (0, 1)]
    reserved = await life.until(lambda status: status["phase"] == "Reserved" and len(status["gpuIds"]) == 2)
    assert (reserved["nodeName"], reserved["allocated"]) == ("node-a", "node-a:0,1")

    await life.bind("web", "node-a:0,1")
    bound = await life.phase("Bound")
    assert (bound["nodeName"], bound["gpuIds"], bound["allocated"]) == ("node-a", [0, 1], "node-a:0,1")
    assert bound["message"] == "Successfully allocated"

    await life.delete("web")
    lingering = await life.until(lambda status: "is gone" in status["message"])
    assert (lingering["phase"], lingering["allocated"]) == ("Bound", "node-a:0,1")

    for lease in leases:
        await life.unlease(lease)
    free = await life.phase("Pending")
    assert not {"nodeName", "gpuIds", "allocated", "podName", "podUid"} & free.keys()
    await until_told(life, ["Bound", "Released"])


async def until_told(life: Life, reasons: list[str]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while sorted(reason for reason, _ in await life.events()) != reasons:
            await asyncio.sleep(LOOK_AGAIN_S)


async def test_a_claim_whose_pod_has_ended_is_free_for_the_next_one(life: Life):
    await life.claim()
    await life.pod("first")
    await life.bind("first", "node-a:0")
    await life.phase("Bound")
    await life.end("first", "Succeeded")
    assert "pod first has ended (Succeeded)" in (await life.phase("Pending"))["message"]
    await life.pod("second")
    await life.bind("second", "node-b:3")
    assert (await life.phase("Bound"))["allocated"] == "node-b:3"


async def test_the_second_pod_of_a_claim_is_named_while_the_first_holds_it(life: Life):
    await life.claim()
    await life.pod("first")
    await life.bind("first", "node-a:0")
    await life.pod("second")
    both = await life.until(lambda status: "second waits" in status.get("message", ""))
    assert (both["phase"], both["podName"]) == ("Bound", "first")


async def test_a_pod_of_another_namespace_does_not_count(life: Life, api: Client):
    await life.claim()
    stranger = {"metadata": {"name": "claim-elsewhere"}, "spec": {"devices": {"count": 1}}}
    await api.create(
        GPU_CLAIMS, stranger | {"apiVersion": "gpu.scheduling/v1", "kind": "GpuClaim"}, namespace="default"
    )
    await life.pod("web", claim="claim-elsewhere")
    try:
        elsewhere = Life(api, "default")
        assert "no pod names" in (await elsewhere.phase("Pending", "claim-elsewhere"))["message"]
    finally:
        await api.delete(GPU_CLAIMS, "claim-elsewhere", namespace="default")


async def test_a_claim_that_comes_after_its_pod_is_bound_to_it(life: Life):
    await life.pod("web")
    await life.claim()
    assert (await life.until(lambda status: "podName" in status))["podName"] == "web"


async def test_a_claim_can_be_mended_while_it_has_no_cards(life: Life):
    await life.claim(exclusivity="MIG")
    assert "MIG, which is not supported yet" in (await life.phase("Failed"))["message"]
    await until_told(life, ["Failed"])
    await life.edit_claim({"exclusivity": "Shared"})
    await life.phase("Pending")


@pytest.mark.parametrize("phase", ["Reserved", "Bound"])
async def test_a_claim_cannot_be_changed_while_it_has_cards(life: Life, phase: str):
    await life.claim()
    uid = await life.pod("web")
    await life.lease(0, uid)
    if phase == "Bound":
        await life.bind("web", "node-a:0")
    await life.phase(phase)
    with pytest.raises(Invalid) as refused:
        await life.edit_claim({"count": 2})
    assert f"spec cannot be changed while the claim is {phase}; delete the pod" in str(refused.value)


async def test_a_claim_that_is_deleted_and_made_again_finds_the_pod_that_holds_its_cards(life: Life):
    await life.claim()
    await life.pod("web")
    await life.bind("web", "node-a:0")
    await life.phase("Bound")
    await life.delete_claim()
    await life.claim()
    assert (await life.phase("Bound"))["podName"] == "web"


async def test_a_status_that_somebody_scribbled_over_is_put_right(life: Life, api: Client, namespace: str):
    await life.claim()
    await life.phase("Pending")
    scribble = {"status": {"phase": "Bound", "allocated": "node-z:9"}}
    await api.patch(GPU_CLAIMS, "training", scribble, namespace=namespace, subresource="status")
    await life.until(lambda status: status["phase"] == "Pending" and "allocated" not in status)


async def test_a_gang_counts_the_pods_that_name_it_and_those_of_claims_that_do(life: Life):
    await life.gang("pair", 2)
    await life.claim(gang="pair")
    await life.pod("by-claim")
    await life.pod("by-name", claim="other", **{"gpu.scheduling/gang": "pair"})
    await life.pod("of-another", **{"gpu.scheduling/gang": "another"})
    status = await until_gang(life, members=2)
    assert (status["bound"], status["phase"]) == (0, "Pending")
    await life.bind("by-claim", "node-a:0")
    await life.bind("by-name", "node-a:1")
    assert (await until_gang(life, bound=2))["phase"] == "Bound"
    await life.end("by-name", "Failed")
    assert (await until_gang(life, members=1))["phase"] == "Pending"


async def until_gang(life: Life, **wanted: int) -> dict[str, Any]:
    async with asyncio.timeout(PATIENCE_S):
        while not wanted.items() <= (status := await life.gang_status("pair")).items():
            await asyncio.sleep(LOOK_AGAIN_S)
    return status
