"""TensorClient and a server process on one host: large payloads go through shared memory, and stats say so."""

import asyncio
import gc
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import numpy as np
import pytest

from kpu.client import TensorClient, empty
from kpu.errors import InvalidRequest, ServerGone, Unauthenticated
from kpu.sharing import meeting
from kpu.sharing.bypass import SharedMemory
from kpu.sharing.greeting import GREET, SESSION_KEY, Invitation, decode_invitation
from kpu.sharing.knocking import visit
from kpu.wire.bypass import CLOSED
from kpu.wire.messages import TensorChunk

MIB = 1 << 20
ELEMENTS = MIB  # of float32: 4 MiB
SHARED, GRPC = "shared-memory", "grpc"
SEND = "/kpu.torch.Service/ReceiveTensors"


@pytest.fixture(scope="module")
def server(serve):
    """One for all tests of this module that leave it alive."""
    return serve(KPU_STORE_BYTES="64Mi")


def _numbers(elements: int = ELEMENTS, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(elements, dtype=np.float32)


def _shown() -> np.ndarray:
    tensor = empty((ELEMENTS,), "float32")
    tensor[:] = 7
    return tensor


def _path(client: TensorClient) -> str:
    assert client.transfer.stats
    return client.transfer.stats.path


def _copied(client: TensorClient) -> int:
    assert client.transfer.stats
    return client.transfer.stats.bytes_copied


def _descriptors_of(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def _regions_of(pid: int) -> set[str]:
    return set(_region_sizes(pid))


def _region_sizes(pid: int) -> dict[str, int]:
    """Bytes of each region that a process maps, by the number of its file."""
    maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
    regions = [line.split() for line in maps if "memfd:kpu-tensor" in line]
    spans = {words[4]: [int(end, 16) for end in words[0].split("-")] for words in regions}
    return {number: end - start for number, (start, end) in spans.items()}


def test_a_large_tensor_goes_through_shared_memory_with_one_copy(server):
    async def scenario() -> None:
        async with TensorClient("127.0.0.1", server.port) as client:
            await client.send_tensors(_numbers())
            assert (_path(client), _copied(client)) == (SHARED, 4 * ELEMENTS)

    asyncio.run(scenario())


def test_a_small_tensor_and_an_empty_one_go_over_grpc(server):
    async def scenario() -> None:
        async with TensorClient("127.0.0.1", server.port) as client:
            back = await client.stream_tensors(_numbers(10), np.empty((0, 3), np.float32))
            assert _path(client) == GRPC
            assert [tuple(one.shape) for one in back] == [(10,), (0, 3)]

    asyncio.run(scenario())


def test_who_does_not_want_shared_memory_gets_grpc(server):
    async def scenario() -> None:
        async with TensorClient("127.0.0.1", server.port, shared=False) as client:
            await client.send_tensors(_numbers())
            assert _path(client) == GRPC

    asyncio.run(scenario())


def test_a_tensor_made_with_empty_is_handed_over_without_a_copy(server):
    async def scenario() -> None:
        tensor = empty((1024, 1024), "float32")
        np.asarray(tensor)[:] = 1
        async with TensorClient("127.0.0.1", server.port) as client:
            for sent in (tensor, tensor[10:20], tensor[512:]):
                await client.send_tensors(sent)
                assert (_path(client), _copied(client)) == (SHARED, 0)
            await client.send_tensors(tensor[:, :512])
            assert _copied(client) == 2 * MIB, "what is not compact is compacted where it is shown, with one copy"

    asyncio.run(scenario())


def test_a_small_part_of_a_large_shared_tensor_does_not_keep_all_of_it_in_the_server(server, eventually):
    async def scenario() -> None:
        before = _regions_of(os.getpid())
        tensor = empty((16 * MIB,), "uint8")
        (region,) = _regions_of(os.getpid()) - before
        async with TensorClient("127.0.0.1", server.port) as client:
            await client.send_tensors(tensor[:1024])
            assert (_path(client), _copied(client)) == (SHARED, 0)
            assert region in _regions_of(server.process.pid)
            del tensor
            gc.collect()
            eventually(lambda: region not in _regions_of(server.process.pid))

    asyncio.run(scenario())


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "float16", "float64", "complex128"])
def test_every_bit_comes_back(server, dtype):
    raw = np.random.default_rng(3).integers(0, 2 if dtype == "bool" else 256, 2 * MIB, dtype=np.uint8)
    sent = raw.view(dtype).reshape(2, 4, -1)

    async def scenario() -> None:
        async with TensorClient("127.0.0.1", server.port) as client:
            (back,) = await client.stream_tensors(sent)
            assert _path(client) == SHARED
            got = np.asarray(back)
            assert (got.dtype, got.shape) == (sent.dtype, sent.shape)
            assert got.tobytes() == sent.tobytes()

    asyncio.run(scenario())


def test_a_snapshot_that_is_echoed_is_given_back_and_not_copied_again(server):
    async def scenario() -> None:
        sent = _numbers()
        async with TensorClient("127.0.0.1", server.port) as client:
            (back,) = await client.stream_tensors(sent)
            assert _copied(client) == sent.nbytes
            np.asarray(back)[:] = 0
            assert sent.any()
            (again,) = await client.stream_tensors(sent)
            assert not np.asarray(back).any(), "a tensor that is held was filled again"
            assert np.array_equal(np.asarray(again), sent)

    asyncio.run(scenario())


def test_an_echo_of_a_shared_tensor_is_a_tensor_of_its_own(server):
    async def scenario() -> None:
        sent = empty((ELEMENTS,), "float32")
        np.asarray(sent)[:] = 5
        async with TensorClient("127.0.0.1", server.port) as client:
            (back,) = await client.stream_tensors(sent)
            np.asarray(sent)[:] = 6
            assert np.asarray(back).max() == 5

    asyncio.run(scenario())


def test_what_a_server_makes_comes_writable_and_outlives_the_client(server):
    async def scenario() -> np.ndarray:
        async with TensorClient("127.0.0.1", server.port) as client:
            (made,) = await client.receive_tensors(1, {"shape": f"4,{ELEMENTS // 4}"})
            assert (_path(client), _copied(client)) == (SHARED, 0)
        return np.asarray(made)

    made = asyncio.run(scenario())
    assert made.shape == (4, ELEMENTS // 4)
    assert 0.9 < made.std() < 1.1
    made += 1


def test_what_a_client_keeps_of_a_server_stays_within_the_servers_memory(serve):
    async def scenario() -> None:
        small = serve("--memory-bytes", "32Mi")
        pid = small.process.pid
        async with TensorClient("127.0.0.1", small.port) as client:
            kept = await client.receive_tensors(1, {"shape": "256,512"})
            before = _descriptors_of(pid)
            for _ in range(4):
                kept += await client.receive_tensors(30, {"shape": "256,512"})
            assert _path(client) == GRPC, "a server may lend half of its memory, and that is out"
            assert sum(_region_sizes(pid).values()) <= 16 * MIB
            assert _descriptors_of(pid) <= before + 5
            assert (await client.send_tensors(np.ones(100, np.uint8))).success
            kept.clear()
            gc.collect()
            async with asyncio.timeout(10):
                while _path(client) != SHARED:
                    await client.receive_tensors(1, {"shape": "256,512"})

    asyncio.run(scenario())


def test_regions_that_are_idle_make_way_for_a_tensor_that_needs_their_memory(serve):
    async def scenario() -> None:
        small = serve("--memory-bytes", "32Mi", "--wait-seconds", "5")
        async with (
            TensorClient("127.0.0.1", small.port) as client,
            TensorClient("127.0.0.1", small.port, shared=False) as another,
        ):
            for turn in range(3):
                await client.stream_tensors(_numbers(seed=turn)[::2])
                await client.receive_tensors(1, {"shape": "1024,1024", "dtype": "float16"})
            assert (await another.send_tensors(np.ones(32 * MIB, np.uint8))).success

    asyncio.run(scenario())


def test_tensors_that_were_sent_and_dropped_take_no_descriptors(server):
    async def scenario() -> None:
        async with TensorClient("127.0.0.1", server.port) as client:
            await client.send_tensors(empty((10, 10)))
            before = _descriptors_of(os.getpid())
            for _ in range(100):
                await client.send_tensors(empty((10, 10)))
                assert _path(client) == SHARED
            gc.collect()
            assert _descriptors_of(os.getpid()) <= before

    asyncio.run(scenario())


@pytest.mark.parametrize("method", ["send_tensors", "stream_tensors"])
def test_a_call_whose_link_the_server_does_not_have_any_more_goes_over_grpc(server, method):
    async def scenario() -> None:
        async with TensorClient("127.0.0.1", server.port) as client:
            await client.send_tensors(_numbers())
            assert client._meeting
            assert client._meeting._visit
            client._meeting._visit.session = "00" * 32
            await getattr(client, method)(_numbers())
            assert _path(client) == GRPC

    asyncio.run(scenario())


@pytest.mark.parametrize("make", [_numbers, _shown])
def test_a_link_that_closes_while_the_answer_is_on_its_way_is_no_error_of_the_call(
    server, monkeypatch, eventually, make
):
    sent, accept = make(), SharedMemory.accept

    def cut(way: SharedMemory, *told):
        way._link.shut("as if it broke")
        eventually(lambda: way._link._lender._closed)
        return accept(way, *told)

    async def scenario() -> None:
        async with TensorClient("127.0.0.1", server.port) as client:
            await client.send_tensors(_numbers())
            monkeypatch.setattr(SharedMemory, "accept", cut)
            (back,) = await client.stream_tensors(sent)
            assert _path(client) == GRPC
            assert np.array_equal(np.asarray(back), np.asarray(sent))

    asyncio.run(scenario())


def test_several_tensors_of_one_call_each_go_their_way(server):
    async def scenario() -> None:
        tensors = [_numbers(), _numbers(10), _numbers(seed=1), _numbers(0)]
        async with TensorClient("127.0.0.1", server.port) as client:
            back = await client.stream_tensors(*tensors)
            assert _path(client) == f"{GRPC}+{SHARED}"
            assert all(np.array_equal(np.asarray(got), sent) for got, sent in zip(back, tensors, strict=True))

    asyncio.run(scenario())


def test_regions_are_used_again_and_neither_descriptors_nor_threads_pile_up(server, eventually):
    async def scenario() -> None:
        async with TensorClient("127.0.0.1", server.port) as client:
            await client.stream_tensors(_numbers())
            before = [_descriptors_of(pid) for pid in (server.process.pid, os.getpid())]
            for _ in range(100):
                await client.stream_tensors(_numbers())
                await client.receive_tensors(1, {"shape": str(ELEMENTS)})
            gc.collect()
            assert len(_regions_of(os.getpid())) < 10
            eventually(lambda: _descriptors_of(server.process.pid) <= before[0])
            assert _descriptors_of(os.getpid()) <= before[1]

    asyncio.run(scenario())
    eventually(lambda: not any(thread.name == "kpu-shared-memory" for thread in threading.enumerate()))


def test_what_the_server_keeps_is_bounded_and_the_rest_is_let_go(server, eventually):
    async def scenario() -> None:
        async with TensorClient("127.0.0.1", server.port) as client:
            for seed in range(40):
                await client.send_tensors(_numbers(seed=seed))
                assert _path(client) == SHARED
            eventually(lambda: len(_regions_of(server.process.pid)) <= 64 // 4 + 3)

    asyncio.run(scenario())


def test_many_clients_at_once_get_their_own_back(server):
    async def one(seed: int) -> bool:
        async with TensorClient("127.0.0.1", server.port) as client:
            sent = [_numbers(seed=seed), _numbers(seed=seed + 100)]
            back = await asyncio.gather(*(client.stream_tensors(tensor) for tensor in sent))
            return all(np.array_equal(np.asarray(got), tensor) for (got,), tensor in zip(back, sent, strict=True))

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(lambda seed: asyncio.run(one(seed)), range(24)))


def test_a_client_in_two_event_loops_shares_memory_in_both_until_the_last_is_closed(server, eventually):
    client = TensorClient("127.0.0.1", server.port)

    async def call_and_close() -> None:
        await client.send_tensors(_numbers())
        await client.close()

    async def call_around_the_others_end() -> None:
        await client.send_tensors(_numbers())
        await asyncio.to_thread(asyncio.run, call_and_close())
        assert client._meeting
        before = client._meeting._visit
        await client.send_tensors(_numbers())
        assert _path(client) == SHARED
        assert client._meeting._visit is before
        await client.close()

    asyncio.run(call_around_the_others_end())
    eventually(lambda: not any(thread.name == "kpu-shared-memory" for thread in threading.enumerate()))


def test_a_client_that_is_forgotten_ends_its_thread(server, eventually):
    async def scenario() -> None:
        client = TensorClient("127.0.0.1", server.port)
        await client.send_tensors(_numbers())

    asyncio.run(scenario())
    gc.collect()
    eventually(lambda: not any(thread.name == "kpu-shared-memory" for thread in threading.enumerate()))


@pytest.mark.parametrize("closes", [False, True])
def test_a_call_that_is_cancelled_while_it_finds_the_way_leaves_it_to_the_next(server, eventually, monkeypatch, closes):
    visits, may_go = threading.Semaphore(0), threading.Event()

    def held_up(invitation: Invitation):
        visits.release()
        assert may_go.wait(10)
        return visit(invitation)

    monkeypatch.setattr(meeting, "visit", held_up)

    async def scenario() -> None:
        client = TensorClient("127.0.0.1", server.port)
        call = asyncio.create_task(client.send_tensors(_numbers()))
        assert await asyncio.to_thread(visits.acquire, timeout=10)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        if closes:
            await client.close()
        may_go.set()
        if not closes:
            await asyncio.to_thread(eventually, lambda: client._meeting and client._meeting._stands)
            await client.send_tensors(_numbers())
            assert _path(client) == SHARED
            assert not visits.acquire(blocking=False), "the first visit serves"
            await client.close()
        await asyncio.to_thread(eventually, _nobody_serves_links)

    asyncio.run(scenario())


def test_a_link_that_is_parted_with_ends_though_nobody_waits_for_its_end(server, eventually):
    """A call that finds a broken link ends it first, beside the loop: here in the only thread there is for that."""
    may_go = threading.Event()

    async def scenario() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        client = TensorClient("127.0.0.1", server.port)
        await client.send_tensors(_numbers())
        assert client._meeting
        assert client._meeting._visit
        client._meeting._visit.link.shut("as if it broke")
        busy = asyncio.create_task(asyncio.to_thread(may_go.wait, 10))
        call = asyncio.create_task(client.send_tensors(_numbers()))
        while client._meeting._visit:
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        may_go.set()
        assert await busy
        await client.close()
        await asyncio.to_thread(eventually, _nobody_serves_links)

    asyncio.run(scenario())


def _nobody_serves_links() -> bool:
    return not any(thread.name == "kpu-shared-memory" for thread in threading.enumerate())


def test_without_the_token_nobody_gets_a_nonce(serve):
    async def scenario(port: int) -> None:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            for metadata in ((), (("authorization", "Bearer wrong"),)):
                with pytest.raises(grpc.aio.AioRpcError) as refused:
                    await channel.unary_unary(GREET)(b"", metadata=metadata)
                assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
        async with TensorClient("127.0.0.1", port, token="wrong") as client:
            with pytest.raises(Unauthenticated):
                await client.send_tensors(_numbers())
        async with TensorClient("127.0.0.1", port, token="right") as client:
            await client.send_tensors(_numbers())
            assert _path(client) == SHARED

    asyncio.run(scenario(serve(KPU_TOKEN="right").port))


def test_a_client_that_does_not_see_the_servers_socket_falls_back_to_grpc_and_does_not_ask_each_time(
    serve, tmp_path, monkeypatch
):
    visits: list[Invitation] = []

    def counted(invitation: Invitation):
        visits.append(invitation)
        return visit(invitation)

    monkeypatch.setattr(meeting, "visit", counted)

    async def scenario(port: int) -> None:
        async with TensorClient("127.0.0.1", port) as client:
            for _ in range(3):
                (back,) = await client.stream_tensors(_numbers())
                assert _path(client) == GRPC
                assert np.array_equal(np.asarray(back), _numbers())
        assert len(visits) == 1

    server = serve(KPU_SHARED_SOCKET=str(tmp_path))
    (socket_file,) = tmp_path.iterdir()
    socket_file.unlink()
    asyncio.run(scenario(server.port))


def test_a_socket_in_a_directory_that_both_mount_carries_tensors(serve, tmp_path):
    async def scenario(port: int) -> None:
        async with TensorClient("127.0.0.1", port) as client:
            await client.send_tensors(_numbers())
            assert _path(client) == SHARED

    server = serve(KPU_SHARED_SOCKET=str(tmp_path))
    asyncio.run(scenario(server.port))
    server.send_signal(signal.SIGTERM)
    server.process.wait()
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_is_killed_is_a_clear_error_and_its_successor_is_shared_with_again(serve):
    async def scenario() -> None:
        first = serve()
        client = TensorClient("127.0.0.1", first.port)
        (held,) = await client.stream_tensors(_numbers())
        first.end()
        with pytest.raises(ServerGone):
            await client.send_tensors(_numbers())
        assert np.array_equal(np.asarray(held), _numbers())
        await asyncio.to_thread(serve, "--port", str(first.port))
        await client.send_tensors(_numbers())
        assert _path(client) == SHARED
        await client.close()

    asyncio.run(scenario())


def test_a_server_killed_in_the_middle_of_transfers_leaves_no_memory(serve, eventually):
    async def scenario() -> None:
        server = serve()
        async with TensorClient("127.0.0.1", server.port) as client:
            await client.send_tensors(_numbers())
            sending = [asyncio.create_task(client.stream_tensors(_numbers(4 * ELEMENTS))) for _ in range(4)]
            await asyncio.sleep(0)
            server.end()
            ended = await asyncio.gather(*sending, return_exceptions=True)
            assert all(isinstance(one, ServerGone | list) for one in ended), ended
            del ended, sending

    before = _regions_of(os.getpid())
    asyncio.run(scenario())
    gc.collect()
    eventually(lambda: _regions_of(os.getpid()) <= before)


def test_a_cancelled_call_leaves_the_link_in_order(server):
    async def scenario() -> None:
        async with TensorClient("127.0.0.1", server.port) as client:
            for turn in range(10):
                call = asyncio.create_task(client.stream_tensors(_numbers(4 * ELEMENTS)))
                await asyncio.sleep(0.001 * turn)
                call.cancel()
                await asyncio.gather(call, return_exceptions=True)
            (back,) = await client.stream_tensors(_numbers())
            assert _path(client) == SHARED
            assert np.array_equal(np.asarray(back), _numbers())

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("metadata", "says"),
    [
        ({"shared.region": "99", "shared.offset": "0"}, "region 99 is unknown"),
        ({"shared.region": "1", "shared.offset": "4"}, "said to take 4194304 of them from 4"),
        ({"shared.region": "1", "shared.offset": "3"}, "multiple of the 4 bytes"),
        ({"shared.region": "1", "shared.offset": "-4"}, "expected a whole number"),
        ({"shared.region": "1"}, "expected a whole number"),
        ({"shared.region": "1" * 400, "shared.offset": "0"}, "expected a whole number"),
        ({"shared.region": "1", "shared.offset": "0", "shared.returned": "true"}, "expected a region and bytes"),
    ],
)
def test_a_call_that_lies_about_shared_memory_is_refused_and_the_server_lives_on(server, metadata, says):
    async def scenario() -> None:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            invitation = decode_invitation(await channel.unary_unary(GREET)(b""))
            assert invitation
            guest = await asyncio.to_thread(visit, invitation)
            assert guest
            assert guest.link.lend(_numbers().view(np.uint8))
            described = {"shape": f"[{ELEMENTS}]", "dtype": "torch.float32", "size_bytes": str(4 * ELEMENTS)}
            chunk = TensorChunk(tensor_id="lie", total_chunks=1, is_last=True, metadata={**described, **metadata})
            lie, closed = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION
            cases = ((guest.session, lie, says), ("00" * 32, closed, CLOSED), ("", closed, CLOSED))
            for session, code, expected in cases:
                call = channel.stream_unary(SEND)(iter([chunk.encode()]), metadata=((SESSION_KEY, session),))
                with pytest.raises(grpc.aio.AioRpcError) as refused:
                    await call
                assert refused.value.code() is code
                assert expected in (refused.value.details() or "")
            guest.close()

    asyncio.run(scenario())
    assert server.is_alive


def test_a_reference_from_a_server_that_lies_is_an_error_of_the_call(server, monkeypatch):
    async def scenario() -> None:
        async with TensorClient("127.0.0.1", server.port) as client:
            await client.send_tensors(_numbers())
            assert client._meeting
            assert client._meeting._visit
            link = client._meeting._visit.link
            monkeypatch.setattr(link, "get_back", lambda *_: link.borrow(999, 0, 1))
            with pytest.raises((InvalidRequest, ValueError), match="region 999 is unknown"):
                await client.stream_tensors(_numbers())

    asyncio.run(scenario())
