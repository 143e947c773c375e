"""How one run of a container is put together: its variables, mounts, control group and log."""

import os
from pathlib import Path

import msgspec

from tessera.embedded.documents import Frozen
from tessera.embedded.runtime import last_words, views
from tessera.embedded.runtime.cgroups import Group
from tessera.embedded.runtime.environment import container_environment, expand, references_of
from tessera.embedded.runtime.hosts import hosts_text
from tessera.embedded.runtime.images import Program
from tessera.embedded.runtime.namespaces import Shown
from tessera.embedded.runtime.parts import part
from tessera.embedded.runtime.process import Launch
from tessera.embedded.runtime.sources import Event
from tessera.embedded.runtime.surroundings import Surroundings
from tessera.embedded.runtime.volumes import Volumes, fetch_all
from tessera.model.quantities import bytes_of

HOSTS = "/etc/hosts"
LAST_WORDS = "last-words"


class Assembled(msgspec.Struct, frozen=True):
    """`last_words` is the file that the container may leave them in."""

    launch: Launch
    group: Group
    last_words: Path


async def assemble(around: Surroundings, volumes: Volumes, container: Frozen, program: Program, log: Path) -> Assembled:
    """StartRefused, if something that the container needs is not there, or it may not start."""
    machine, name = around.machine, container["name"]
    additions = await machine.prepare(around.pod, name)
    known = await fetch_all(machine.sources, around.pod, references_of(container))
    environment = container_environment(around.pod, container, around.place, known, around.base_variables())
    environment |= additions.environment
    mounts = [*volumes.mounts_of(container, environment), *additions.mounts]
    own = around.directory / "containers" / name
    directory = container.get("workingDir") or str(_made(own / "work"))
    spare = ""
    if machine.shows_mounts:
        mounts += _usual_mounts(around, own, mounts, directory, container)
        spare = str(_made(own / "root"))
    elif unseen := views.lay_out(_made(own / "view"), mounts):
        environment[views.VARIABLE] = str(own / "view")
        around.tell(Event("Warning", "MountUnavailable", views.explain_unseen(unseen, own / "view")))
    tell_user(around, container)
    group = make_group(around, container)
    log.parent.mkdir(parents=True, exist_ok=True)
    launch = Launch(
        argv=[expand(word, environment) for word in program.argv],
        environment=environment,
        directory=directory,
        mark=f"{machine.name}/{around.uid}/{name}/",
        hostname=around.hostname,
        mounts=mounts,
        spare=spare,
        log=str(log),
        most_log_bytes=machine.settings.most_log_bytes,
        process_files=group.process_files,
        kill_files=group.kill_files,
    )
    return Assembled(launch, group, own / LAST_WORDS)


def tell_user(around: Surroundings, container: Frozen) -> None:
    """Programs and files of this machine are often for nobody else than whoever has started us."""
    everyone, user = part(around.pod, "spec", "securityContext").get("runAsUser"), os.geteuid()
    wanted = part(container, "securityContext").get("runAsUser", everyone)
    if wanted not in (None, user):
        message = (
            f"container {container['name']} runs as user {user}, not as {wanted}: its processes are this machine's"
        )
        around.tell(Event("Warning", "UserNotKept", f"{message}, of whoever has started the engine"))


def make_group(around: Surroundings, container: Frozen) -> Group:
    limit = part(container, "resources", "limits").get("memory")
    cgroups = around.machine.cgroups
    if limit and not cgroups.limits_memory:
        around.tell(
            Event(
                "Warning",
                "MemoryLimitNotKept",
                f"container {container['name']} is not held to its {limit} of memory: this machine lets us make no"
                " control group; run as root or in a delegated group",
            )
        )
    return cgroups.make(f"{around.uid}.{container['name']}", memory_bytes=bytes_of(limit) if limit else None)


def write_hosts(around: Surroundings) -> Path:
    """In place, not anew: containers that have the file mounted see what is written to it."""
    path = around.directory / "hosts"
    names = around.machine.names(around.pod["metadata"]["namespace"])
    path.write_text(hosts_text(around.pod, around.place.pod_address, names))
    return path


def _usual_mounts(
    around: Surroundings, own: Path, mounts: list[Shown], directory: str, container: Frozen
) -> list[Shown]:
    """What a container expects although its pod does not say so."""
    taken = {shown.target for shown in mounts}
    usual = [Shown(str(write_hosts(around)), HOSTS), last_words.lay_out(_made(own) / LAST_WORDS, container)]
    if not Path(directory).exists() and not any(Path(directory).is_relative_to(target) for target in taken):
        usual.append(Shown(str(_made(own / "work")), directory))
    return [shown for shown in usual if shown.target not in taken]


def _made(directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    return directory
