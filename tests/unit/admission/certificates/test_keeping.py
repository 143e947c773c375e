"""What `Keeper` does is tested on a real API server, in tests/admission; here, that it does not give up."""

import asyncio
from typing import Any, cast

import pytest

from tessera.admission.certificates import Keeper, Place, ServingContext
from tessera.errors import Unreachable
from tessera.kube import Client, ObjectKey
from tests.unit.kube.clocks import FakeClock


class NoServer:
    def __init__(self) -> None:
        self.asked = 0

    async def get(self, *_: Any, **__: Any) -> None:
        self.asked += 1
        raise Unreachable("get secrets kube-system/tls: nobody answers")


@pytest.mark.asyncio
async def test_a_failure_is_tried_again():
    server, clock = NoServer(), FakeClock()
    place = Place(secret=ObjectKey("kube-system", "tls"), configuration="hami-webhook", names=("a",))
    keeper = Keeper(cast("Client", server), place, ServingContext(), clock=clock)
    keeping = asyncio.create_task(keeper.run(every_s=10))
    await clock.until_asleep()
    clock.advance(12)
    await clock.until_asleep()
    keeping.cancel()
    assert server.asked == 2
