"""What a client is told is checked where it is told, and what gRPC would make of it later never comes to be."""

import asyncio
import math
import re

import numpy as np
import pytest

from kpu.client import TensorClient
from kpu.client.options import LONGEST_S, checked_timeout

PAIR = "expected a name and a value in each"


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"host": None}, "host is None, expected a name or an address, such as 'localhost'"),
        ({"host": "localhost:6000"}, "host is 'localhost:6000', expected it without a port, which is given as `port`"),
        ({"port": 70000}, "port is 70000, expected a whole number from 1 to 65535"),
        ({"port": "50051"}, "port is '50051', expected a whole number from 1 to 65535"),
        ({"port": True}, "port is True, expected a whole number from 1 to 65535"),
        ({"timeout": 0}, "timeout is 0, expected seconds, more than 0, or None to wait for ever"),
        ({"timeout": "5"}, "timeout is '5', expected seconds, more than 0, or None to wait for ever"),
        ({"keepalive": None}, f"keepalive is None, expected seconds, more than 0 and at most {LONGEST_S}"),
        ({"keepalive": math.nan}, f"keepalive is nan, expected seconds, more than 0 and at most {LONGEST_S}"),
        ({"keepalive": 1e9}, f"keepalive is 1000000000.0, expected seconds, more than 0 and at most {LONGEST_S}"),
        ({"chunk_size": None}, "chunk_size is None, expected 1024 to 16777216 bytes"),
        ({"chunk_size": 2048.5}, "chunk_size is 2048.5, expected 1024 to 16777216 bytes"),
        ({"token": b"secret"}, "token is of type bytes, expected a string"),
        ({"metadata": "x"}, "metadata is 'x', expected pairs, such as [('compute-id', 'lab/worker')]"),
        ({"metadata": {"a": "b"}}, f"metadata has something that is no pair, {PAIR}"),
        ({"metadata": [("a",)]}, f"metadata has something that is no pair, {PAIR}"),
        (
            {"metadata": [("Trace", "1")]},
            "a name in metadata is 'Trace', expected lower-case letters, digits, '-', '_' and '.'",
        ),
    ],
)
def test_what_cannot_be_right_is_refused_in_one_sentence(wrong, sentence):
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        TensorClient(**wrong)


@pytest.mark.parametrize("value", ["é", "two\nlines", b"raw", 5, None])
def test_metadata_that_no_call_can_carry_is_refused_and_not_told(value):
    with pytest.raises(ValueError, match=r"^metadata\['a'\] has a value that no call can carry, expected printable"):
        TensorClient(metadata=[("a", value)])


@pytest.mark.parametrize("timeout", [math.inf, 1e12, np.float32(30)])
def test_a_time_that_no_call_reaches_ends_none(serve, timeout):
    async def call() -> bool:
        async with TensorClient("127.0.0.1", serve().port, timeout=timeout) as client:
            return (await client.send_tensors(np.ones(3))).success

    assert asyncio.run(call())
    assert checked_timeout(math.inf) is None


def test_metadata_may_hold_bytes_where_its_name_says_so(serve):
    async def call() -> bool:
        async with TensorClient("127.0.0.1", serve().port, metadata=[("trace-bin", b"\xff"), ("a", "b c")]) as client:
            return (await client.send_tensors(np.ones(3))).success

    assert asyncio.run(call())
