"""From a change of something to whoever has to look: its controller, or those who might take it in."""

from collections.abc import Callable, Iterable
from typing import Any

from tessera.embedded.controllers.claiming import Claimant
from tessera.embedded.controllers.objects import Thing
from tessera.embedded.resources.label_selectors import matches
from tessera.kube.caching import Change
from tessera.kube.kinds import Kind
from tessera.kube.objects import ObjectKey

Mark = Callable[[ObjectKey], None]


def mark_controllers(kind: Kind[Any], mark: Mark) -> Callable[[Change[Any]], None]:
    """Of this kind, those who manage what changed, or did before it."""

    def notice(change: Change[Any]) -> None:
        for thing in (change.before, change.after):
            if thing is not None:
                _mark_controller(thing, kind, mark)

    return notice


def mark_suitors(claimants: Callable[[str], Iterable[Claimant]], mark: Mark) -> Callable[[Change[Any]], None]:
    """Of the claimants in a namespace, those who select what changed while nobody manages it."""

    def notice(change: Change[Any]) -> None:
        thing: Thing | None = change.after
        if thing is None or thing.metadata.controller is not None:
            return
        for claimant in claimants(thing.metadata.namespace):
            if matches(claimant.selector, thing.metadata.labels):
                mark(claimant.metadata.key)

    return notice


def _mark_controller(thing: Thing, kind: Kind[Any], mark: Mark) -> None:
    controller = thing.metadata.controller
    if controller is not None and controller.kind == kind.name:
        mark(ObjectKey(thing.metadata.namespace, controller.name))
