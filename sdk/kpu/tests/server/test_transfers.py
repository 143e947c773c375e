"""Tensors over real gRPC, to a server in a process of its own and back."""

import asyncio
from typing import Any

import numpy as np
import pytest

from kpu.client.tensor_client import TensorClient
from kpu.errors import InvalidRequest, TooLarge, TransferFailed, UnsupportedTensor


def run(server: Any, use: Any, **options: Any) -> Any:
    """Use a client of the server in an event loop of its own. Payloads go over gRPC."""

    async def with_client() -> Any:
        async with TensorClient("127.0.0.1", server.port, **{"shared": False, **options}) as client:
            return await use(client)

    return asyncio.run(with_client())


def several() -> list[Any]:
    random = np.random.default_rng(7)
    return [
        random.normal(size=(3, 4)),
        np.float32(1.5),
        np.empty((0, 5), np.int16),
        random.integers(0, 255, 3 << 20, dtype=np.uint8),
        np.arange(24).reshape(4, 6).T,
        np.array([True, False]),
    ]


def test_tensors_that_are_sent_are_acknowledged_one_by_one(server):
    response = run(server, lambda client: client.send_tensors(*several()))
    assert response.success
    assert response.message == "Received 6 tensor(s)"
    assert len(set(response.received_tensor_ids)) == 6


def test_tensors_that_pass_through_come_back_as_they_were_and_in_order(server):
    sent = several()
    received = run(server, lambda client: client.stream_tensors(*sent))
    for before, after in zip(sent, received, strict=True):
        assert np.asarray(after).dtype == before.dtype
        assert np.asarray(after).shape == before.shape
        assert np.array_equal(np.asarray(after), before)


def test_tensors_are_made_by_the_parameters_of_the_request(server):
    made = run(server, lambda client: client.receive_tensors(2, {"shape": "20,20"}))
    assert [tuple(tensor.shape) for tensor in made] == [(20, 20)] * 2
    assert not np.array_equal(np.asarray(made[0]), np.asarray(made[1]))


def test_without_parameters_a_tensor_has_ten_rows_of_ten(server):
    (made,) = run(server, lambda client: client.receive_tensors())
    assert tuple(made.shape) == (10, 10)


@pytest.mark.parametrize("dtype", ["float64", "torch.float16", "complex64", "complex128"])
def test_a_dtype_can_be_asked_for(server, dtype):
    (made,) = run(server, lambda client: client.receive_tensors(1, {"shape": (4, 5), "dtype": dtype}))
    assert np.asarray(made).dtype == np.dtype(dtype.removeprefix("torch."))
    assert np.asarray(made).std() > 0


def test_random_tensors_are_normal(server):
    (made,) = run(server, lambda client: client.receive_tensors(1, {"shape": "100,1000"}))
    assert abs(float(np.asarray(made).mean())) < 0.05
    assert abs(float(np.asarray(made).std()) - 1) < 0.05


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"shape": "20x20"}, 'shape is "20x20"'),
        ({"shape": "-5"}, 'shape is "-5"'),
        ({"dtype": "int7x"}, 'dtype "int7x" is unknown'),
        ({"dtype": "int32"}, "random tensors are made of"),
        ({"device": "cuda:99"}, "cuda:99"),
        ({"device": "privateuseone"}, "privateuseone"),
    ],
)
def test_a_parameter_that_makes_no_sense_is_refused_and_not_replaced(server, parameters, said):
    with pytest.raises(InvalidRequest, match=said):
        run(server, lambda client: client.receive_tensors(1, parameters))


def test_a_tensor_that_is_too_large_to_make_is_refused_before_it_is_made(server):
    with pytest.raises(TooLarge, match="4000000000000 bytes"):
        run(server, lambda client: client.receive_tensors(1, {"shape": "1000000,1000000"}))


def test_no_tensors_at_all_are_fine(server):
    async def none(client: TensorClient) -> Any:
        return await client.send_tensors(), await client.receive_tensors(0), await client.stream_tensors()

    response, made, streamed = run(server, none)
    assert (response.message, made, streamed) == ("Received 0 tensor(s)", [], [])


def test_more_tensors_than_one_call_may_have_are_refused(server):
    with pytest.raises(TooLarge, match="at most 4096"):
        run(server, lambda client: client.receive_tensors(5000))


@pytest.mark.parametrize("count", [-1, 2**32, True, 1.5, "2", None])
def test_a_count_that_is_none_is_refused(server, count):
    with pytest.raises(InvalidRequest, match="whole number"):
        run(server, lambda client: client.receive_tensors(count))


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ("20,20", "parameters is '20,20', expected a dict"),
        ({1: "20,20"}, "a name in parameters is 1, expected a string"),
        ({"shape": "\ud800"}, r"parameters\['shape'\] is '\\ud800', expected text"),
    ],
)
def test_parameters_that_cannot_be_sent_are_refused(server, parameters, said):
    with pytest.raises(InvalidRequest, match=said):
        run(server, lambda client: client.receive_tensors(1, parameters))


class Shape(tuple[int, ...]):
    """As torch's: it calls itself otherwise than a tuple does."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Shape({[*self]})"


@pytest.mark.parametrize("shape", [(2, 3), [2, 3], Shape((2, 3))])
def test_a_shape_is_given_as_it_is(server, shape):
    (made,) = run(server, lambda client: client.receive_tensors(np.int64(1), {"shape": shape}))
    assert tuple(made.shape) == (2, 3)


def test_a_tensor_that_cannot_travel_keeps_the_others_from_being_sent(server):
    with pytest.raises(UnsupportedTensor, match="pickled"):
        run(server, lambda client: client.send_tensors(np.ones(3), np.array([None])))


@pytest.mark.parametrize("chunk_size", [1 << 10, 1 << 20, 16 << 20])
def test_any_size_of_chunk_carries_the_same_tensor(server, chunk_size):
    data = np.random.default_rng(0).integers(0, 255, (1 << 20) + 17, dtype=np.uint8)
    (back,) = run(server, lambda client: client.stream_tensors(data), chunk_size=chunk_size)
    assert np.array_equal(np.asarray(back), data)


@pytest.mark.parametrize("chunk_size", [0, -1, 100, 1 << 30])
def test_a_size_of_chunk_that_nobody_takes_is_refused(chunk_size):
    with pytest.raises(ValueError, match="chunk_size"):
        TensorClient(chunk_size=chunk_size)


def test_calls_on_one_client_may_run_at_once(server):
    async def at_once(client: TensorClient) -> Any:
        return await asyncio.gather(*(client.stream_tensors(np.full(1 << 18, number)) for number in range(8)))

    for number, (back,) in enumerate(run(server, at_once)):
        assert (np.asarray(back) == number).all()


def test_one_client_serves_several_event_loops_one_after_the_other(server):
    client = TensorClient("127.0.0.1", server.port, shared=False)

    async def once() -> Any:
        (back,) = await client.stream_tensors(np.arange(3))
        await client.close()
        return back

    assert [np.asarray(asyncio.run(once())).tolist() for _ in range(3)] == [[0, 1, 2]] * 3


def test_the_statistics_tell_of_the_last_call(server):
    async def transfers(client: TensorClient) -> Any:
        before = client.transfer.stats
        await client.send_tensors(np.zeros(1 << 20, np.uint8))
        up = client.transfer.stats
        await client.send_tensors(np.zeros((1 << 10, 1 << 10), np.uint8).T)
        compacted = client.transfer.stats
        await client.stream_tensors(np.zeros(1 << 20, np.uint8))
        return before, up, compacted, client.transfer.stats

    before, up, compacted, both = run(server, transfers)
    assert before is None
    assert (up.path, up.bytes, up.bytes_copied) == ("grpc", 1 << 20, 1 << 20)
    assert compacted.bytes_copied == 2 << 20
    assert (both.bytes, both.bytes_copied) == (2 << 20, 2 << 20)
    assert both.gigabytes_per_second == pytest.approx(both.bytes / both.seconds / 1e9)


def test_a_cancelled_call_ends_on_the_server_too_and_the_client_goes_on(server):
    async def cancelled(client: TensorClient) -> Any:
        huge = np.zeros(1 << 30, np.uint8)
        call = asyncio.create_task(client.stream_tensors(huge))
        while not server.figure("VmRSS"):
            await asyncio.sleep(0)
        await asyncio.sleep(0.2)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        return await client.stream_tensors(np.arange(3))

    (back,) = run(server, cancelled)
    assert np.asarray(back).tolist() == [0, 1, 2]


def test_a_call_that_takes_too_long_is_a_timeout(server):
    with pytest.raises(TimeoutError):
        run(server, lambda client: client.stream_tensors(np.zeros(1 << 29, np.uint8)), timeout=0.05)


def test_the_event_loop_turns_while_a_tensor_is_on_its_way(server):
    async def ticking(client: TensorClient) -> int:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        ticker = asyncio.create_task(tick())
        await client.stream_tensors(np.zeros((4096, 4096), np.float32).T)
        ticker.cancel()
        return ticks

    # A turn for every chunk, there and back: no step of a transfer is longer than one of them.
    assert run(server, ticking) > 2 * 64


def test_everything_that_goes_wrong_has_one_root(server):
    with pytest.raises(TransferFailed):
        run(server, lambda client: client.receive_tensors(1, {"shape": "x"}))


def test_the_memory_of_a_tensor_that_is_gone_carries_the_next_one_and_is_let_go_with_the_client(server):
    async def receive_twice(client: TensorClient) -> tuple[int, int, list[int]]:
        size = {"shape": str(2 << 20), "dtype": "float32"}
        (first,) = await client.receive_tensors(1, size)
        place = np.asarray(first).ctypes.data
        del first
        idle = [client._rooms.idle_bytes]
        (second,) = await client.receive_tensors(1, size)
        again = np.asarray(second).ctypes.data
        del second
        await client.close()
        return place, again, [*idle, client._rooms.idle_bytes]

    place, again, idle = run(server, receive_twice)
    assert place == again
    assert idle == [8 << 20, 0]
