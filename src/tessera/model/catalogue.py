"""A vendor as data: what it calls things, in which units it counts, what its containers need.

A new accelerator should be a file, not code. So everything in which vendors merely differ is a field here, and what is
left over, a true peculiarity, is a name in `rules` that `vendors.rules` gives a function to. `vendors.loading` reads
the files; this module only says what a file may hold and finds a vendor again by the words that pods and nodes use.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Annotated, Literal

import msgspec

from tessera.model.annotations.binding import AllocationKeys
from tessera.model.annotations.registers import CoresCount, RegisterFormat
from tessera.model.annotations.selectors import SelectorKeys

Word = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=63)]
Key = Annotated[
    str, msgspec.Meta(pattern=r"^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$")
]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Size = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
Percent = Annotated[int, msgspec.Meta(ge=0, le=100)]
Text = Annotated[str, msgspec.Meta(min_length=1)]
Occasion = Literal["always", "shared", "soft", "limited", "template", "claimed"]
ResourceRole = Literal["count", "memory", "memory_percent", "cores", "priority"]


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a vendor file; a field that it does not know is a mistake, never ignored."""


class ResourceNames(Entry, frozen=True, kw_only=True, dict=True):
    """The keys under `resources.limits`. A vendor that hands out whole cards has a count and nothing else.

    Aliases are other keys for the same, as Volcano has them; where both stand, they must agree.
    """

    count: Key
    count_aliases: tuple[Key, ...] = ()
    memory: Key | None = None
    memory_aliases: tuple[Key, ...] = ()
    memory_percent: Key | None = None
    memory_percent_aliases: tuple[Key, ...] = ()
    cores: Key | None = None
    cores_aliases: tuple[Key, ...] = ()
    priority: Key | None = None

    @cached_property
    def by_key(self) -> Mapping[str, ResourceRole]:
        return dict(self.named())

    def named(self) -> tuple[tuple[str, ResourceRole], ...]:
        """Every key with its role, main keys before their aliases; a key that stands twice is here twice."""
        named: tuple[tuple[ResourceRole, tuple[str | None, ...]], ...] = (
            ("count", (self.count, *self.count_aliases)),
            ("memory", (self.memory, *self.memory_aliases)),
            ("memory_percent", (self.memory_percent, *self.memory_percent_aliases)),
            ("cores", (self.cores, *self.cores_aliases)),
            ("priority", (self.priority,)),
        )
        return tuple((key, role) for role, keys in named for key in keys if key is not None)

    def of_role(self, role: ResourceRole) -> tuple[str, ...]:
        return self._of_roles.get(role, ())

    @cached_property
    def _of_roles(self) -> Mapping[ResourceRole, tuple[str, ...]]:
        roles = dict.fromkeys(self.by_key.values())
        return {role: tuple(key for key, has in self.by_key.items() if has == role) for role in roles}


class Defaults(Entry, frozen=True, kw_only=True):
    """What a container gets of a figure that it leaves out."""

    count: Count = 1
    memory_percent: Percent = 100
    cores_percent: Percent = 0


class AnnotationKeys(Entry, frozen=True, kw_only=True, dict=True):
    """On the node: register, handshake, links; the rest is on the pod. Without `register`, capacity tells the cards.

    `register_cores` is what the register's devcore counts: percent of a card, or units of which a card has any number.
    Aliases are read where the main key says nothing, and never written.
    """

    register: Key | None = None
    register_aliases: tuple[Key, ...] = ()
    register_format: RegisterFormat = RegisterFormat.HAMI
    register_cores: CoresCount = "percent"
    handshake: Key | None = None
    handshake_aliases: tuple[Key, ...] = ()
    to_allocate: Key | None = None
    to_allocate_aliases: tuple[Key, ...] = ()
    allocated: Key
    allocated_aliases: tuple[Key, ...] = ()
    use_type: Key | None = None
    avoid_type: Key | None = None
    use_uuid: Key | None = None
    avoid_uuid: Key | None = None
    mode: Key | None = None
    numa_bind: Key | None = None
    links: Key | None = None

    @cached_property
    def selector_keys(self) -> SelectorKeys:
        return SelectorKeys(
            use_type=self.use_type,
            avoid_type=self.avoid_type,
            use_uuid=self.use_uuid,
            avoid_uuid=self.avoid_uuid,
            mode=self.mode,
            numa_bind=self.numa_bind,
        )

    def owned(self) -> tuple[str, ...]:
        """The keys that carry cards, which no other vendor may use."""
        keys = (self.register, self.handshake, self.to_allocate, self.allocated)
        named = tuple(key for key in keys if key is not None)
        lists = (*self.to_allocate_aliases, *self.allocated_aliases)
        return (*named, *self.register_aliases, *self.handshake_aliases, *lists)

    def handshakes(self) -> tuple[str, ...]:
        """Where an agent says that it lives."""
        return (*((self.handshake,) if self.handshake else ()), *self.handshake_aliases)

    def registers(self) -> tuple[str, ...]:
        """Where the cards may stand, in the order in which to look."""
        return (*((self.register,) if self.register else ()), *self.register_aliases)

    def all(self) -> tuple[str, ...]:
        keys = (self.use_type, self.avoid_type, self.use_uuid, self.avoid_uuid, self.mode, self.numa_bind, self.links)
        return (*self.owned(), *(key for key in keys if key is not None))


class Variable(Entry, frozen=True, kw_only=True):
    """One environment variable of a container.

    `per` says what it is rendered for: the container (with the figures of its first card), each card (a variable of
    its own), or a list (rendered for each card, joined by `separator`). `when` leaves it out where it has no meaning:
    for cards that are not shared, not limited in memory, not of a template, not shared without one (`soft`), or not
    held by a claim of the whole pod.
    `needs` leaves it out where nothing is mounted at that path of the container, `unless` where something is.
    """

    name: Text
    value: str
    per: Literal["container", "card", "list"] = "container"
    separator: str = ","
    when: Occasion = "always"
    needs: str = ""
    unless: str = ""


class MountPoint(Entry, frozen=True, kw_only=True):
    """A read-only one is there where the host has the file; the first of several for one path that exists is taken.

    Another one is made for containers to write to: a directory, or an empty file. `per` says whether there is one for
    the container or one for each of its cards, `when` for which cards, as it does of variables. `needs` leaves it out
    where nothing that stands before it in the file is mounted at that path of the container, `unless` where something
    is.
    """

    container: Text
    host: Text
    read_only: bool = True
    made_as: Literal["directory", "file"] = "directory"
    per: Literal["container", "card"] = "container"
    when: Occasion = "always"
    needs: str = ""
    unless: str = ""


class TermVariables(Entry, frozen=True, kw_only=True):
    """The variables by which a container says how it is to be held to its limits; empty where a vendor has none.

    They are read by the agent and end up in the limits file, where the container cannot change them any more.
    """

    cores_policy: str = ""
    priority: str = ""
    spill: str = ""
    end_on_refusal: str = ""


class Template(Entry, frozen=True, kw_only=True):
    """A fixed slice that the hardware offers, such as an Ascend vNPU."""

    name: Word
    memory_mib: Size
    cores: Size
    cpus: Count = 0


class Model(Entry, frozen=True, kw_only=True):
    """A card that is known by name, so that a simulated one is like the real one.

    `island_size` cards are joined by fast links, `numa_size` share a NUMA node (0: all of them). A link within an
    island has `link_score`; others are scored by the distance between their NUMA nodes. `bandwidth_gbps` is what a card
    has to the others of its island, both directions together.
    """

    name: Word
    reported_as: str = ""
    memory_mib: Size
    compute_units: Size = 100
    island_size: Size = 1
    link_score: Count = 0
    bandwidth_gbps: Count = 0
    numa_size: Count = 0
    mig_profiles: tuple[Word, ...] = ()


class Vendor(Entry, frozen=True, kw_only=True):
    """Everything that sets one kind of accelerator apart. `name` is the common word that annotations use as the type.

    `cores_per_card` is what the cores resource counts to on a whole card: 100 where it is a percentage.
    `card_id` names cards that have no name of their own: simulated ones, and those known only as a node's capacity.
    `capacity_counts` is the resource that tells how many those are: cores, where the count counts shares of cards.
    """

    name: Word
    title: Text
    resources: ResourceNames
    annotations: AnnotationKeys
    memory_unit_mib: Size = 1
    memory_takes_bytes: bool = False
    cores_per_card: Size = 100
    slots: Size = 1
    assumed_memory_mib: Count = 0
    capacity_counts: Literal["count", "cores"] = "count"
    card_id: Text = "{node}-{vendor}-{index}"
    defaults: Defaults = Defaults()
    rules: tuple[Word, ...] = ()
    memory_steps_mib: tuple[Size, ...] = ()
    templates: tuple[Template, ...] = ()
    models: tuple[Model, ...] = ()
    environment: tuple[Variable, ...] = ()
    term_variables: TermVariables = TermVariables()
    mounts: tuple[MountPoint, ...] = ()
    device_paths: tuple[Text, ...] = ()

    def template_for(self, memory_mib: int) -> Template | None:
        """The smallest slice that has this much memory; None where only a whole card has."""
        return min(
            (template for template in self.templates if template.memory_mib >= memory_mib),
            key=lambda template: template.memory_mib,
            default=None,
        )


class ResourceUse(msgspec.Struct, frozen=True):
    """What a resource key means."""

    vendor: Vendor
    role: ResourceRole


class Catalogue:
    """The vendors in force, found by the words that pods and nodes use. `vendors.loading` checks that none collide."""

    def __init__(self, vendors: Iterable[Vendor]) -> None:
        self.vendors = tuple(vendors)
        self._by_name = {vendor.name: vendor for vendor in self.vendors}
        self._by_resource = {
            key: ResourceUse(vendor, role) for vendor in self.vendors for key, role in vendor.resources.by_key.items()
        }
        self._by_annotation: dict[str, tuple[Vendor, ...]] = {}
        for vendor in self.vendors:
            for key in vendor.annotations.all():
                self._by_annotation[key] = (*self._by_annotation.get(key, ()), vendor)

    def __iter__(self) -> Iterator[Vendor]:
        return iter(self.vendors)

    def __len__(self) -> int:
        return len(self.vendors)

    def by_name(self, name: str) -> Vendor | None:
        return self._by_name.get(name)

    def by_resource(self, key: str) -> ResourceUse | None:
        return self._by_resource.get(key)

    def by_annotation(self, key: str) -> tuple[Vendor, ...]:
        """Several only where vendors share a selector, as MetaX's whole and shared cards do."""
        return self._by_annotation.get(key, ())

    def allocation_keys(self) -> dict[str, AllocationKeys]:
        """Where each vendor's device lists stand on a pod."""
        return {
            vendor.name: AllocationKeys(
                vendor.annotations.to_allocate or "",
                vendor.annotations.allocated,
                (*vendor.annotations.allocated_aliases, *vendor.annotations.to_allocate_aliases),
            )
            for vendor in self.vendors
        }

    def managed_resources(self) -> tuple[str, ...]:
        """Every resource that kube-scheduler must leave to us, in a stable order."""
        return tuple(sorted(self._by_resource))
