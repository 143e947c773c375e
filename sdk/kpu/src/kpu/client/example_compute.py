"""Five ways to use a Compute, to read and to run.

    python -m kpu.client.example_compute                      all of them, one after the other
    python -m kpu.client.example_compute suspend-resume       one of them

They need a cluster with the KPU operator, found as kubectl finds it. `KPU_EXAMPLE_IMAGE` names another image.
"""

import asyncio
import os
import re
import shutil
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
from kubernetes.client import ApiException

from kpu.client import Compute, ComputeFailed, InvalidCompute, ReadyTimeout, Suspended
from kpu.tensors import the_torch

IMAGE = os.environ.get("KPU_EXAMPLE_IMAGE", "localhost:5001/kpu-torch-server:latest")


def random_tensor(*shape: int) -> Any:
    """A torch tensor where there is torch; numpy arrays are just as welcome."""
    torch = the_torch()
    return np.random.default_rng().standard_normal(shape, np.float32) if torch is None else torch.randn(*shape)


async def context_manager() -> None:
    """The block is entered when the Compute is ready; leaving it deletes the Compute."""
    async with Compute(name="example-context", image=IMAGE) as compute:
        response = await compute.send_tensors(random_tensor(100, 100))
        print(response.message)
        (received,) = await compute.receive_tensors(count=1, parameters={"shape": "20,20"})
        print(f"received a tensor of shape {tuple(received.shape)}")


async def manual_life_cycle() -> None:
    """The same by hand, for a Compute that outlives a block. What happens while it starts is printed."""
    compute = Compute(
        name="example-manual",
        image=IMAGE,
        env={"LOG_LEVEL": "DEBUG", "CHUNK_SIZE": "2097152"},
        labels={"team": "ml"},
        on_event=lambda reason, message: print(f"  {reason}: {message}"),
    )
    try:
        await compute.ready(timeout=120)
        processed = await compute.stream_tensors(random_tensor(10, 10), random_tensor(20, 20))
        print(f"{len(processed)} tensors came back, the last call: {compute.transfer.stats}")
        if compute.resource and compute.resource.status:
            for condition in compute.resource.status.conditions:
                print(f"{condition.type}={condition.status}")
    finally:
        await compute.delete()


async def suspend_resume() -> None:
    """A suspended Compute keeps its name and gives its cards back."""
    compute = Compute(name="example-suspend", image=IMAGE)
    try:
        await compute.ready()
        await compute.suspend()
        print(f"suspended, ready: {compute.is_ready()}")
        await compute.resume()
        await compute.ready()
        print((await compute.send_tensors(random_tensor(8))).message)
    finally:
        await compute.delete()


async def external_access() -> None:
    """From outside the cluster a port is forwarded without being asked; `host` is for who wants to do it."""
    compute = Compute(name="example-external", image=IMAGE)
    try:
        await compute.ready()
        print((await compute.send_tensors(random_tensor(8))).message)
        if shutil.which("kubectl") is None:
            print("kubectl is not installed, so only the built-in way is shown")
            return
        async with kubectl_port_forward(compute) as port:
            through_kubectl = Compute(name="example-external", image=IMAGE, host="localhost", port=port)
            await through_kubectl.ready()
            print(f"through localhost:{port}: {(await through_kubectl.send_tensors(random_tensor(8))).message}")
            await through_kubectl.close()
    finally:
        await compute.delete()


@asynccontextmanager
async def kubectl_port_forward(compute: Compute) -> AsyncGenerator[int]:
    """The local port that leads to the Compute's Service while the block runs."""
    forward = await asyncio.create_subprocess_exec(
        *("kubectl", "port-forward", f"--namespace={compute.namespace}", f"service/{compute.name}", ":50051"),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert forward.stdout is not None
        line = (await forward.stdout.readline()).decode()
        found = re.search(r":(\d+) ->", line)
        if found is None:
            raise ConnectionError(f"kubectl forwards no port of {compute.name}: {line.strip()}")
        yield int(found[1])
    finally:
        forward.terminate()
        await forward.wait()


async def error_handling() -> None:
    """What can go wrong is an exception that says why, as early as it is known."""
    try:
        Compute(name="Not_A_Name")
    except InvalidCompute as error:
        print(f"refused before anything was sent: {error}")

    compute = Compute(name="example-errors", image="localhost:5001/no-such-image:latest")
    try:
        await compute.ready(timeout=15)
    except ComputeFailed as error:
        print(f"will never be ready, {error.reason}: {error.message}")
    except ReadyTimeout as error:
        print(f"not ready in time: {error}")
    finally:
        await compute.delete()

    suspended = Compute(name="example-errors-suspended", image=IMAGE, suspend=True)
    try:
        await suspended.send_tensors(random_tensor(8))
    except Suspended as error:
        print(f"used while it is suspended: {error}")
    finally:
        await suspended.delete()


SCENARIOS: Mapping[str, Callable[[], Awaitable[None]]] = {
    "context-manager": context_manager,
    "manual": manual_life_cycle,
    "suspend-resume": suspend_resume,
    "external": external_access,
    "errors": error_handling,
}


async def run(names: list[str]) -> None:
    for name in names or SCENARIOS:
        print(f"== {name}")
        await SCENARIOS[name]()


def main(arguments: list[str]) -> int:
    unknown = [name for name in arguments if name not in SCENARIOS]
    if unknown:
        print(f"there is no scenario {unknown[0]!r}, expected one of {', '.join(SCENARIOS)}", file=sys.stderr)
        return 2
    try:
        asyncio.run(run(arguments))
    except ApiException as error:
        print(f"the API server refused: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
