"""kube-scheduler hears of a freed card before we do, is refused once more, and must be woken when we have heard."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from tests.kube.proxy import Proxy
from tests.scheduler.conftest import Scheduling, a_pod

CARDS = 32
WHOLE = 81_920


def test_a_pod_refused_for_lack_of_news_is_woken_by_the_news(scheduling: Scheduling, tmp_path: Path):
    names = [f"whole-{number}" for number in range(CARDS)]
    with late_watches(scheduling, tmp_path) as (proxy, loop):
        scheduling.create(*(a_pod(name, memory=WHOLE) for name in names))
        scheduling.wait_until_running(*names)
        scheduling.create(a_pod("waiting", memory=1))
        scheduling.wait_until_refused("waiting")
        scheduling.wait_until_parked()
        before = scheduling.refusals()
        loop.call_soon_threadsafe(proxy.withhold_answers)
        scheduling.cluster.kubectl("delete", "pod", "whole-7")
        scheduling.wait_until_refused_again(before)
        scheduling.wait_until_parked()
        loop.call_soon_threadsafe(proxy.resume)
        scheduling.wait_until_running("waiting")


@contextmanager
def late_watches(scheduling: Scheduling, directory: Path) -> Iterator[tuple[Proxy, asyncio.AbstractEventLoop]]:
    """Let the extender reach the API server through a proxy only, which runs in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    proxy = Proxy(scheduling.cluster.control_plane.url)
    asyncio.run_coroutine_threadsafe(proxy.__aenter__(), loop).result()
    scheduling.extender.stop()
    scheduling.start_extender(by_way_of(proxy, scheduling.cluster.kubeconfig, directory))
    try:
        yield proxy, loop
    finally:
        scheduling.extender.stop()
        scheduling.start_extender()
        asyncio.run_coroutine_threadsafe(proxy.__aexit__(None, None, None), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def by_way_of(proxy: Proxy, kubeconfig: Path, directory: Path) -> Path:
    document = yaml.safe_load(kubeconfig.read_text())
    document["clusters"][0]["cluster"] |= {"server": proxy.server, "tls-server-name": "kubernetes"}
    path = directory / "by-way-of-a-proxy.kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path
