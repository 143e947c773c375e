"""Connections to one server. gRPC ties a channel to the event loop it was made in, so each loop has its own."""

import asyncio
import ipaddress
import os
from collections.abc import Sequence
from pathlib import Path

import grpc

from kpu.errors import TransferFailed
from kpu.wire.splitting import LARGEST_MESSAGE_BYTES

Trust = bytes | str | Path | bool | None
Options = Sequence[tuple[str, int | str]]

CONNECT_SECONDS = 5.0
KEEPALIVE_SECONDS = 20.0
CLUSTER_DOMAIN = ".cluster.local"
_RECONNECT_MS = (100, 2000)
_users = set[int]()
"""The process that first used gRPC. In a forked child it is still the parent."""


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


def route_options(host: str, server_name: str | None) -> Options:
    """How to get to the server, and whom its certificate must name. No proxy leads to this machine or to a cluster."""
    direct = [("grpc.enable_http_proxy", 0)] if is_near(host) else []
    named = [("grpc.ssl_target_name_override", server_name)] if server_name else []
    return [*direct, *named]


def transfer_options(keepalive_seconds: float) -> Options:
    """A peer that went silent is noticed, and one that came back is tried again soon."""
    keepalive_ms = int(keepalive_seconds * 1000)
    first_ms, longest_ms = _RECONNECT_MS
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
    ]


def is_near(host: str) -> bool:
    """Whether it is this machine, or an address that has no meaning outside of one network."""
    try:
        return not ipaddress.ip_address(host.strip("[]")).is_global
    except ValueError:
        return host == "localhost" or host.endswith(CLUSTER_DOMAIN)


def refuse_forked_child() -> None:
    """Rather than let its calls hang."""
    if not _users:
        _users.add(os.getpid())
    if os.getpid() not in _users:
        raise TransferFailed(
            "this process was forked from one that had used gRPC, which does not survive a fork: start processes with "
            'the method "spawn", as in multiprocessing.get_context("spawn")'
        )


class Channels:
    """The channels to one server, made when they are first used."""

    def __init__(self, host: str, port: int, tls: Trust, keepalive_seconds: float, server_name: str | None) -> None:
        self.address = target(host, port)
        self._credentials = credentials(tls)
        self._options = [*transfer_options(keepalive_seconds), *route_options(host, server_name)]
        self._channels: dict[asyncio.AbstractEventLoop, grpc.aio.Channel] = {}

    def here(self) -> grpc.aio.Channel:
        """The channel of the running loop. One that waits before it connects again would fail a call without trying.

        It makes way for a new one, and lasts for as long as calls use it.
        """
        refuse_forked_child()
        loop = asyncio.get_running_loop()
        channel = self._channels.get(loop)
        if channel is None or channel.get_state() is grpc.ChannelConnectivity.TRANSIENT_FAILURE:
            self._drop_those_of_ended_loops()
            channel = self._channels[loop] = self._make()
        return channel

    @property
    def are_open(self) -> bool:
        """Whether any loop has one."""
        self._drop_those_of_ended_loops()
        return bool(self._channels)

    async def close(self) -> None:
        channel = self._channels.pop(asyncio.get_running_loop(), None)
        if channel is not None:
            await channel.close()

    def _drop_those_of_ended_loops(self) -> None:
        """A channel closes itself when it is dropped; nobody can await that in a loop that has ended."""
        for loop in [*self._channels]:
            if loop.is_closed():
                self._channels.pop(loop, None)

    def _make(self) -> grpc.aio.Channel:
        if self._credentials is None:
            return grpc.aio.insecure_channel(self.address, options=self._options)
        return grpc.aio.secure_channel(self.address, self._credentials, options=self._options)
