"""Connections to one server. gRPC ties a channel to the event loop it was made in, so each loop has its own."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from weakref import WeakKeyDictionary

import grpc

from kpu.wire.splitting import LARGEST_MESSAGE_BYTES

Trust = bytes | str | Path | bool | None

CONNECT_SECONDS = 5.0
KEEPALIVE_SECONDS = 20.0
_RECONNECT_MS = (100, 2000)


def target(host: str, port: int) -> str:
    bare = ":" in host and not host.startswith("[")
    return f"[{host}]:{port}" if bare else f"{host}:{port}"


def credentials(tls: Trust) -> grpc.ChannelCredentials | None:
    """Whom to trust: the certificates of this machine (True), or those given as PEM or as a file of it."""
    if tls is None or tls is False:
        return None
    if tls is True:
        return grpc.ssl_channel_credentials()
    return grpc.ssl_channel_credentials(tls if isinstance(tls, bytes) else Path(tls).read_bytes())


def options(keepalive_seconds: float, server_name: str | None) -> Sequence[tuple[str, int | str]]:
    """A peer that went silent is noticed, and one that came back is tried again soon."""
    keepalive_ms = int(keepalive_seconds * 1000)
    first_ms, longest_ms = _RECONNECT_MS
    named = [("grpc.ssl_target_name_override", server_name)] if server_name else []
    return [
        ("grpc.max_receive_message_length", LARGEST_MESSAGE_BYTES),
        ("grpc.max_send_message_length", -1),
        ("grpc.keepalive_time_ms", keepalive_ms),
        ("grpc.keepalive_timeout_ms", max(1000, keepalive_ms // 2)),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.initial_reconnect_backoff_ms", first_ms),
        ("grpc.min_reconnect_backoff_ms", int(CONNECT_SECONDS * 1000)),
        ("grpc.max_reconnect_backoff_ms", longest_ms),
        ("grpc.use_local_subchannel_pool", 1),
        *named,
    ]


class Channels:
    """The channels to one server, made when they are first used."""

    def __init__(self, address: str, tls: Trust, keepalive_seconds: float, server_name: str | None) -> None:
        self._address = address
        self._credentials = credentials(tls)
        self._options = options(keepalive_seconds, server_name)
        self._channels: WeakKeyDictionary[asyncio.AbstractEventLoop, grpc.aio.Channel] = WeakKeyDictionary()

    def here(self) -> grpc.aio.Channel:
        """The channel of the running loop."""
        loop = asyncio.get_running_loop()
        channel = self._channels.get(loop)
        if channel is None:
            channel = self._channels[loop] = self._make()
        return channel

    @property
    def are_open(self) -> bool:
        """Whether any loop has one."""
        return bool(self._channels)

    async def close(self) -> None:
        channel = self._channels.pop(asyncio.get_running_loop(), None)
        if channel is not None:
            await channel.close()

    def _make(self) -> grpc.aio.Channel:
        if self._credentials is None:
            return grpc.aio.insecure_channel(self._address, options=self._options)
        return grpc.aio.secure_channel(self._address, self._credentials, options=self._options)
