"""What every view is: frozen data that encodes as JSON with names as Kubernetes spells them."""

from typing import Self

import msgspec

API_VERSION = "views.tessera.io/v1"


class View(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class Listed(View, frozen=True, kw_only=True):
    """One of many in a list. `deleted` is what somebody who watches is told last."""

    name: str
    deleted: bool = False

    @property
    def key(self) -> str:
        """What tells it apart from the others of its sort."""
        return self.name

    def at_rest(self) -> Self:
        """Without the times that pass by themselves: two that are equal so differ in nothing that anybody did."""
        return self
