"""Makes what a Compute needs as it should be, and takes over nothing that is somebody else's.

Objects are applied, and what is wanted and what came of it is remembered. While neither has changed nothing is sent; an
operator that starts anew applies everything once, which changes nothing where all is as it should be.
"""

import hashlib
import secrets
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec
import structlog
from msgspec.structs import replace

from tessera.errors import AlreadyExists, ApiError, BadRequest, Conflict, Forbidden, Invalid, KubeError, NotFound
from tessera.kube.client import Client, Deletion
from tessera.kube.kinds import SECRETS, SERVICES, Kind
from tessera.kube.objects import Document, ObjectKey
from tessera.operators.compute_children import (
    ComputeSettings,
    digest_on,
    is_confined,
    make_route,
    make_secret,
    make_service,
    make_stateful_set,
    secret_name,
    set_name,
    token_digest,
)
from tessera.operators.compute_ending import empty
from tessera.operators.compute_objects import (
    COMPUTE_DOCUMENTS,
    GRPC_ROUTES,
    MANAGER,
    NAME_LABEL,
    STATEFUL_SETS,
    Compute,
)
from tessera.operators.compute_permitting import find_unpermitted
from tessera.operators.compute_pods import Trouble
from tessera.operators.compute_refusals import find_refusal, read_refusal, wants_confinement
from tessera.operators.compute_watching import WatchedComputes
from tessera.operators.owning import controller_of, is_owned
from tessera.operators.turns import Turn

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
TOKEN_BYTES = 32


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """What is there by now, and why not all of it: `unroutable` of the route, `token_trouble` of the token.

    A `hindrance` is why the rest is not as it is wanted; what there was before is still there.
    """

    stateful_set: Document | None = None
    service: Document | None = None
    route: Document | None = None
    hindrance: Trouble | None = None
    token_trouble: Trouble | None = None
    unroutable: Trouble | None = None


class _Hindered(Exception):
    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble.message)
        self.trouble = trouble


class Maker:
    """Knows what it has applied. Losing that costs a few requests."""

    def __init__(self, client: Client, watched: WatchedComputes, settings: ComputeSettings, turn: Turn) -> None:
        self._client = client
        self._watched = watched
        self._settings = settings
        self._turn = turn
        self._applied: dict[tuple[str, ObjectKey], tuple[bytes, bytes]] = {}

    def forget(self, compute: ObjectKey) -> None:
        """Of a Compute that is gone."""
        self._applied = {which: kept for which, kept in self._applied.items() if which[1] != compute}

    async def make(self, compute: Compute) -> Made:
        """In this order: a pod needs the token to start, and a client the Service to find it.

        A pod that is to go is taken away before anything that could hinder it.
        """
        made = self._known(compute)
        try:
            if compute.spec.suspend:
                made = replace(made, stateful_set=await self._put_to_sleep(made.stateful_set))
            if unpermitted := find_unpermitted(compute, self._settings):
                raise _Hindered(unpermitted)
            digest, token_trouble = await self._token(compute, made.stateful_set)
            made = replace(made, token_trouble=token_trouble)
            made = replace(made, service=await self._apply(SERVICES, compute, make_service(compute)))
            confined = self._must_be_confined(made.stateful_set)
            wanted = make_stateful_set(compute, self._settings, digest, confined=confined)
            made = replace(made, stateful_set=await self._apply(STATEFUL_SETS, compute, wanted))
        except _Hindered as hindered:
            return replace(made, hindrance=hindered.trouble)
        return await self._lay_route(compute, made)

    def _known(self, compute: Compute) -> Made:
        names = {STATEFUL_SETS: set_name(compute), SERVICES: compute.name, GRPC_ROUTES: compute.name}
        found = {kind: self._watched.child(kind, ObjectKey(compute.namespace, name)) for kind, name in names.items()}
        own = {kind: one for kind, one in found.items() if one is not None and is_owned(one, compute)}
        return Made(stateful_set=own.get(STATEFUL_SETS), service=own.get(SERVICES), route=own.get(GRPC_ROUTES))

    def _must_be_confined(self, stateful_set: Document | None) -> bool:
        """Nobody tells what a namespace takes but its refusals. What was learnt stands in the StatefulSet."""
        if stateful_set is None or is_confined(stateful_set):
            return stateful_set is not None
        refusal = find_refusal(stateful_set, self._watched.told_of(stateful_set))
        return refusal is not None and wants_confinement(refusal)

    async def _put_to_sleep(self, stateful_set: Document | None) -> Document | None:
        if stateful_set is None or stateful_set["spec"].get("replicas") == 0:
            return stateful_set
        try:
            return await empty(self._turn.pen(self._client), stateful_set)
        except (Conflict, NotFound):  # it is gone, and that will be told
            return None
        except (BadRequest, Forbidden, Invalid) as error:
            raise _Hindered(_refused(STATEFUL_SETS, error)) from None

    async def _token(self, compute: Compute, stateful_set: Document | None) -> tuple[str, Trouble | None]:
        """The digest of the token, and what is wrong with it.

        A pod that serves goes on with the token that it knows, and one that is not to run needs none. A first pod
        could not start without it.
        """
        if not compute.has_token:
            return "", None
        try:
            return await self._ensure_token(compute), None
        except _Hindered as hindered:
            if stateful_set is None and not compute.spec.suspend:
                raise
            return digest_on(stateful_set) if stateful_set else "", hindered.trouble

    async def _ensure_token(self, compute: Compute) -> str:
        """The digest of the token, which is made once and stays."""
        key = ObjectKey(compute.namespace, secret_name(compute))
        secret = await self._find(SECRETS, key)
        if secret is None:
            body = make_secret(compute, secrets.token_urlsafe(TOKEN_BYTES))
            try:
                secret = await self._turn.pen(self._client).create(SECRETS, body, namespace=key.namespace)
                log.info("token made", compute=str(compute.key))
            except AlreadyExists:
                secret = await self._client.get(SECRETS, key.name, namespace=key.namespace)
            except (BadRequest, Forbidden, Invalid) as error:
                raise _Hindered(_refused(SECRETS, error)) from None
        _refuse_foreign(SECRETS, secret, compute)
        digest = token_digest(secret)
        if not digest:
            message = f"Secret {key.name} has no token; delete it, and a new one is made"
            raise _Hindered(Trouble("TokenMissing", message, is_final=True))
        return digest

    async def _apply(self, kind: Kind[Document], compute: Compute, wanted: Document) -> Document:
        key = ObjectKey(compute.namespace, wanted["metadata"]["name"])
        seen = self._watched.child(kind, key) or await self._find(kind, key)
        if seen is not None and not (_is_nobodys(seen, compute) and _is_applied_by_us(seen)):
            _refuse_foreign(kind, seen, compute)
        which, wish = (kind.plural, compute.key), _digest(wanted)
        if seen is not None and self._applied.get(which) == (wish, _digest(_own_part(seen))):
            return seen
        try:
            applied = await self._turn.pen(self._client).apply(
                kind, key.name, wanted, manager=MANAGER, namespace=key.namespace, force=True
            )
        except (BadRequest, Forbidden, Invalid) as error:
            raise _Hindered(_refused(kind, error)) from None
        self._applied[which] = (wish, _digest(_own_part(applied)))
        if seen is None or seen["metadata"].get("resourceVersion") != applied["metadata"].get("resourceVersion"):
            log.info("applied", compute=str(compute.key), kind=kind.name, name=key.name)
        return applied

    async def _find(self, kind: Kind[Document], key: ObjectKey) -> Document | None:
        try:
            return await self._client.get(kind, key.name, namespace=key.namespace)
        except NotFound:
            return None
        except Forbidden as error:
            raise _Hindered(_refused(kind, error)) from None

    async def _lay_route(self, compute: Compute, made: Made) -> Made:
        """Nothing else waits for the route, whatever stands in its way."""
        try:
            if compute.spec.route is None:
                await self._remove_route(compute)
                return replace(made, route=None)
            return replace(made, route=await self._apply(GRPC_ROUTES, compute, make_route(compute, compute.spec.route)))
        except _Hindered as hindered:
            return replace(made, unroutable=hindered.trouble)
        except NotFound:
            message = f"this cluster serves no {GRPC_ROUTES.plural} of {GRPC_ROUTES.group}; install the Gateway API"
            return replace(made, unroutable=Trouble("NoGatewayAPI", message))
        except KubeError as error:
            return replace(made, unroutable=Trouble("RouteNotMade", str(error)))

    async def _remove_route(self, compute: Compute) -> None:
        which = (GRPC_ROUTES.plural, compute.key)
        left = self._watched.child(GRPC_ROUTES, compute.key)
        if left is None and which in self._applied:  # a kind that has come lately is followed after a while
            left = await self._find(GRPC_ROUTES, compute.key)
        if left is not None and is_owned(left, compute):
            how = Deletion(uid=left["metadata"]["uid"])
            with suppress(NotFound):
                await self._turn.pen(self._client).delete(
                    GRPC_ROUTES, compute.name, namespace=compute.namespace, how=how
                )
        self._applied.pop(which, None)


def _refuse_foreign(kind: Kind[Document], seen: Document, compute: Compute) -> None:
    if is_owned(seen, compute):
        return
    name, owner = seen["metadata"]["name"], controller_of(seen)
    if owner and (owner.kind, owner.name) == (COMPUTE_DOCUMENTS.name, compute.name):
        message = f"{kind.name} {name} is of an earlier Compute of this name and is about to be removed"
        raise _Hindered(Trouble("PredecessorGoing", message))
    if _is_nobodys(seen, compute):
        message = f"{kind.name} {name} was made for a Compute of this name and is nobody's now; delete it"
        raise _Hindered(Trouble("NameTaken", f"{message}, and another is made", is_final=True))
    whose = f"{owner.kind} {owner.name}" if owner else "somebody else"
    message = f"{kind.name} {name} is there already and belongs to {whose}; remove it, or call the Compute otherwise"
    raise _Hindered(Trouble("NameTaken", message, is_final=True))


def _is_nobodys(seen: Document, compute: Compute) -> bool:
    """Whether it was made for a Compute of this name and somebody took its owner off: then nobody ever removes it."""
    labels: Mapping[str, str] = seen["metadata"].get("labels") or {}
    return controller_of(seen) is None and labels.get(NAME_LABEL) == compute.name


def _is_applied_by_us(seen: Document) -> bool:
    return any(one.get("manager") == MANAGER for one in seen["metadata"].get("managedFields") or ())


def _refused(kind: Kind[Any], error: ApiError) -> Trouble:
    """What the API server says of a spec that it does not take stays so until the spec changes."""
    if isinstance(error, Forbidden):
        trouble = read_refusal(error.message)
        return trouble if trouble.reason != "PodNotMade" else Trouble("Forbidden", error.message)
    return Trouble(f"{kind.name}Refused", error.message, is_final=True)


def _own_part(document: Document) -> Document:
    """Without what changes by itself: the status, and who wrote what when."""
    metadata: Document = document["metadata"]
    told = {name: metadata.get(name) for name in ("labels", "annotations", "ownerReferences")}
    return {"metadata": told, "spec": document.get("spec")}


def _digest(document: Document) -> bytes:
    return hashlib.sha256(msgspec.json.encode(document, order="deterministic")).digest()
