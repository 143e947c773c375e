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
    """`news` are sentences for the user: figures that are not as they were written."""

    changes: tuple[Change, ...]
    news: tuple[str, ...]


def complete_containers(
    pod: ArrivingPod, said: PodRequest, meant: PodRequest, catalogue: Catalogue, settings: Settings
) -> Completed:
    """`said` is the request as the figures stand, `meant` the same after the vendors' rules."""
    changes: list[Change] = []
    news: list[str] = []
    for asking, as_said in zip(pod.asking(meant), said.containers, strict=True):
        figures = _complete_figures(asking, as_said, catalogue)
        changes += [*figures.changes, *set_variables(asking, catalogue, settings)]
        news += [f"{pod.ref}: {sentence}" for sentence in figures.news]
    return Completed(tuple(changes), tuple(news))


def complete_pod(pod: ArrivingPod, request: PodRequest, settings: Settings) -> Iterator[Change]:
    if pod.spec.scheduler_name not in settings.schedulers:
        yield Change(("spec", "schedulerName"), settings.scheduler)
    for vendor in sorted({device.vendor for container in request.containers for device in container.devices}):
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
