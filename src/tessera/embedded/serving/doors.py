"""Subresources that are more than a part of their object: each has an answer of its own."""

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import cast

import msgspec

from tessera.embedded.access.reviews import request_token
from tessera.embedded.documents import Document, Frozen
from tessera.embedded.kinds import Kind
from tessera.embedded.patches.json_patch import json_patch
from tessera.embedded.patches.merge_patch import merge_patch
from tessera.embedded.refusals import not_found, unsupported_media_type
from tessera.embedded.resources.binding import bind
from tessera.embedded.resources.evicting import budget_of, charge
from tessera.embedded.resources.parts import each, inside
from tessera.embedded.resources.scaling import SCALE, ScalePaths, scale_of, scaled
from tessera.embedded.resources.table import DISRUPTION_BUDGETS, PODS
from tessera.embedded.serving.answers import TEXT, Answer, Reply, said
from tessera.embedded.serving.bodies import agree, decode_any, decode_object
from tessera.embedded.serving.deleting import Wish
from tessera.embedded.serving.envelopes import opened
from tessera.embedded.serving.nodes import not_yet
from tessera.embedded.serving.patching import JSON_PATCH, media_of
from tessera.embedded.serving.requests import Asked
from tessera.embedded.serving.site import Site
from tessera.embedded.serving.verbs import Verbs
from tessera.embedded.serving.writing import new_uid, now
from tessera.embedded.store import Key

Door = Callable[[Asked], Awaitable[Reply]]
BINDING = Kind(version="v1", kind="Binding", plural="bindings")
EVICTION = Kind(group="policy", version="v1", kind="Eviction", plural="evictions")
DONE: Frozen = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


class Doors:
    """By the name of the subresource and the verb. `status` is not here: it is a part of its object."""

    def __init__(self, site: Site, verbs: Verbs) -> None:
        self._site = site
        self._verbs = verbs
        self.handlers: Mapping[tuple[str, str], Door] = {
            ("scale", "get"): self._show_scale,
            ("scale", "update"): self._scale,
            ("scale", "patch"): self._scale,
            ("binding", "create"): self._bind,
            ("eviction", "create"): self._evict,
            ("token", "create"): self._issue_token,
            ("log", "get"): self._log,
            ("finalize", "update"): self._finalize,
        }

    async def _show_scale(self, asked: Asked) -> Answer:
        record = self._verbs.writer.read(asked)
        await self._site.store.settled()
        return said(scale_of(opened(asked.served.kind, record), asked.served.scale))

    async def _scale(self, asked: Asked) -> Answer:
        kind, paths = asked.served.kind, asked.served.scale
        wanted = _wanted_scale(asked)

        def change(live: Document) -> Document:
            scale = wanted(live, paths)
            for field in ("uid", "resourceVersion"):
                if scale["metadata"].get(field):
                    live["metadata"][field] = scale["metadata"][field]
            return scaled(live, scale, kind, paths)

        written = await self._verbs.writer.change(asked, change)
        return said(scale_of(opened(kind, written.record), paths))

    async def _bind(self, asked: Asked) -> Answer:
        binding = decode_object(asked.body, asked.content_type)
        agree(binding, BINDING, asked.target)
        await self._verbs.writer.amend(asked, lambda pod: bind(pod, binding, now()))
        return said(DONE, HTTPStatus.CREATED)

    async def _evict(self, asked: Asked) -> Answer:
        eviction = decode_object(asked.body, asked.content_type)
        agree(eviction, EVICTION, asked.target)
        await self._charge(asked, opened(asked.served.kind, self._verbs.writer.read(asked)))
        deletion = msgspec.structs.replace(asked, body=msgspec.json.encode(eviction.get("deleteOptions") or {}))
        await self._verbs.remove(deletion, Wish.of(deletion))
        return said(DONE, HTTPStatus.CREATED)

    async def _charge(self, asked: Asked, pod: Frozen) -> None:
        """Take one disruption from the budget that protects the pod, if there is one."""
        store, namespace = self._site.store, asked.target.namespace
        budget = budget_of(pod, [record.document() for record in store.list(DISRUPTION_BUDGETS.resource, namespace)])
        charged = charge(budget, pod, now()) if budget else None
        if charged and not asked.options.dry_run:
            meta = charged["metadata"]
            key = Key(DISRUPTION_BUDGETS.resource, namespace, meta["name"])
            store.put(key, charged, expected=int(meta["resourceVersion"]))
            await store.settled()

    async def _issue_token(self, asked: Asked) -> Answer:
        account = self._verbs.writer.read(asked).document()
        request = decode_object(asked.body, asked.content_type)
        pod = self._bound_pod(asked, request)
        token = request_token(request, account, self._site.tokens, token_id=new_uid(), now=now(), pod=pod)
        return said(token, HTTPStatus.CREATED)

    def _bound_pod(self, asked: Asked, request: Frozen) -> Frozen | None:
        """The pod with which a token shall end, if it says one."""
        reference = inside(inside(request, "spec"), "boundObjectRef")
        if reference.get("kind") != PODS.kind:
            return None
        name: str = reference.get("name", "")
        record = self._site.store.get(Key(PODS.resource, asked.target.namespace, name))
        if record is None:
            raise not_found(PODS, name)
        return record.document()

    async def _log(self, asked: Asked) -> Reply:
        pod = opened(asked.served.kind, self._verbs.writer.read(asked))
        if not pod["spec"].get("nodeName"):
            return Answer(b"", content_type=TEXT)
        if self._site.nodes is None:
            raise not_yet("log")
        return await self._site.nodes.log(pod, dict(asked.options.raw))

    async def _finalize(self, asked: Asked) -> Answer:
        """The last word of whoever emptied a namespace."""
        wanted = decode_object(asked.body, asked.content_type)
        agree(wanted, asked.served.kind, asked.target)
        finalizers = list(each(inside(wanted, "spec"), "finalizers"))

        def change(namespace: Document) -> Document:
            spec = {field: value for field, value in namespace["spec"].items() if field != "finalizers"}
            return {**namespace, "spec": {**spec, **({"finalizers": finalizers} if finalizers else {})}}

        return self._verbs.show(asked, await self._verbs.writer.amend(asked, change))


def _wanted_scale(asked: Asked) -> Callable[[Frozen, ScalePaths], Frozen]:
    """What the Scale of an object shall be, once one knows what it is."""
    if asked.verb == "update":
        scale = decode_object(asked.body, asked.content_type)
        agree(scale, SCALE, asked.target)
        return lambda _, __: scale
    patch, media = decode_any(asked.body, JSON_PATCH), media_of(asked)
    if media == JSON_PATCH:
        return lambda live, paths: json_patch(scale_of(live, paths), patch)
    if media.endswith("merge-patch+json"):
        return lambda live, paths: cast("Document", merge_patch(scale_of(live, paths), patch))
    raise unsupported_media_type(f"a scale takes no patch of the kind {media}")
