"""A page on its way from one server through another: what is passed on and what is said anew. Pure."""

from collections.abc import Iterable

from tessera.embedded.doors.page_sources import Source

Headers = list[tuple[bytes, bytes]]
_OF_ONE_CONNECTION = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding"
    b" upgrade".split()
)
_SEGMENTS_BEFORE_PROXY = {b"namespaces": 8, b"nodes": 6}


def split_path(raw_path: bytes) -> tuple[bytes, bytes]:
    """What leads to the page's server, and the page there; as they were written, without decoding anything."""
    segments = raw_path.split(b"/")
    count = _SEGMENTS_BEFORE_PROXY[segments[3]]
    return b"/".join(segments[:count]), b"/" + b"/".join(segments[count:])


def request_head(method: str, page: bytes, query: bytes, headers: Iterable[tuple[bytes, bytes]], to: Source) -> bytes:
    """The caller's token is for us alone. How long its body is was said in its headers, or it comes in chunks."""
    target = page + (b"?" + query if query else b"")
    kept = [(name, value) for name, value in headers if name not in _OF_ONE_CONNECTION | {b"authorization", b"host"}]
    if is_chunked(headers):
        kept.append((b"transfer-encoding", b"chunked"))
    said = [(b"host", f"{to.address}:{to.port}".encode()), *kept, (b"connection", b"close")]
    lines = [method.encode() + b" " + target + b" HTTP/1.1", *(name + b": " + value for name, value in said)]
    return b"\r\n".join((*lines, b"", b""))


def is_chunked(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    return any(name == b"transfer-encoding" and value.lower() == b"chunked" for name, value in headers)


def chunk(data: bytes) -> bytes:
    """An empty one is the last."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def answer_headers(headers: Iterable[tuple[bytes, bytes]], prefix: bytes) -> Headers:
    """A redirection within the page's server stays behind us."""
    kept = [(name.lower(), value) for name, value in headers if name.lower() not in _OF_ONE_CONNECTION]
    return [(name, prefix + value if name == b"location" and value[:1] == b"/" else value) for name, value in kept]
