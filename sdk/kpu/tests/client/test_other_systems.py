"""Systems that are not Linux: there is no shared memory of our kind, and everything else works."""

import subprocess
import sys

import numpy as np

WITHOUT_LINUX = """
import fcntl, os, socket, sys

for module, words in ((fcntl, ("SEAL",)), (os, ("eventfd", "EFD_", "memfd", "MFD_")), (socket, ("SO_PEERCRED",))):
    for name in [name for name in dir(module) if any(word in name for word in words)]:
        delattr(module, name)

class Socket(socket.socket):
    def __init__(self, family=-1, type=-1, *more, **how):
        if (family, type) == (socket.AF_UNIX, socket.SOCK_SEQPACKET):
            raise OSError(43, "Protocol not supported")
        super().__init__(family, type, *more, **how)

socket.socket = Socket

import asyncio
import numpy as np
from kpu.client import TensorClient, empty

async def main():
    async with TensorClient("127.0.0.1", int(sys.argv[1])) as client:
        sent = empty((1 << 20,), "float32")
        sent[:] = 3
        (back,) = await client.stream_tensors(sent)
        print(client.transfer.stats.path, float(np.asarray(back).sum()))

asyncio.run(main())
"""


def test_tensors_go_over_grpc(serve):
    command = [sys.executable, "-c", WITHOUT_LINUX, str(serve().port)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout.split(), done.stderr) == (["grpc", str(float(np.float32(3 << 20)))], "")
