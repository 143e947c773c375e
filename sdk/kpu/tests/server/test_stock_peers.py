"""A client and a server made of protobuf's generated classes understand ours, and are understood."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import numpy as np
import pytest

from kpu.errors import MalformedMessage, TransferFailed

SERVICE = "kpu.torch.Service"


@pytest.fixture
def stock_client(server: Any, protocol: Any) -> Iterator[dict[str, Any]]:
    """The three methods as a plain gRPC client has them."""
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        chunk, request, response = protocol.TensorChunk, protocol.TensorRequest, protocol.TensorResponse
        yield {
            "ReceiveTensors": channel.stream_unary(
                f"/{SERVICE}/ReceiveTensors", chunk.SerializeToString, response.FromString
            ),
            "SendTensors": channel.unary_stream(f"/{SERVICE}/SendTensors", request.SerializeToString, chunk.FromString),
            "StreamTensors": channel.stream_stream(
                f"/{SERVICE}/StreamTensors", chunk.SerializeToString, chunk.FromString
            ),
        }


def stock_chunks(protocol: Any, tensor_id: str, array: Any, size: int, **metadata: str) -> list[Any]:
    raw = array.tobytes()
    total = max(1, -(-len(raw) // size))
    told = {"shape": str(list(array.shape)), "dtype": f"torch.{array.dtype}", "size_bytes": str(len(raw)), **metadata}
    return [
        protocol.TensorChunk(
            tensor_id=tensor_id,
            chunk_number=number,
            data=raw[number * size : (number + 1) * size],
            total_chunks=total,
            is_last=number == total - 1,
            metadata={} if number else told,
        )
        for number in range(total)
    ]


def joined(chunks: list[Any]) -> Any:
    told = chunks[0].metadata
    raw = b"".join(chunk.data for chunk in sorted(chunks, key=lambda chunk: chunk.chunk_number))
    shape = [int(part) for part in told["shape"].strip("[]").split(",") if part]
    return np.frombuffer(raw, told["dtype"].removeprefix("torch.")).reshape(shape)


def test_a_stock_client_sends(stock_client, protocol):
    array = np.arange(5000, dtype=np.float32)
    response = stock_client["ReceiveTensors"](iter(stock_chunks(protocol, "mine", array, 999)))
    assert response.success
    assert list(response.received_tensor_ids) == ["mine"]


def test_a_stock_client_receives(stock_client, protocol):
    chunks = list(stock_client["SendTensors"](protocol.TensorRequest(count=1, parameters={"shape": "30,20"})))
    assert joined(chunks).shape == (30, 20)
    assert joined(chunks).dtype == np.float32


def test_a_stock_client_streams_and_knows_its_tensors_by_their_ids(stock_client, protocol):
    array = np.arange(1 << 20, dtype=np.int32).reshape(1 << 10, -1)
    chunks = list(stock_client["StreamTensors"](iter(stock_chunks(protocol, "mine", array, 1 << 20))))
    assert {chunk.tensor_id for chunk in chunks} == {"processed_mine"}
    assert np.array_equal(joined(chunks), array)


@pytest.mark.parametrize("spelled", [{"shape": "2,3"}, {"shape": "(2, 3)"}, {"dtype": "float32"}, {"dtype": "float"}])
def test_a_stock_client_may_spell_shapes_and_dtypes_its_own_way(stock_client, protocol, spelled):
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    chunks = list(stock_client["StreamTensors"](iter(stock_chunks(protocol, "mine", array, 100, **spelled))))
    assert np.array_equal(joined(chunks), array)


@pytest.mark.parametrize("size", [2, 1 << 20])
def test_a_dtype_travels_and_is_kept_whether_the_server_knows_it_or_not(stock_client, protocol, size):
    words = np.arange(size, dtype=np.uint16)
    sent = stock_chunks(protocol, "mine", words, 1 << 20, dtype="bfloat16")
    back = list(stock_client["StreamTensors"](iter(sent)))
    assert back[0].metadata["dtype"] == "torch.bfloat16"
    assert b"".join(chunk.data for chunk in back) == words.tobytes()
    assert stock_client["ReceiveTensors"](iter(sent)).success


@pytest.mark.parametrize(
    "metadata",
    [{}, {"shape": "[2, 2]", "dtype": "torch.float32", "device": "cpu", "size_bytes": "5"}],
    ids=["bare", "as the original"],
)
def test_a_stock_client_that_pickles_is_told_what_to_send(stock_client, protocol, metadata):
    pickled = protocol.TensorChunk(
        tensor_id="t", data=b"\x80\x04K\x01.", total_chunks=1, is_last=True, metadata=metadata
    )
    with pytest.raises(grpc.RpcError) as refused:
        stock_client["ReceiveTensors"](iter([pickled]))
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "pickled tensors are not read" in str(refused.value.details())


def test_a_shape_that_makes_no_sense_is_an_invalid_argument_to_a_stock_client(stock_client, protocol):
    with pytest.raises(grpc.RpcError) as refused:
        list(stock_client["SendTensors"](protocol.TensorRequest(count=1, parameters={"shape": "ten"})))
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


class StockServer:
    """What the original might be: generated classes, a thread for each call, chunks kept in a list."""

    def __init__(self, protocol: Any) -> None:
        self.protocol = protocol
        self.received: dict[str, Any] = {}
        self.answer = protocol.TensorResponse(success=True, message="Received")

    def receive(self, chunks: Any, _: Any) -> Any:
        for tensor_id, array in self._arrays(chunks):
            self.received[tensor_id] = array
        return self.answer

    def send(self, request: Any, _: Any) -> Iterator[Any]:
        for index in range(request.count):
            yield from stock_chunks(self.protocol, f"made{index}", np.arange(1000.0) + index, 777)

    def stream(self, chunks: Any, _: Any) -> Iterator[Any]:
        for tensor_id, array in self._arrays(chunks):
            yield from stock_chunks(self.protocol, f"processed_{tensor_id}", array * 2, 4096)

    def _arrays(self, chunks: Any) -> Iterator[tuple[str, Any]]:
        open_: dict[str, list[Any]] = {}
        for chunk in chunks:
            open_.setdefault(chunk.tensor_id, []).append(chunk)
            if chunk.is_last:
                yield chunk.tensor_id, joined(open_.pop(chunk.tensor_id))


@pytest.fixture
def stock_server(protocol: Any) -> Iterator[tuple[StockServer, int]]:
    service = StockServer(protocol)
    chunk, request, response = protocol.TensorChunk, protocol.TensorRequest, protocol.TensorResponse
    methods = {
        "ReceiveTensors": grpc.stream_unary_rpc_method_handler(
            service.receive, chunk.FromString, response.SerializeToString
        ),
        "SendTensors": grpc.unary_stream_rpc_method_handler(service.send, request.FromString, chunk.SerializeToString),
        "StreamTensors": grpc.stream_stream_rpc_method_handler(
            service.stream, chunk.FromString, chunk.SerializeToString
        ),
    }
    handler = grpc.method_handlers_generic_handler(SERVICE, methods)
    stock = grpc.server(ThreadPoolExecutor(4), handlers=[handler])
    port = stock.add_insecure_port("127.0.0.1:0")
    stock.start()
    yield service, port
    stock.stop(0).wait()


def test_our_client_sends_to_a_stock_server(stock_server, talk):
    service, port = stock_server
    arrays = [np.arange(6).reshape(2, 3), np.random.default_rng(0).normal(size=1 << 18)]
    talk(port, lambda client: client.send_tensors(*arrays), shared=True)
    assert all(np.array_equal(got, sent) for got, sent in zip(service.received.values(), arrays, strict=True))


def test_our_client_receives_from_a_stock_server(stock_server, talk):
    made = talk(stock_server[1], lambda client: client.receive_tensors(2), shared=True)
    assert [np.asarray(tensor)[0] for tensor in made] == [0.0, 1.0]


@pytest.mark.parametrize("size", [3, 1 << 18])
def test_our_client_streams_through_a_stock_server(stock_server, size, talk):
    (doubled,) = talk(stock_server[1], lambda client: client.stream_tensors(np.arange(size)), shared=True)
    assert np.array_equal(np.asarray(doubled), np.arange(size) * 2)


def test_a_server_that_reports_a_failure_with_status_ok_raises_all_the_same(stock_server, talk):
    service, port = stock_server
    service.answer = service.protocol.TensorResponse(success=False, message="the disk is full")
    with pytest.raises(TransferFailed, match="the disk is full"):
        talk(port, lambda client: client.send_tensors(np.ones(3)), shared=True)


def test_a_server_that_sends_fewer_tensors_than_were_asked_for_is_told_on(protocol, talk):
    service = StockServer(protocol)
    service.send = answering(())
    with pytest.raises(MalformedMessage, match="expected 3"):
        talk_to_liar(talk, service, lambda client: client.receive_tensors(3))


def answering(chunks: Any) -> Any:
    return lambda *_: iter(chunks)


def talk_to_liar(talk: Any, service: StockServer, use: Any) -> Any:
    """A server whose SendTensors is whatever `service.send` is now."""
    protocol = service.protocol
    method = grpc.unary_stream_rpc_method_handler(
        service.send, protocol.TensorRequest.FromString, protocol.TensorChunk.SerializeToString
    )
    liar = grpc.server(
        ThreadPoolExecutor(2), handlers=[grpc.method_handlers_generic_handler(SERVICE, {"SendTensors": method})]
    )
    port = liar.add_insecure_port("127.0.0.1:0")
    liar.start()
    try:
        return talk(port, use, shared=True)
    finally:
        liar.stop(0).wait()


@pytest.mark.parametrize(
    "lie",
    [
        {"shape": "1000000000,1000000000", "size_bytes": "8000000000000000000"},
        {"size_bytes": "7"},
        {"shape": "-1"},
        {"dtype": "torch.nonsense"},
    ],
)
def test_a_server_that_lies_about_a_tensor_is_not_believed(protocol, lie, talk):
    service = StockServer(protocol)
    service.send = answering(stock_chunks(protocol, "t", np.arange(3), 100, **lie))
    with pytest.raises(TransferFailed):
        talk_to_liar(talk, service, lambda client: client.receive_tensors())


def test_a_server_that_stops_in_the_middle_of_a_tensor_is_told_on(protocol, talk):
    service = StockServer(protocol)
    service.send = answering(stock_chunks(protocol, "t", np.arange(1000), 100)[:5])
    with pytest.raises(MalformedMessage, match="the stream ended before"):
        talk_to_liar(talk, service, lambda client: client.receive_tensors())
