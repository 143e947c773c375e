"""The collector's shell where a watch is behind: what it does not know yet is looked for before anything is let go."""

from typing import Any, cast

import msgspec
import pytest

from tessera.embedded.controllers.collecting import Collector
from tessera.embedded.controllers.objects import Metadata, OwnerReference, Thing
from tessera.embedded.controllers.watching import Watching
from tessera.kube.caching import Change
from tessera.kube.client import Client
from tessera.kube.kinds import DEPLOYMENTS, Kind, Selection, kind_of
from tessera.kube.listing import Page

pytestmark = pytest.mark.asyncio
REPLICA_SETS = kind_of("apps", "v1", "replicasets", "ReplicaSet")
OWNER = Metadata(
    name="web", namespace="default", uid="owner", deletion_timestamp="2026-01-01T00:00:00Z", finalizers=("orphan",)
)
OWNED = Metadata(
    name="web-1",
    namespace="default",
    uid="owned",
    owner_references=(OwnerReference(api_version="apps/v1", kind="Deployment", name="web", uid="owner"),),
)


class ApiServer:
    """Knows more than the collector has been told."""

    def __init__(self, *replica_sets: Metadata) -> None:
        self._replica_sets = replica_sets
        self.patched: dict[str, Any] = {}

    async def list(self, kind: Kind[Thing], _: Selection) -> Page[Thing]:
        found = self._replica_sets if kind.plural == "replicasets" else ()
        return Page(tuple(Thing(metadata=metadata) for metadata in found), "1")

    async def patch(self, _: Kind[Any], name: str, body: dict[str, Any], **__: Any) -> None:
        self.patched[name] = body["metadata"]


async def reconcile_owner(server: ApiServer) -> None:
    collector = Collector(cast("Client", server), cast("Watching", None))
    collector.__dict__["_kinds"] |= {
        ("apps", "deployments"): DEPLOYMENTS.decoded_as(Thing),
        ("apps", "replicasets"): REPLICA_SETS.decoded_as(Thing),
    }
    collector._notice(("apps", "deployments"), Change(OWNER.key, None, Thing(metadata=OWNER)))  # pyright: ignore[reportPrivateUsage]
    await collector._reconcile("owner")  # pyright: ignore[reportPrivateUsage]


async def test_what_is_owned_and_not_known_yet_is_disowned_before_its_owner_goes():
    server = ApiServer(OWNED)
    await reconcile_owner(server)
    assert server.patched.keys() == {"web-1"}
    assert server.patched["web-1"]["ownerReferences"] is None


async def test_an_owner_that_owns_nothing_goes():
    server = ApiServer(msgspec.structs.replace(OWNED, owner_references=None))
    await reconcile_owner(server)
    assert server.patched.keys() == {"web"}
    assert server.patched["web"]["finalizers"] is None
