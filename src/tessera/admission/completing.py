"""What a pod that we let in is given: figures, variables, its scheduler, its runtime class."""

from collections.abc import Iterator
from typing import NamedTuple

from tessera.admission.figures import correct_figures, explain_figure, state_whole_cores, write_figure
from tessera.admission.habits import habit_of
from tessera.admission.patching import Change
from tessera.admission.pods import ArrivingPod, Asking
from tessera.admission.settings import Settings
from tessera.admission.variables import set_variables
from tessera.model.catalogue import Catalogue
from tessera.model.requests import ContainerRequest, PodRequest


class Completed(NamedTuple):
    """`news` are sentences for the user: what is not as it was written."""

    changes: tuple[Change, ...] = ()
    news: tuple[str, ...] = ()


def complete_figures(pod: ArrivingPod, said: PodRequest, meant: PodRequest, catalogue: Catalogue) -> Completed:
    """`said` is the request as the figures stand, `meant` the same after the vendors' rules."""
    changes: list[Change] = []
    news: list[str] = []
    for asking, as_said in zip(pod.asking(meant), said.containers, strict=True):
        figures = _complete_figures(asking, as_said, catalogue)
        changes += figures.changes
        news += [f"{pod.ref}: {sentence}" for sentence in figures.news]
    return Completed(tuple(changes), tuple(news))


def complete_variables(
    pod: ArrivingPod, shown: PodRequest, catalogue: Catalogue, settings: Settings
) -> Iterator[Change]:
    """`shown` has the cards that each container will see."""
    for asking in pod.asking(shown):
        yield from set_variables(asking, catalogue, settings)


def complete_pod(pod: ArrivingPod, shown: PodRequest, settings: Settings, scheduler: str) -> Iterator[Change]:
    """`scheduler` is where a pod goes that says nothing of it."""
    if settings.takes_over(pod.spec.scheduler_name):
        yield Change(("spec", "schedulerName"), scheduler)
    for vendor in sorted({device.vendor for container in shown.containers for device in container.devices}):
        runtime_class = settings.runtime_classes.get(vendor)
        if runtime_class and not pod.spec.runtime_class_name:
            yield Change(("spec", "runtimeClassName"), runtime_class)
        for key, value in habit_of(vendor).annotations.items():
            if not pod.says(key):
                yield Change(("metadata", "annotations", key), value)


def _complete_figures(asking: Asking, said: ContainerRequest, catalogue: Catalogue) -> Completed:
    changes: list[Change] = []
    news: list[str] = []
    for (vendor, device), as_said in zip(asking.by_vendor(catalogue), said.devices, strict=True):
        for figure in correct_figures(vendor, asking, as_said, device):
            changes += write_figure(asking, figure)
            news.append(explain_figure(vendor, asking, figure))
        for figure in state_whole_cores(vendor, asking, device):
            changes += write_figure(asking, figure)
    return Completed(tuple(changes), tuple(news))
