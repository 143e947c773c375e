"""A node as it is kept in a cache: what decides about cards and hosts, and no more."""

from tessera.kube.kinds import NODES
from tessera.model.nodes import NodeDocument, NodeMetadata


class Metadata(NodeMetadata, frozen=True, kw_only=True, gc=False):
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None


class CachedNode(NodeDocument, frozen=True, kw_only=True, gc=False):
    metadata: Metadata


CACHED_NODES = NODES.decoded_as(CachedNode)
