"""The built-in kinds that are served, as discovery shows them: what docs/engines.md needs and no more."""

from typing import NamedTuple

from tessera.embedded.kinds import Kind

ALL = ("all",)
EXTENSIONS = ("api-extensions",)
CREATE_ONLY = ("create",)
NO_COLLECTION = ("create", "delete", "get", "list", "patch", "update", "watch")
CHANGED_IN_PLACE = ("get", "patch", "update")
CONNECTED = ("create", "get")
PROXIED = ("create", "delete", "get", "patch", "update")

STATUS = ("status",)
SCALED = ("scale", "status")

APPS, BATCH, POLICY = "apps", "batch", "policy"
RBAC = "rbac.authorization.k8s.io"
ADMISSION = "admissionregistration.k8s.io"
AUTHENTICATION, AUTHORIZATION = "authentication.k8s.io", "authorization.k8s.io"


def _core(kind: str, plural: str, *short_names: str, **more: object) -> Kind:
    return _kind("", kind, plural, *short_names, **more)


def _kind(group: str, kind: str, plural: str, *short_names: str, **more: object) -> Kind:
    told = {"version": "v1", "singular": kind.lower(), "short_names": short_names} | more
    return Kind(group=group, kind=kind, plural=plural, **told)  # type: ignore[arg-type] # the options are Kind's own


def _cluster(group: str, kind: str, plural: str, *short_names: str, **more: object) -> Kind:
    return _kind(group, kind, plural, *short_names, is_namespaced=False, **more)


PODS = _core(
    "Pod",
    "pods",
    "po",
    categories=ALL,
    subresources=("attach", "binding", "eviction", "exec", "log", "portforward", "proxy", "status"),
)
NODES = _cluster("", "Node", "nodes", "no", subresources=("proxy", "status"))
NAMESPACES = _cluster("", "Namespace", "namespaces", "ns", verbs=NO_COLLECTION, subresources=("finalize", "status"))
SERVICES = _core("Service", "services", "svc", categories=ALL, subresources=("proxy", "status"))
ENDPOINTS = _core("Endpoints", "endpoints", "ep")
CONFIG_MAPS = _core("ConfigMap", "configmaps", "cm")
SECRETS = _core("Secret", "secrets")
SERVICE_ACCOUNTS = _core("ServiceAccount", "serviceaccounts", "sa", subresources=("token",))
EVENTS = _core("Event", "events", "ev")
RESOURCE_QUOTAS = _core("ResourceQuota", "resourcequotas", "quota", subresources=STATUS)
PERSISTENT_VOLUME_CLAIMS = _core("PersistentVolumeClaim", "persistentvolumeclaims", "pvc", subresources=STATUS)
NEW_EVENTS = _kind("events.k8s.io", "Event", "events", "ev")
DEPLOYMENTS = _kind(APPS, "Deployment", "deployments", "deploy", categories=ALL, subresources=SCALED)
REPLICA_SETS = _kind(APPS, "ReplicaSet", "replicasets", "rs", categories=ALL, subresources=SCALED)
STATEFUL_SETS = _kind(APPS, "StatefulSet", "statefulsets", "sts", categories=ALL, subresources=SCALED)
DAEMON_SETS = _kind(APPS, "DaemonSet", "daemonsets", "ds", categories=ALL, subresources=STATUS)
JOBS = _kind(BATCH, "Job", "jobs", categories=ALL, subresources=STATUS)
LEASES = _kind("coordination.k8s.io", "Lease", "leases")
ENDPOINT_SLICES = _kind("discovery.k8s.io", "EndpointSlice", "endpointslices")
NETWORK_POLICIES = _kind("networking.k8s.io", "NetworkPolicy", "networkpolicies", "netpol")
DISRUPTION_BUDGETS = _kind(POLICY, "PodDisruptionBudget", "poddisruptionbudgets", "pdb", subresources=STATUS)
PRIORITY_CLASSES = _cluster("scheduling.k8s.io", "PriorityClass", "priorityclasses", "pc")
RUNTIME_CLASSES = _cluster("node.k8s.io", "RuntimeClass", "runtimeclasses")
ROLES = _kind(RBAC, "Role", "roles")
ROLE_BINDINGS = _kind(RBAC, "RoleBinding", "rolebindings")
CLUSTER_ROLES = _cluster(RBAC, "ClusterRole", "clusterroles")
CLUSTER_ROLE_BINDINGS = _cluster(RBAC, "ClusterRoleBinding", "clusterrolebindings")
MUTATING_WEBHOOKS = _cluster(
    ADMISSION, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", categories=EXTENSIONS
)
VALIDATING_WEBHOOKS = _cluster(
    ADMISSION, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", categories=EXTENSIONS
)
ADMISSION_POLICIES = _cluster(
    ADMISSION, "ValidatingAdmissionPolicy", "validatingadmissionpolicies", categories=EXTENSIONS, subresources=STATUS
)
ADMISSION_POLICY_BINDINGS = _cluster(
    ADMISSION, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", categories=EXTENSIONS
)
DEFINITIONS = _cluster(
    "apiextensions.k8s.io",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    "crd",
    "crds",
    categories=EXTENSIONS,
    subresources=STATUS,
)
SELF_SUBJECT_REVIEWS = _cluster(AUTHENTICATION, "SelfSubjectReview", "selfsubjectreviews", verbs=CREATE_ONLY)
TOKEN_REVIEWS = _cluster(AUTHENTICATION, "TokenReview", "tokenreviews", verbs=CREATE_ONLY)
LOCAL_ACCESS_REVIEWS = _kind(AUTHORIZATION, "LocalSubjectAccessReview", "localsubjectaccessreviews", verbs=CREATE_ONLY)
SELF_ACCESS_REVIEWS = _cluster(AUTHORIZATION, "SelfSubjectAccessReview", "selfsubjectaccessreviews", verbs=CREATE_ONLY)
SELF_RULES_REVIEWS = _cluster(AUTHORIZATION, "SelfSubjectRulesReview", "selfsubjectrulesreviews", verbs=CREATE_ONLY)
ACCESS_REVIEWS = _cluster(AUTHORIZATION, "SubjectAccessReview", "subjectaccessreviews", verbs=CREATE_ONLY)

BUILTIN: tuple[Kind, ...] = (
    CONFIG_MAPS,
    ENDPOINTS,
    EVENTS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    RESOURCE_QUOTAS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    DAEMON_SETS,
    DEPLOYMENTS,
    REPLICA_SETS,
    STATEFUL_SETS,
    NEW_EVENTS,
    SELF_SUBJECT_REVIEWS,
    TOKEN_REVIEWS,
    LOCAL_ACCESS_REVIEWS,
    SELF_ACCESS_REVIEWS,
    SELF_RULES_REVIEWS,
    ACCESS_REVIEWS,
    JOBS,
    NETWORK_POLICIES,
    DISRUPTION_BUDGETS,
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    ROLE_BINDINGS,
    ROLES,
    MUTATING_WEBHOOKS,
    ADMISSION_POLICIES,
    ADMISSION_POLICY_BINDINGS,
    VALIDATING_WEBHOOKS,
    DEFINITIONS,
    PRIORITY_CLASSES,
    LEASES,
    RUNTIME_CLASSES,
    ENDPOINT_SLICES,
)
"""In the order in which discovery shows groups, and the kinds in them."""

REVIEWS = frozenset(kind.resource for kind in BUILTIN if kind.verbs == CREATE_ONLY)
"""Questions: they are answered and not kept."""


class Subresource(NamedTuple):
    """A door into an object, as discovery shows it; group and version are told where they are not the object's own."""

    name: str
    kind: str
    verbs: tuple[str, ...]
    group: str = ""
    version: str = ""


_DOORS = {
    ("nodes", "proxy"): Subresource("proxy", "NodeProxyOptions", PROXIED),
    ("pods", "attach"): Subresource("attach", "PodAttachOptions", CONNECTED),
    ("pods", "binding"): Subresource("binding", "Binding", CREATE_ONLY),
    ("pods", "eviction"): Subresource("eviction", "Eviction", CREATE_ONLY, POLICY, "v1"),
    ("pods", "exec"): Subresource("exec", "PodExecOptions", CONNECTED),
    ("pods", "log"): Subresource("log", "Pod", ("get",)),
    ("pods", "portforward"): Subresource("portforward", "PodPortForwardOptions", CONNECTED),
    ("pods", "proxy"): Subresource("proxy", "PodProxyOptions", PROXIED),
    ("services", "proxy"): Subresource("proxy", "ServiceProxyOptions", PROXIED),
    ("namespaces", "finalize"): Subresource("finalize", "Namespace", ("update",)),
    ("serviceaccounts", "token"): Subresource("token", "TokenRequest", CREATE_ONLY, AUTHENTICATION, "v1"),
}


def subresources_of(kind: Kind) -> list[Subresource]:
    return [_subresource(kind, name) for name in kind.subresources]


def _subresource(kind: Kind, name: str) -> Subresource:
    if name == "status":
        return Subresource(name, kind.kind, CHANGED_IN_PLACE)
    if name == "scale":
        return Subresource(name, "Scale", CHANGED_IN_PLACE, "autoscaling", "v1")
    return _DOORS[(kind.resource, name)]
