"""Bodies that go on for a while end with whoever listens, or by themselves."""

import asyncio

import pytest

from tessera.embedded.serving.answers import Stream, send_while_heard


class Listener:
    """Somebody who listens until told to hang up."""

    def __init__(self):
        self.sent = []
        self.hangs_up = asyncio.Event()

    async def receive(self):
        await self.hangs_up.wait()
        return {"type": "http.disconnect"}

    async def send(self, message):
        self.sent.append(message)


@pytest.mark.asyncio
async def test_a_stream_ends_when_nobody_listens_any_more():
    listener, ended = Listener(), asyncio.Event()

    async def run(write):
        try:
            await write(b"first\n")
            listener.hangs_up.set()
            await asyncio.Event().wait()
        finally:
            ended.set()

    await asyncio.wait_for(send_while_heard(Stream(run), listener.receive, listener.send), 10)
    assert ended.is_set()
    assert [message.get("body") for message in listener.sent[1:]] == [b"", b"first\n"]


@pytest.mark.asyncio
async def test_a_stream_that_ends_by_itself_is_closed_properly():
    listener = Listener()

    async def run(write):
        await write(b"only\n")

    await asyncio.wait_for(send_while_heard(Stream(run), listener.receive, listener.send), 10)
    assert listener.sent[-1] == {"type": "http.response.body", "body": b""}


@pytest.mark.asyncio
async def test_what_goes_wrong_in_a_stream_is_not_swallowed():
    listener = Listener()

    async def run(_):
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        await send_while_heard(Stream(run), listener.receive, listener.send)
