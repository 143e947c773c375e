"""What a served kind is called, and what may be done with it."""

import msgspec

EVERYTHING = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """`group` is empty for the core. `subresources` are by their last word: `status`, `scale`, `log`."""

    group: str = ""
    version: str
    kind: str
    plural: str
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    is_namespaced: bool = True
    verbs: tuple[str, ...] = EVERYTHING
    subresources: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """With its group, as refusals and storage name it: `pods`, `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def list_kind(self) -> str:
        return f"{self.kind}List"
