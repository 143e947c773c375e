"""Header blocks: names and values, packed with a dictionary that both sides know and one history for each direction."""

import struct
import zlib
from collections.abc import Iterator, Mapping

_WORDS = (
    "options,head,post,put,delete,trace,accept,accept-charset,accept-encoding,accept-language,accept-ranges,age,"
    "allow,authorization,cache-control,connection,content-base,content-encoding,content-language,content-length,"
    "content-location,content-md5,content-range,content-type,date,etag,expect,expires,from,host,if-match,"
    "if-modified-since,if-none-match,if-range,if-unmodified-since,last-modified,location,max-forwards,pragma,"
    "proxy-authenticate,proxy-authorization,range,referer,retry-after,server,te,trailer,transfer-encoding,"
    "upgrade,user-agent,vary,via,warning,www-authenticate,method,get,status,200 OK,version,HTTP/1.1,url,public,"
    "set-cookie,keep-alive,origin"
)
_VALUES = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized"
    "403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,"
    "text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)
DICTIONARY = b"".join(struct.pack("!I", len(name)) + name.encode() for name in _WORDS.split(",")) + _VALUES.encode()
"""As the protocol prescribes it; a stream made with another one cannot be read."""
MOST_BYTES = 64 * 1024
"""Of a block when it is unpacked: a port-forward needs a hundred, and a bomb would need much more."""


class BrokenHeaders(ValueError):
    pass


class HeaderReader:
    def __init__(self) -> None:
        self._history = zlib.decompressobj(zdict=DICTIONARY)

    def read(self, block: bytes) -> Mapping[str, str]:
        try:
            unpacked = self._history.decompress(block, MOST_BYTES)
        except zlib.error as error:
            raise BrokenHeaders(f"a header block cannot be unpacked: {error}") from None
        if self._history.unconsumed_tail:
            raise BrokenHeaders(f"a header block has more than {MOST_BYTES} bytes")
        texts = list(_texts(unpacked))
        return {name.lower(): value for name, value in zip(texts[::2], texts[1::2], strict=True)}


class HeaderWriter:
    def __init__(self) -> None:
        self._history = zlib.compressobj(zdict=DICTIONARY)

    def write(self, headers: Mapping[str, str]) -> bytes:
        pieces = [struct.pack("!I", len(headers))]
        for text in (text for pair in headers.items() for text in pair):
            pieces += [struct.pack("!I", len(text.encode())), text.encode()]
        return self._history.compress(b"".join(pieces)) + self._history.flush(zlib.Z_SYNC_FLUSH)


def _texts(block: bytes) -> Iterator[str]:
    """Names and values in turn."""
    at = 0

    def take(count: int) -> bytes:
        nonlocal at
        if at + count > len(block):
            raise BrokenHeaders("a header block ends before its last value")
        at += count
        return block[at - count : at]

    def number() -> int:
        return struct.unpack("!I", take(4))[0]

    for _ in range(2 * number()):
        yield take(number()).decode("latin-1")
