"""What becomes of a pod, counted for those who watch the cluster and told to those whose pod it is."""

from tessera.model.requests import PodRef
from tessera.scheduler.metrics import Figures
from tessera.scheduler.reasons import Summary
from tessera.scheduler.telling import Teller


class Reporter:
    def __init__(self, figures: Figures, teller: Teller) -> None:
        self._figures = figures
        self._teller = teller

    def refused(self, ref: PodRef, summary: Summary) -> None:
        """No node takes the pod."""
        self._figures.refused(summary.reason)
        self._teller.refused(ref, str(summary))

    def bound(self, ref: PodRef, node: str) -> None:
        self._figures.bound("bound")
        self._teller.bound(ref, node)

    def not_bound(self, ref: PodRef, why: str) -> None:
        self._figures.bound("refused")
        self._teller.not_bound(ref, why)
