"""What a client is told of its server and of its calls, checked where it is told.

gRPC takes all of it later and says little: of metadata that it cannot send a call never ends, a port beyond the last
begins anew at 0, and a time without end is none.
"""

import ipaddress
import operator
import re
from collections.abc import Iterable, Sequence
from typing import Any, cast

from kpu.client.deadlines import is_time
from kpu.wire.splitting import LARGEST_CHUNK_BYTES, SMALLEST_CHUNK_BYTES

LAST_PORT = 65535
LONGEST_S = 2**31 // 1000
"""As many seconds as gRPC can count in milliseconds; a longer time is as good as none."""
BINARY = "-bin"
_KEY = re.compile(r"[0-9a-z_.-]+", re.ASCII)

Pairs = Sequence[tuple[str, str | bytes]]


def checked_host(host: Any) -> str:
    if not (isinstance(host, str) and host.strip()):
        raise ValueError(f"host is {host!r}, expected a name or an address, such as 'localhost'")
    if ":" in host and not _is_address(host.removeprefix("[").removesuffix("]")):
        raise ValueError(f"host is {host!r}, expected it without a port, which is given as `port`")
    return host


def checked_port(port: Any) -> int:
    number = _whole(port)
    if number is None or not 0 < number <= LAST_PORT:
        raise ValueError(f"port is {port!r}, expected a whole number from 1 to {LAST_PORT}")
    return number


def checked_timeout(timeout: Any) -> float | None:
    """None for a time that no call reaches."""
    if timeout is None:
        return None
    if not _is_positive(timeout):
        raise ValueError(f"timeout is {timeout!r}, expected seconds, more than 0, or None to wait for ever")
    return float(timeout) if timeout <= LONGEST_S else None


def checked_keepalive(keepalive: Any) -> float:
    if not _is_positive(keepalive) or keepalive > LONGEST_S:
        raise ValueError(f"keepalive is {keepalive!r}, expected seconds, more than 0 and at most {LONGEST_S}")
    return float(keepalive)


def checked_chunk_size(chunk_size: Any) -> int:
    number = _whole(chunk_size)
    if number is None or not SMALLEST_CHUNK_BYTES <= number <= LARGEST_CHUNK_BYTES:
        raise ValueError(
            f"chunk_size is {chunk_size!r}, expected {SMALLEST_CHUNK_BYTES} to {LARGEST_CHUNK_BYTES} bytes"
        )
    return number


def checked_metadata(metadata: Any) -> Pairs:
    """Pairs that a call can carry."""
    if not isinstance(metadata, Iterable) or isinstance(metadata, str | bytes):
        raise ValueError(f"metadata is {metadata!r}, expected pairs, such as [('compute-id', 'lab/worker')]")
    pairs = [*cast("Iterable[Any]", metadata)]
    for pair in pairs:
        _check_pair(pair)
    return pairs


def proof_of(token: Any) -> Pairs:
    """What shows a server that we may call it. A token that was read from a file has often a line's end, which is none
    of it."""
    if token is not None and not isinstance(token, str):
        raise ValueError(f"token is of type {type(token).__name__}, expected a string")
    bare = token.strip() if token else ""
    if not _is_printable(bare):
        raise ValueError(
            "the token has characters that no call can carry, expected printable ASCII; look at its source"
        )
    return (("authorization", f"Bearer {bare}"),) if bare else ()


def _check_pair(pair: Any) -> None:
    """Values are not told: one of them may be a secret."""
    if not (isinstance(pair, tuple | list) and len(cast("Sequence[Any]", pair)) == 2):
        raise ValueError("metadata has something that is no pair, expected a name and a value in each")
    key, value = cast("Sequence[Any]", pair)
    if not (isinstance(key, str) and _KEY.fullmatch(key)):
        raise ValueError(f"a name in metadata is {key!r}, expected lower-case letters, digits, '-', '_' and '.'")
    is_text = isinstance(value, str) and _is_printable(value)
    if not is_text and not (isinstance(value, bytes) and key.endswith(BINARY)):
        raise ValueError(
            f"metadata[{key!r}] has a value that no call can carry, expected printable ASCII, or bytes where the name "
            f"ends in {BINARY!r}"
        )


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_positive(seconds: Any) -> bool:
    return seconds is not None and is_time(seconds) and bool(seconds > 0)


def _is_printable(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _whole(number: Any) -> int | None:
    try:
        return None if isinstance(number, bool) else operator.index(number)
    except TypeError:
        return None
