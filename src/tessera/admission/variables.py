"""Environment variables that a container gets on its way in.

Of several variables with one name Kubernetes takes the last, so that is the one we look at and replace.
"""

from collections.abc import Iterator

from tessera.admission.habits import HABITS, habit_of
from tessera.admission.patching import APPENDED, Change
from tessera.admission.pods import Asking
from tessera.admission.settings import Settings
from tessera.model.catalogue import Catalogue

HIDDEN = "none"


def set_variables(asking: Asking, catalogue: Catalogue, settings: Settings) -> Iterator[Change]:
    for vendor, device in asking.by_vendor(catalogue):
        habit = habit_of(vendor.name)
        if vendor.resources.priority in asking.container.figures:
            yield from _set(asking, habit.priority_variable, str(device.priority))
        if settings.core_policy != "default":
            yield from _set(asking, habit.core_policy_variable, settings.core_policy)
    if settings.hides_cards:
        yield from _hide_cards(asking)


def _hide_cards(asking: Asking) -> Iterator[Change]:
    held = {device.vendor for device in asking.request.devices}
    for vendor, habit in HABITS.items():
        if vendor not in held:
            yield from _set(asking, habit.hiding_variable, HIDDEN)


def _set(asking: Asking, name: str, value: str) -> Iterator[Change]:
    if not name:
        return
    positions = [index for index, one in enumerate(asking.container.env or ()) if one.name == name]
    yield Change((*asking.path, "env", positions[-1] if positions else APPENDED), {"name": name, "value": value})
