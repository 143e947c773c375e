"""The KubeSchedulerConfiguration under which the stock kube-scheduler works for us.

The extender stands there twice. Whether a pod fits and that it is bound is asked of pods that want cards. Which node is
best is asked of all pods of our profiles: one without cards is best where it takes no CPU from cards that are free.
Where the weights (`weighing`) leave the decision to us anyway, the first question is answered with the best node alone.
"""

from typing import NamedTuple

from tessera.errors import InvalidRequest
from tessera.model.annotations.keys import CLAIM, GANG
from tessera.model.catalogue import Catalogue
from tessera.model.extender import CHOOSE
from tessera.scheduler.weighing import Document, weigh_profile

PROFILES = ("hami-scheduler", "gpu-scheduler")
EXTENDER_TIMEOUT = "10s"
EVERY_NODE = 100
CLIENT: Document = {"qps": 1000, "burst": 2000}
ELECTION: Document = {"resourceName": PROFILES[0], "resourceNamespace": "kube-system"}
SCORING: Document = {"prioritizeVerb": "prioritize", "weight": 1}
ALL_NODES, BEST_NODE = "filter", CHOOSE.removeprefix("/")
"""What filter answers with. The best node alone will do where nothing but our scores counts."""


class Endpoint(NamedTuple):
    """Where the extender answers; over https `ca_file` verifies it, plain http is for the same pod or host."""

    url: str
    ca_file: str = ""


def scheduler_configuration(
    catalogue: Catalogue, endpoint: Endpoint, *, kubeconfig: str = "", leader_elect: bool = True
) -> Document:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": kubeconfig, **CLIENT},
        "leaderElection": {"leaderElect": leader_elect, **ELECTION},
        "percentageOfNodesToScore": EVERY_NODE,
        "profiles": [weigh_profile({"schedulerName": name}) for name in PROFILES],
        "extenders": [deciding(catalogue, endpoint, BEST_NODE), scoring(endpoint)],
    }


def deciding(catalogue: Catalogue, endpoint: Endpoint, filter_verb: str) -> Document:
    """The extender that is asked about pods that want cards, and about no others."""
    return {
        **_reaching(endpoint),
        "filterVerb": filter_verb,
        "bindVerb": "bind",
        "ignorable": False,
        "managedResources": [{"name": name, "ignoredByScheduler": True} for name in managed_resources(catalogue)],
    }


def managed_resources(catalogue: Catalogue) -> tuple[str, ...]:
    """By these a pod is one for us; the webhook adds the last two, to pods that claim cards and to those of gangs."""
    return (*catalogue.managed_resources(), CLAIM, GANG)


def scoring(endpoint: Endpoint) -> Document:
    """The one that is asked about all pods. Without it kube-scheduler goes on: who wants no cards need not wait."""
    return {**_reaching(endpoint), **SCORING, "ignorable": True}


def _reaching(endpoint: Endpoint) -> Document:
    return {
        "urlPrefix": endpoint.url.rstrip("/"),
        "httpTimeout": EXTENDER_TIMEOUT,
        "nodeCacheCapable": True,
        **_transport(endpoint),
    }


def _transport(endpoint: Endpoint) -> Document:
    """kube-scheduler verifies nobody if it is given no authority, and does not say so."""
    scheme, _, host = endpoint.url.partition("://")
    if scheme not in ("http", "https") or not host:
        raise InvalidRequest(f'the extender\'s URL is "{endpoint.url}", expected one such as http://127.0.0.1:8080')
    if scheme == "http" and endpoint.ca_file:
        raise InvalidRequest(
            f"the extender is at {endpoint.url}, where a CA file verifies nothing; use https or drop it"
        )
    if scheme == "http":
        return {"enableHTTPS": False}
    if not endpoint.ca_file:
        raise InvalidRequest(
            f"the extender is at {endpoint.url} and no CA file is named; name the one that verifies it"
        )
    return {"enableHTTPS": True, "tlsConfig": {"insecure": False, "caFile": endpoint.ca_file}}
