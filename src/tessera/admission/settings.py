"""What an operator may choose about admission, and what the app must bring.

How many cards are meant where a pod names none is not chosen here but in the vendor's file (`defaults.count`): the
scheduler reads pods by the same file, and the two must agree.
"""

from collections.abc import Mapping
from typing import Literal, Protocol

import msgspec

from tessera.model.refusals import Refusal
from tessera.model.requests import PodRequest

DEFAULT_SCHEDULER = "default-scheduler"
HAMI_SCHEDULER = "hami-scheduler"
CLAIM_SCHEDULER = "gpu-scheduler"

NO_CLASSES: Mapping[str, str] = {}


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """`runtime_classes` are by vendor. `hides_cards` keeps cards from containers that ask for none.

    Pods with a claim or a pin go to `claim_scheduler`, others that ask for cards to `scheduler`. Without
    `takes_default` only those go anywhere that name one of our schedulers.
    """

    scheduler: str = HAMI_SCHEDULER
    claim_scheduler: str = CLAIM_SCHEDULER
    also_ours: tuple[str, ...] = (HAMI_SCHEDULER, CLAIM_SCHEDULER)
    takes_default: bool = True
    core_policy: Literal["default", "force", "disable"] = "default"
    runtime_classes: Mapping[str, str] = NO_CLASSES
    hides_cards: bool = False

    @property
    def schedulers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.scheduler, self.claim_scheduler, *self.also_ours)))

    def takes_over(self, scheduler: str | None) -> bool:
        """Whether a pod that names this scheduler, or none, is sent to one of ours."""
        is_default = (scheduler or DEFAULT_SCHEDULER) == DEFAULT_SCHEDULER
        return is_default and self.takes_default and scheduler not in self.schedulers

    def are_for(self, scheduler: str | None) -> bool:
        """Whether pods that name this scheduler, or none, are ours."""
        return scheduler in self.schedulers or self.takes_over(scheduler)


DEFAULT_SETTINGS = Settings()


class Quotas(Protocol):
    def check(self, namespace: str, request: PodRequest) -> Refusal | None:
        """Whether the namespace may hold this beside what it holds; None if it may."""
        ...


class _NoQuotas:
    def check(self, namespace: str, request: PodRequest) -> Refusal | None:
        del namespace, request


NO_QUOTAS: Quotas = _NoQuotas()
