"""Everything that is served: the built-in kinds, and those of the definitions that are in force."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tessera.embedded.documents import Document, Frozen
from tessera.embedded.kinds import Kind
from tessera.embedded.resources import configuration, events, jobs, limits, registrations, roles, table, workloads
from tessera.embedded.resources.column_sets import columns_of
from tessera.embedded.resources.columns import Column, printed
from tessera.embedded.resources.custom import CustomResources, kinds_of
from tessera.embedded.resources.definitions import Definitions
from tessera.embedded.resources.namespaces import Namespaces
from tessera.embedded.resources.nodes import Nodes
from tessera.embedded.resources.parts import inside
from tessera.embedded.resources.pods import Pods
from tessera.embedded.resources.scaling import WORKLOAD, ScalePaths, paths_of
from tessera.embedded.resources.services import Endpoints, EndpointSlices, Services
from tessera.embedded.resources.strategy import Strategy
from tessera.embedded.schemas import Schema, builtin_schema, read_definition

Translation = Callable[[Document], Document]

_PLAIN = Strategy()
_STRATEGIES: Mapping[Kind, Strategy] = {
    table.PODS: Pods(),
    table.NODES: Nodes(),
    table.NAMESPACES: Namespaces(),
    table.SERVICES: Services(),
    table.ENDPOINTS: Endpoints(),
    table.CONFIG_MAPS: configuration.ConfigMaps(),
    table.SECRETS: configuration.Secrets(),
    table.EVENTS: events.Events(),
    table.NEW_EVENTS: events.NewEvents(),
    table.RESOURCE_QUOTAS: limits.ResourceQuotas(),
    table.PERSISTENT_VOLUME_CLAIMS: limits.PersistentVolumeClaims(),
    table.DEPLOYMENTS: workloads.Deployments(),
    table.REPLICA_SETS: workloads.ReplicaSets(),
    table.STATEFUL_SETS: workloads.StatefulSets(),
    table.DAEMON_SETS: workloads.DaemonSets(),
    table.JOBS: jobs.Jobs(),
    table.LEASES: limits.Leases(),
    table.ENDPOINT_SLICES: EndpointSlices(),
    table.NETWORK_POLICIES: limits.NetworkPolicies(),
    table.DISRUPTION_BUDGETS: limits.DisruptionBudgets(),
    table.PRIORITY_CLASSES: limits.PriorityClasses(),
    table.RUNTIME_CLASSES: limits.RuntimeClasses(),
    table.ROLES: roles.Roles(),
    table.CLUSTER_ROLES: roles.ClusterRoles(),
    table.ROLE_BINDINGS: roles.RoleBindings(),
    table.CLUSTER_ROLE_BINDINGS: roles.ClusterRoleBindings(),
    table.MUTATING_WEBHOOKS: registrations.MutatingWebhooks(),
    table.VALIDATING_WEBHOOKS: registrations.Webhooks(),
    table.ADMISSION_POLICIES: registrations.AdmissionPolicies(),
    table.ADMISSION_POLICY_BINDINGS: registrations.AdmissionPolicyBindings(),
    table.DEFINITIONS: Definitions(),
}


@dataclass(frozen=True, kw_only=True)
class Served:
    """A kind with all that is known about it.

    `resource` is what its objects are stored under. Where they are stored in another form than this kind's, `to_stored`
    and `from_stored` translate. `scale` says where its replicas are told, if it has a scale at all. Of a kind whose
    definition `is_going` there is to be nothing new.
    """

    kind: Kind
    strategy: Strategy
    columns: Sequence[Column]
    resource: str
    read_schema: Callable[[], Schema | None]
    is_custom: bool = False
    is_going: bool = False
    scale: ScalePaths = WORKLOAD
    to_stored: Translation | None = None
    from_stored: Translation | None = None

    @cached_property
    def schema(self) -> Schema | None:
        """Read when it is first asked for: most built-in kinds never are."""
        return self.read_schema()


class Registry:
    """Changed by definitions as they come and go; looked up by every request."""

    def __init__(self, definitions: Sequence[Frozen] = ()) -> None:
        self._builtin = tuple(_builtin(kind) for kind in table.BUILTIN)
        self._custom: dict[str, tuple[Served, ...]] = {}
        self._index: dict[tuple[str, str, str], Served] = {}
        for definition in definitions:
            self._custom[definition["metadata"]["name"]] = tuple(_custom(definition))
        self._reindex()

    def find(self, group: str, version: str, plural: str) -> Served | None:
        return self._index.get((group, version, plural))

    def all(self) -> Iterator[Served]:
        """In the order of discovery: what is built in, then groups as they were defined, the best version first."""
        yield from self._builtin
        for served in self._custom.values():
            yield from served

    def define(self, definition: Frozen) -> None:
        """Serve what a definition says, as it is now. It must be valid."""
        self._custom[definition["metadata"]["name"]] = tuple(_custom(definition))
        self._reindex()

    def forget(self, name: str) -> None:
        """Stop serving what the definition of this name said."""
        if self._custom.pop(name, None) is not None:
            self._reindex()

    def _reindex(self) -> None:
        self._index = {(one.kind.group, one.kind.version, one.kind.plural): one for one in self.all()}


def _builtin(kind: Kind) -> Served:
    is_new_event = kind is table.NEW_EVENTS
    return Served(
        kind=kind,
        strategy=_STRATEGIES.get(kind, _PLAIN),
        columns=columns_of(kind),
        resource=table.EVENTS.resource if is_new_event else kind.resource,
        read_schema=lambda: builtin_schema(kind),
        to_stored=events.to_core if is_new_event else None,
        from_stored=events.from_core if is_new_event else None,
    )


def _custom(definition: Frozen) -> Iterator[Served]:
    for kind, version in kinds_of(definition):
        schema = read_definition(version["schema"]["openAPIV3Schema"])
        doors = inside(version, "subresources")
        yield Served(
            kind=kind,
            strategy=CustomResources(schema, has_status="status" in doors),
            columns=printed(version),
            resource=kind.resource,
            read_schema=lambda schema=schema: schema,
            is_custom=True,
            is_going="deletionTimestamp" in definition["metadata"],
            scale=paths_of(doors.get("scale")),
        )
