"""Environment variables that a container gets on its way in.

Of several variables with one name Kubernetes takes the last, so that is the one we look at and replace.
"""

from collections.abc import Iterator

from tessera.admission.habits import HABITS, habit_of
from tessera.admission.patching import APPENDED, Change
from tessera.admission.pods import Asking
from tessera.admission.settings import Settings
from tessera.model.catalogue import Catalogue
from tessera.model.pod_documents import Values

HIDDEN = "none"


def set_variables(asking: Asking, catalogue: Catalogue, settings: Settings) -> Iterator[Change]:
    figures = asking.container.figures
    for vendor, _ in asking.by_vendor(catalogue):
        habit, priority = habit_of(vendor.name), figures.get(vendor.resources.priority or "")
        if priority is not None:
            yield from _set_text(asking, habit.priority_variable, str(priority))
        if settings.core_policy != "default":
            yield from _set_text(asking, habit.core_policy_variable, settings.core_policy)
    if settings.hides_cards:
        yield from _hide_cards(asking)


def _hide_cards(asking: Asking) -> Iterator[Change]:
    held = {device.vendor for device in asking.request.devices}
    for vendor, habit in HABITS.items():
        if vendor not in held:
            yield from _set_text(asking, habit.hiding_variable, HIDDEN)


def set_variable(asking: Asking, name: str, content: Values) -> Change:
    """`content` is what stands beside the name: a value, or where it comes from."""
    before = asking.container.last_variable(name)
    return Change((*asking.path, "env", before[0] if before else APPENDED), {"name": name, **content})


def _set_text(asking: Asking, name: str, value: str) -> Iterator[Change]:
    if name:
        yield set_variable(asking, name, {"value": value})
