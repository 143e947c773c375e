"""What the doctor looks at: all that is ours in a cluster, as far as the user may read it."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from tessera.errors import KubeError
from tessera.kube.client import Client
from tessera.kube.kinds import CUSTOM_RESOURCE_DEFINITIONS, Selection
from tessera.kube.lease_records import LeaseSpec
from tessera.kube.objects import AnyObject, identify
from tessera.model.catalogue import Catalogue
from tessera.views.documents import (
    POD_WARNINGS,
    VIEWED_EVENTS,
    VIEWED_LEASES,
    VIEWED_NODES,
    VIEWED_PODS,
    ViewedLease,
    ViewedPod,
    read_time,
)
from tessera.views.holdings import read_holdings
from tessera.views.installed import (
    AGENT,
    KEPT_CONFIG_MAPS,
    KEPT_SECRETS,
    LEADER_LEASES,
    NAME_LABEL,
    NAMESPACE,
    SCHEDULER,
    SECRET,
    SELF_REVIEWS,
    WEBHOOKS,
    KeptData,
    WebhookConfiguration,
)
from tessera.views.looking import Source, read_all
from tessera.views.nodes import NodeView, view_nodes
from tessera.views.pods import PodView, view_pods

NO_SPEC = LeaseSpec()


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """None is what could not be read; `unread` says why. `leaders` are the holders of leases, "" of one that lapsed."""

    version: str
    clock_ahead_s: float | None = None
    nodes: tuple[NodeView, ...] | None = None
    pods: tuple[PodView, ...] | None = None
    components: tuple[ViewedPod, ...] | None = None
    leaders: dict[str, str] | None = None
    webhooks: tuple[WebhookConfiguration, ...] | None = None
    secrets: tuple[KeptData, ...] | None = None
    configurations: tuple[KeptData, ...] | None = None
    definitions: tuple[str, ...] | None = None
    unread: tuple[str, ...] = ()


async def observe_cluster(client: Client, catalogue: Catalogue) -> Observed:
    """A cluster that does not answer, or that does not know us, is an error."""
    version = await client.server_version()
    clock_ahead_s = await _compare_clocks(client)
    nodes, pods = Source(client, VIEWED_NODES), Source(client, VIEWED_PODS)
    leases = Source(client, VIEWED_LEASES, Selection(namespace=NAMESPACE))
    events = Source(client, VIEWED_EVENTS, Selection(fields=POD_WARNINGS))
    components = Source(client, VIEWED_PODS, _ours(labels=f"{NAME_LABEL} in ({SCHEDULER},{AGENT})"))
    webhooks = Source(client, WEBHOOKS)
    secrets = Source(client, KEPT_SECRETS, _ours(fields=f"metadata.name={SECRET}"))
    configurations = Source(client, KEPT_CONFIG_MAPS, _ours(fields=f"metadata.name={SCHEDULER}"))
    definitions = Source(client, CUSTOM_RESOURCE_DEFINITIONS.decoded_as(AnyObject))
    sources: tuple[Source[Any], ...] = (
        *(nodes, pods, leases, events, components),
        *(webhooks, secrets, configurations, definitions),
    )
    await read_all(sources)
    now = datetime.now(UTC)
    holdings = None if pods.items is None else read_holdings(pods.items, catalogue)
    return Observed(
        version=str(version.get("gitVersion", "")),
        clock_ahead_s=clock_ahead_s,
        nodes=None if nodes.items is None else view_nodes(nodes.items, holdings, leases.items, catalogue, now),
        pods=None if holdings is None else view_pods(holdings, nodes.items or (), events.items or (), catalogue),
        components=components.items,
        leaders=None if leases.items is None else leaders_among(leases.items, now),
        webhooks=webhooks.items,
        secrets=secrets.items,
        configurations=configurations.items,
        definitions=None if definitions.items is None else tuple(identify(it).key.name for it in definitions.items),
        unread=tuple(source.trouble for source in sources if source.trouble),
    )


def leaders_among(leases: Iterable[ViewedLease], now: datetime) -> dict[str, str]:
    """Who leads, by the names of the leases that our schedulers hold; nobody where one is no longer renewed."""
    leaders: dict[str, str] = {}
    for lease in leases:
        spec = lease.spec or NO_SPEC
        renewed_at = read_time(spec.renew_time)
        lasts = timedelta(seconds=spec.lease_duration_seconds or 0)
        stands = renewed_at is not None and now - renewed_at <= lasts
        if lease.metadata.name in LEADER_LEASES:
            leaders[lease.metadata.name] = (spec.holder_identity or "") if stands else ""
    return leaders


def _ours(*, labels: str = "", fields: str = "") -> Selection:
    return Selection(namespace=NAMESPACE, labels=labels, fields=fields)


async def _compare_clocks(client: Client) -> float | None:
    """How far our clock is ahead of the API server's, within a second; None where it does not tell its time.

    Everybody may ask who they are, and the answer is stamped with the server's time, in whole seconds.
    """
    before = datetime.now(UTC)
    try:
        review = await client.create(SELF_REVIEWS, {"apiVersion": SELF_REVIEWS.api_version, "kind": SELF_REVIEWS.name})
    except KubeError:
        return None
    asked_at = before + (datetime.now(UTC) - before) / 2
    told_at = read_time(review.metadata.creation_timestamp)
    return None if told_at is None else (asked_at - told_at).total_seconds() - 0.5
