"""gRPC methods from typed functions. What gRPC itself leaves untyped stays in here."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import grpc
import grpc.aio
from google.protobuf.message import Message

if TYPE_CHECKING:  # generic in their stubs only
    Context = grpc.aio.ServicerContext[Any, Any]
    Method = grpc.RpcMethodHandler[Any, Any]
else:
    Context, Method = grpc.aio.ServicerContext, grpc.RpcMethodHandler

AskedT = TypeVar("AskedT", bound=Message)
AnsweredT = TypeVar("AnsweredT", bound=Message)


def unary(method: Callable[[AskedT, Context], Awaitable[AnsweredT]], asked: type[AskedT]) -> Method:
    """One question, one answer."""
    return grpc.unary_unary_rpc_method_handler(
        cast("Any", method), request_deserializer=asked.FromString, response_serializer=_serialize
    )


def stream(method: Callable[[AskedT, Context], AsyncIterator[AnsweredT]], asked: type[AskedT]) -> Method:
    """One question, answers for as long as the caller listens."""
    return grpc.unary_stream_rpc_method_handler(
        cast("Any", method), request_deserializer=asked.FromString, response_serializer=_serialize
    )


def _serialize(message: Message) -> bytes:
    return message.SerializeToString()
