"""What the server is made of, as whoever composes it gives it."""

from ipaddress import IPv4Network

import msgspec

from tessera.embedded.access import Authorizer, Tokens
from tessera.embedded.admitting import Admission
from tessera.embedded.resources import Registry
from tessera.embedded.serving.addresses import RANGE
from tessera.embedded.serving.nodes import Nodes
from tessera.embedded.store import Store


class Site(msgspec.Struct, kw_only=True):
    """`authority` is the certificate that signs the server's own, as PEM: every namespace is told it.

    `address` is where clients find the server, as they write it in a URL. Services have theirs in `service_network`.
    """

    store: Store
    registry: Registry
    tokens: Tokens
    authorizer: Authorizer
    admission: Admission
    authority: str
    address: str
    service_network: IPv4Network = RANGE
    nodes: Nodes | None = None
