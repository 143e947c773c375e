"""The KubeSchedulerConfiguration under which the stock kube-scheduler works for us.

Our scores must decide between nodes that a pod has no preference for, and must not outweigh a preference that it has.
kube-scheduler adds scores up, so the weights say it: what spreads by CPU and memory is off, what a pod asks for
(affinity, spreading, taints) weighs more than our whole range, and of our own range a thousand levels are used.

The extender stands there twice. Whether a pod fits and that it is bound is asked of pods that want cards. Which node is
best is asked of all pods of our profiles: one without cards is best where it takes no CPU from cards that are free.
Where those weights leave the decision to us anyway, the first question is answered with the best node alone.
"""

from typing import Any, NamedTuple

from tessera.errors import InvalidRequest
from tessera.model.annotations.keys import CLAIM
from tessera.model.catalogue import Catalogue
from tessera.model.extender import CHOOSE

PROFILES = ("hami-scheduler", "gpu-scheduler")
OUTWEIGHING = 250  # one hundred points of a plugin, so weighted, exceed ten times our thousand levels
PREFERENCES = ("TaintToleration", "NodeAffinity", "PodTopologySpread", "InterPodAffinity")
SILENCED = ("NodeResourcesFit", "NodeResourcesBalancedAllocation", "ImageLocality", "VolumeBinding")
EXTENDER_TIMEOUT = "10s"


class Endpoint(NamedTuple):
    """Where the extender answers; over https `ca_file` verifies it, plain http is for the same pod or host."""

    url: str
    ca_file: str = ""


def scheduler_configuration(
    catalogue: Catalogue, endpoint: Endpoint, *, kubeconfig: str = "", leader_elect: bool = True
) -> dict[str, Any]:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": kubeconfig, "qps": 1000, "burst": 2000},
        "leaderElection": {
            "leaderElect": leader_elect,
            "resourceName": PROFILES[0],
            "resourceNamespace": "kube-system",
        },
        "percentageOfNodesToScore": 100,
        "profiles": [_profile(name) for name in PROFILES],
        "extenders": [_deciding(catalogue, endpoint), _scoring(endpoint)],
    }


def _profile(name: str) -> dict[str, Any]:
    return {
        "schedulerName": name,
        "plugins": {
            "score": {
                "disabled": [{"name": plugin} for plugin in (*SILENCED, *PREFERENCES)],
                "enabled": [{"name": plugin, "weight": OUTWEIGHING} for plugin in PREFERENCES],
            }
        },
        "pluginConfig": [
            {
                "name": "PodTopologySpread",
                "args": {
                    "apiVersion": "kubescheduler.config.k8s.io/v1",
                    "kind": "PodTopologySpreadArgs",
                    "defaultingType": "List",
                    "defaultConstraints": [],
                },
            }
        ],
    }


def _deciding(catalogue: Catalogue, endpoint: Endpoint) -> dict[str, Any]:
    names = (*catalogue.managed_resources(), CLAIM)  # the webhook adds the last to pods with a claim
    return {
        **_reaching(endpoint),
        "filterVerb": CHOOSE.removeprefix("/"),
        "bindVerb": "bind",
        "ignorable": False,
        "managedResources": [{"name": name, "ignoredByScheduler": True} for name in names],
    }


def _scoring(endpoint: Endpoint) -> dict[str, Any]:
    """Without it kube-scheduler goes on: a pod without cards need not wait for us."""
    return {**_reaching(endpoint), "prioritizeVerb": "prioritize", "weight": 1, "ignorable": True}


def _reaching(endpoint: Endpoint) -> dict[str, Any]:
    return {
        "urlPrefix": endpoint.url.rstrip("/"),
        "httpTimeout": EXTENDER_TIMEOUT,
        "nodeCacheCapable": True,
        **_transport(endpoint),
    }


def _transport(endpoint: Endpoint) -> dict[str, Any]:
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
