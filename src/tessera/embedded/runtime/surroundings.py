"""What a pod runs in: everything that its containers share and that is not in its document."""

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from tessera.embedded.documents import Frozen
from tessera.embedded.runtime.cgroups import Cgroups
from tessera.embedded.runtime.fields import Place
from tessera.embedded.runtime.hosts import hostname_of
from tessera.embedded.runtime.images import Images
from tessera.embedded.runtime.restarts import Restarts
from tessera.embedded.runtime.sources import Names, Prepare, Sources, Tell


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """`retry_s` after something that was missing, `refresh_s` between two looks at what volumes are made of."""

    restarts: Restarts = Restarts()
    retry_s: float = 2.0
    refresh_s: float = 60.0
    most_log_bytes: int = 10 * 1024 * 1024


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """What all pods of a runtime share. `variables` are those that every container has.

    `shows_mounts` says whether processes can have mount namespaces here.
    """

    name: str
    images: Images
    sources: Sources
    prepare: Prepare
    cgroups: Cgroups
    names: Names
    variables: Mapping[str, str]
    shows_mounts: bool
    settings: Settings


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """Of one pod. `changed` is called whenever its status may be another one."""

    machine: Machine
    pod: Frozen
    place: Place
    directory: Path
    tell: Tell
    changed: Callable[[], None]

    @property
    def uid(self) -> str:
        return self.pod["metadata"]["uid"]

    @property
    def hostname(self) -> str:
        return hostname_of(self.pod)

    def base_variables(self) -> dict[str, str]:
        address = self.place.pod_address
        return {**self.machine.variables, "HOSTNAME": self.hostname, "POD_IP": address}
