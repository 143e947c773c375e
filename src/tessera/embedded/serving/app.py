"""The server as an ASGI app: every request passes here, and every refusal becomes a Status here."""

from collections.abc import Iterable
from http import HTTPStatus

import structlog

from tessera.bodies import Disconnected
from tessera.embedded.access import ANONYMOUS, Attributes, User, reviews
from tessera.embedded.refusals import ApiRefusal, bad_request, not_allowed
from tessera.embedded.resources import Served
from tessera.embedded.resources.table import ENDPOINT_SLICES, REVIEWS, SERVICES
from tessera.embedded.serving.answers import (
    Answer,
    Receive,
    Reply,
    Scope,
    Send,
    Stream,
    denying,
    read_headers,
    refused,
    said,
    send_answer,
    send_while_heard,
)
from tessera.embedded.serving.bodies import decode_object, read_bounded
from tessera.embedded.serving.doors import Doors
from tessera.embedded.serving.forms import read_form
from tessera.embedded.serving.impersonation import VERB, read_impersonation
from tessera.embedded.serving.nodes import CONNECTED, not_yet
from tessera.embedded.serving.options import read_options
from tessera.embedded.serving.paths import Target, read_target, verb_of
from tessera.embedded.serving.proxies import nobody_behind, read_proxied, ready_addresses
from tessera.embedded.serving.requests import Asked
from tessera.embedded.serving.signposts import Signposts, nothing_here
from tessera.embedded.serving.site import Site
from tessera.embedded.serving.verbs import Verbs
from tessera.embedded.serving.writing import now
from tessera.errors import StoreFailed

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_READS = frozenset({"get", "list", "watch"})
_EVERYWHERE = frozenset({"list", "watch", "deletecollection"})
"""What can be done to all namespaces at once."""


class ApiServer:
    def __init__(self, site: Site) -> None:
        self._site = site
        self._signposts = Signposts(site)
        self._verbs = Verbs(site)
        self._doors = Doors(site, self._verbs).handlers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        respond = send
        if scope["type"] == "websocket":
            scope["method"], respond = "GET", denying(send)
        try:
            reply = await self._reply(scope, receive, send)
        except Disconnected:
            return
        except ApiRefusal as refusal:
            reply = refused(refusal)
        except StoreFailed as error:
            reply = refused(_internal(str(error)))
        except Exception:
            log.exception("request failed", method=scope["method"], path=scope["path"])
            reply = refused(_internal("the request could not be carried out; the server's log says why"))
        if isinstance(reply, Stream):
            await send_while_heard(reply, receive, respond)
        elif reply is not None:
            await send_answer(reply, respond, body=scope["method"] != "HEAD")

    async def _reply(self, scope: Scope, receive: Receive, send: Send) -> Reply | None:
        """None, if somebody else has answered."""
        headers, method, path = read_headers(scope), scope["method"], scope["path"]
        user = self._impersonate(self._authenticate(headers.get(b"authorization", b"")), scope["headers"])
        options, accept = read_options(scope["query_string"]), headers.get(b"accept", b"")
        target, upgrades = read_target(path), scope["type"] == "websocket"
        if upgrades and (target is None or target.subresource not in CONNECTED):
            raise bad_request("a WebSocket is opened to exec, attach and portforward of a pod, and to nothing else")
        if target is None:
            self._authorize_path(user, method, path)
            return self._signposts.show(method, path, accept, options, headers.get(b"if-none-match", b""))
        verb = verb_of(method, target, watches=options.watch)
        if verb is None:
            raise not_allowed()
        self._authorize(user, verb, target)
        if upgrades:
            self._authorize(user, "create", target)  # it is a GET by its form alone: what follows is no mere reading
        asked = Asked(
            verb=verb,
            target=target,
            options=options,
            user=user,
            served=self._served(target, verb),
            form=read_form(accept),
            content_type=headers.get(b"content-type", b"").decode("latin-1"),
            user_agent=headers.get(b"user-agent", b"").decode("latin-1"),
        )
        if target.subresource in CONNECTED:
            return await self._connect(asked, scope, receive, send)
        if verb not in _READS:
            asked.body = await read_bounded(receive)
        return await self._answer(asked)

    async def _answer(self, asked: Asked) -> Reply:
        subresource = asked.target.subresource
        if asked.served.resource in REVIEWS:
            return self._review(asked)
        if subresource in ("", "status"):
            return await self._verbs(asked)
        handler = self._doors.get((subresource, asked.verb))
        if handler is None:
            raise not_allowed()
        return await handler(asked)

    def _review(self, asked: Asked) -> Answer:
        """A question about access: answered and not kept."""
        body = decode_object(asked.body, asked.content_type)
        site, namespace = self._site, asked.target.namespace
        asking = reviews.Asking(asked.user, namespace, site.authorizer, site.tokens, now())
        return said(reviews.answer(asked.served.kind, body, asking), HTTPStatus.CREATED)

    async def _connect(self, asked: Asked, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the exchange to whoever runs the pod, or a pod behind the Service."""
        proxied = read_proxied(asked.target.name)
        asked.target = asked.target._replace(name=proxied.name)
        document = self._verbs.writer.read(asked).document()
        if asked.served.resource == SERVICES.resource:
            slices = self._site.store.list(ENDPOINT_SLICES.resource, asked.target.namespace)
            if not ready_addresses(proxied.name, (record.document() for record in slices)):
                raise nobody_behind(proxied.name)
        if self._site.nodes is None:
            raise not_yet(asked.target.subresource)
        await self._site.nodes.connect(document, asked.target, proxied, scope, receive, send)

    def _authenticate(self, authorization: bytes) -> User:
        if not authorization:
            return ANONYMOUS
        scheme, _, token = authorization.decode("latin-1").partition(" ")
        user = self._site.tokens.authenticate(token.strip()) if scheme.lower() == "bearer" else None
        if user is None:
            raise ApiRefusal(HTTPStatus.UNAUTHORIZED, "Unauthorized", "Unauthorized")
        return user

    def _impersonate(self, user: User, headers: Iterable[tuple[bytes, bytes]]) -> User:
        """Whom the request counts as; oneself, unless it says otherwise."""
        impersonation = read_impersonation(headers)
        if impersonation is None:
            return user
        for target in impersonation.needs:
            self._authorize(user, VERB, target)
        return impersonation.user

    def _authorize_path(self, user: User, method: str, path: str) -> None:
        verb = method.lower()
        if not self._site.authorizer.allows(Attributes(user=user, verb=verb, path=path)):
            message = f'forbidden: User "{user.name}" cannot {verb} path "{path}"'
            raise ApiRefusal(HTTPStatus.FORBIDDEN, "Forbidden", message)

    def _authorize(self, user: User, verb: str, target: Target) -> None:
        namespace = target.name if target.plural == "namespaces" else target.namespace
        attributes = Attributes(
            user=user,
            verb=verb,
            group=target.group,
            resource=target.plural,
            subresource=target.subresource,
            namespace=namespace,
            name=target.name,
        )
        if not self._site.authorizer.allows(attributes):
            raise _forbidden(user, verb, target, namespace)

    def _served(self, target: Target, verb: str) -> Served:
        served = self._site.registry.find(target.group, target.version, target.plural)
        if served is None or (target.subresource and target.subresource not in served.kind.subresources):
            raise nothing_here()
        kind = served.kind
        if target.namespace and not kind.is_namespaced:
            raise nothing_here()
        if not target.subresource and verb not in kind.verbs:
            raise not_allowed()
        if kind.is_namespaced and not target.namespace and verb not in _EVERYWHERE:
            raise not_allowed()
        return served


def _internal(message: str) -> ApiRefusal:
    return ApiRefusal(HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError", f"Internal error occurred: {message}")


def _forbidden(user: User, verb: str, target: Target, namespace: str) -> ApiRefusal:
    resource = f"{target.plural}/{target.subresource}" if target.subresource else target.plural
    full = f"{target.plural}.{target.group}" if target.group else target.plural
    named = f'{full} "{target.name}"' if target.name else full
    where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    complaint = f'User "{user.name}" cannot {verb} resource "{resource}" in API group "{target.group}" {where}'
    details = {"name": target.name, "group": target.group, "kind": target.plural}
    told = {field: value for field, value in details.items() if value}
    return ApiRefusal(HTTPStatus.FORBIDDEN, "Forbidden", f"{named} is forbidden: {complaint}", told)
