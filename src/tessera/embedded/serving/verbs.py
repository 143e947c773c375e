"""What may be done with objects: each verb from the request to its answer."""

from collections.abc import Awaitable, Callable, Mapping

import msgspec

from tessera.embedded.refusals import not_allowed
from tessera.embedded.serving.addresses import Addresses
from tessera.embedded.serving.aftermath import Aftermath
from tessera.embedded.serving.answers import Answer, Reply, said, warned
from tessera.embedded.serving.bodies import agree, decode_object
from tessera.embedded.serving.deleting import Deleted, Deleter, Wish, success
from tessera.embedded.serving.envelopes import decode
from tessera.embedded.serving.pages import Page, read_page
from tessera.embedded.serving.patching import patch
from tessera.embedded.serving.rendering import render, render_page
from tessera.embedded.serving.requests import Asked
from tessera.embedded.serving.selectors import Selection, read_selection
from tessera.embedded.serving.site import Site
from tessera.embedded.serving.vetting import vetted
from tessera.embedded.serving.watches import Wanted, Watches
from tessera.embedded.serving.writing import Writer, Written
from tessera.embedded.store import Record

Handler = Callable[[Asked], Awaitable[Reply]]
SHOWN_WHEN_GONE = frozenset({"pods", "services", "serviceaccounts", "resourcequotas", "persistentvolumeclaims"})
"""Kinds whose deletion is answered with the object as it was, rather than with a word."""


class Verbs:
    def __init__(self, site: Site) -> None:
        self._store = site.store
        self._watches = Watches(site.store)
        self._aftermath = Aftermath(site)
        addresses = Addresses(site.store, site.service_network)
        self.writer = Writer(site.store, site.admission, {"services": addresses.complete})
        self._deleter = Deleter(site.store, site.admission)
        self._handlers: Mapping[str, Handler] = {
            "get": self.get,
            "list": self.list,
            "watch": self.watch,
            "create": self.create,
            "update": self.update,
            "patch": self.patch,
            "delete": self.delete,
            "deletecollection": self.delete_collection,
        }

    async def __call__(self, asked: Asked) -> Reply:
        return await self._handlers[asked.verb](asked)

    async def get(self, asked: Asked) -> Answer:
        record = self.writer.read(asked)
        await self._store.settled()
        return self.show(asked, record)

    async def list(self, asked: Asked) -> Answer:
        await self._store.settled()
        page = read_page(self._store, asked.served.resource, asked.target.namespace, asked.options, _selection(asked))
        return Answer(render_page(asked.served, asked.form, asked.options, page))

    async def watch(self, asked: Asked) -> Reply:
        served, form, options = asked.served, asked.form, asked.options

        def render_event(record: Record) -> bytes:
            return render(served, form, options, record)

        wanted = Wanted(served.kind, served.resource, asked.target.namespace, form, _selection(asked), render_event)
        return await self._watches.open(wanted, options)

    async def create(self, asked: Asked) -> Answer:
        if asked.target.name:
            raise not_allowed()
        document = decode_object(asked.body, asked.content_type)
        agree(document, asked.served.kind, asked.target)
        return await self._written(asked, await self.writer.create(asked, vetted(asked, document)))

    async def update(self, asked: Asked) -> Answer:
        document = decode_object(asked.body, asked.content_type)
        agree(document, asked.served.kind, asked.target)
        whole = msgspec.json.encode(vetted(asked, document))
        return await self._written(asked, await self.writer.change(asked, lambda _: decode(whole)))

    async def patch(self, asked: Asked) -> Answer:
        return await self._written(asked, await patch(self.writer, asked))

    async def _written(self, asked: Asked, written: Written) -> Answer:
        if not asked.options.dry_run:
            await self._follow_up(asked, written)
        return self.show(asked, written.record, 201 if written.is_new else 200)

    async def _follow_up(self, asked: Asked, written: Written) -> None:
        if written.is_gone:
            await self._aftermath.of_deletion(written.record)
        else:
            subresource = asked.target.subresource
            await self._aftermath.of_write(written.record, is_new=written.is_new, subresource=subresource)

    async def delete(self, asked: Asked) -> Answer:
        return self.tell_deleted(asked, await self.remove(asked, Wish.of(asked)))

    async def remove(self, asked: Asked, wish: Wish) -> Deleted:
        deleted = await self._deleter.delete(asked, wish)
        if not asked.options.dry_run:
            await self._follow_up(asked, Written(deleted.record, is_gone=deleted.is_gone))
        return deleted

    def tell_deleted(self, asked: Asked, deleted: Deleted) -> Answer:
        if deleted.is_gone and asked.served.resource not in SHOWN_WHEN_GONE:
            return warned(said(success(asked, deleted.record.document()["metadata"])), asked.warnings)
        return self.show(asked, deleted.record)

    async def delete_collection(self, asked: Asked) -> Answer:
        wish, selection = Wish.of(asked), _selection(asked)
        page = read_page(self._store, asked.served.resource, asked.target.namespace, asked.options, selection)
        gone = [(await self.remove(_about(asked, record), wish)).record for record in page.records]
        return Answer(render_page(asked.served, asked.form, asked.options, Page(gone, page.metadata)))

    def show(self, asked: Asked, record: Record, status: int = 200) -> Answer:
        return warned(Answer(render(asked.served, asked.form, asked.options, record), status), asked.warnings)


def _selection(asked: Asked) -> Selection | None:
    """With the name in the path as one more field, where one object is watched."""
    fields = asked.options.field_selector
    if asked.target.name:
        fields = ",".join(filter(None, (fields, f"metadata.name={asked.target.name}")))
    return read_selection(asked.served.kind, asked.options.label_selector, fields)


def _about(asked: Asked, record: Record) -> Asked:
    """The same wish about one of many."""
    target = asked.target._replace(namespace=record.key.namespace, name=record.key.name)
    return msgspec.structs.replace(asked, target=target)
