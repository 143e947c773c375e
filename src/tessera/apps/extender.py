"""`tessera run extender`: the scheduler's process. It reads the cluster's state, then answers kube-scheduler."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, Coroutine
from pathlib import Path
from typing import Any

import click
import uvloop
from prometheus_client import CollectorRegistry

from tessera.apps.serving import make_app, serve
from tessera.errors import InvalidRequest
from tessera.kube.access import find_access
from tessera.kube.client import Client
from tessera.kube.informer import Informer
from tessera.kube.kinds import RESOURCE_QUOTAS
from tessera.kube.leases import Election
from tessera.kube.objects import ObjectKey
from tessera.kube.pods import CACHED_PODS
from tessera.kube.reconciler import Reconciler
from tessera.kube.timing import Backoff
from tessera.model.requests import PolicyChoice
from tessera.scheduler.binding import Binder
from tessera.scheduler.extender import Extender
from tessera.scheduler.leading import Leadership
from tessera.scheduler.nodes import CACHED_NODES
from tessera.scheduler.phases import Phases
from tessera.scheduler.waking import Waiting
from tessera.scheduler.world import World
from tessera.vendors.loading import load_catalogue

LEASE = ObjectKey("kube-system", "tessera-scheduler")
PROMPT = Backoff(first_s=0.2, most_s=5.0)
MOST_SILENT_S = 180.0


@click.command("extender")
@click.option("--kubeconfig", type=click.Path(path_type=Path), help="Which cluster; without it, as kubectl finds it.")
@click.option("--http", "address", default="127.0.0.1:8080", show_default=True, help="Where to serve plain HTTP.")
@click.option("--node-policy", default="binpack", show_default=True, help="For pods that name no node policy.")
@click.option("--card-policy", default="spread", show_default=True, help="For pods that name no card policy.")
@click.option("--leader-elect", is_flag=True, help="One of several replicas decides, the one that has the lease.")
def command(kubeconfig: Path | None, address: str, node_policy: str, card_policy: str, leader_elect: bool) -> None:
    """Answer kube-scheduler on /filter, /prioritize and /bind."""
    host, port = read_address(address)
    default = PolicyChoice(node=node_policy, cards=(card_policy,))
    uvloop.run(run(kubeconfig, host, port, default, leader_elect=leader_elect))


def read_address(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not host or not (port.isascii() and port.isdecimal()) or int(port) > 65535:
        raise InvalidRequest(f'--http is "{address}", expected an address and a port such as 127.0.0.1:8080')
    return host.strip("[]"), int(port)


async def run(
    kubeconfig: Path | None, host: str, port: int, default: PolicyChoice, *, leader_elect: bool = False
) -> None:
    world = World(load_catalogue(), default=default)
    async with Client(find_access(kubeconfig)) as client:
        pods, nodes = Informer(client, CACHED_PODS), Informer(client, CACHED_NODES)
        quotas = Informer(client, RESOURCE_QUOTAS)
        pods.subscribe(world.pod_changed)
        nodes.subscribe(world.node_changed)
        quotas.subscribe(world.quota_changed)
        phases = Phases(world)

        async def clear_up(key: ObjectKey) -> None:
            await binder.clear_up(key)

        lost: Reconciler[ObjectKey] = Reconciler("lost bindings", clear_up, backoff=PROMPT)
        waiting = Waiting(client, phases.could_be_placed)
        waking: Reconciler[str] = Reconciler("waiting pods", waiting.wake, workers=1, backoff=PROMPT)
        phases.refused = waiting.remember
        pods.subscribe(waiting.pod_changed)

        def look_again() -> None:
            waiting.note_change()
            waking.mark("all")

        world.freed = look_again
        election = Election(client, LEASE, socket.gethostname()) if leader_elect else None
        leadership = Leadership(client, pods, election=election, concerns=world.concerns)
        binder = Binder(client, world, phases.offers, pods.get, may_write=leadership.may_write, lost=lost.mark)
        watched = (pods, nodes, quotas)

        def is_ready() -> bool:
            return all(map(is_current, watched)) and leadership.is_established

        extender = Extender(phases, binder, is_ready=is_ready)
        app = make_app(extender.verbs, is_ready=is_ready, metrics=CollectorRegistry())
        works = [*(informer.run() for informer in watched), lost.run(), waking.run(), leadership.run()]
        async with running(*works, *([election.run()] if election else [])):
            await serve(app, host, port)
        if election:
            await election.resign()


def is_current(informer: Informer[Any]) -> bool:
    """Whether it knows everything and has heard of the API server lately: bookmarks come once a minute."""
    return informer.is_synced and (informer.silent_s or 0.0) < MOST_SILENT_S


@contextlib.asynccontextmanager
async def running(*works: Coroutine[Any, Any, None]) -> AsyncGenerator[None]:
    """Work in the background for as long as the block lasts; if one fails, all end with its error."""
    try:
        async with asyncio.TaskGroup() as tasks:
            working = [tasks.create_task(work) for work in works]
            yield
            for task in working:
                task.cancel()
    except ExceptionGroup as group:
        raise group.exceptions[0] from None
