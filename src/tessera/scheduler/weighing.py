"""The weights of a kube-scheduler profile in which our scores decide.

They must decide between nodes that a pod has no preference for, and must not outweigh a preference that it has.
kube-scheduler adds scores up, so the weights say it: what spreads by CPU and memory is off, what a pod asks for
(affinity, spreading, taints) weighs more than our whole range, and of our own range a thousand levels are used. What
somebody wrote into the profile stays: a weight counts against other weights, and what was turned off or on stays so.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

Document = dict[str, Any]
OUTWEIGHING = 250  # one hundred points of a plugin, so weighted, exceed ten times our thousand levels
PREFERENCES = ("TaintToleration", "NodeAffinity", "PodTopologySpread", "InterPodAffinity")
SILENCED = ("NodeResourcesFit", "NodeResourcesBalancedAllocation", "ImageLocality", "VolumeBinding")
_ALL = "*"
_SPREADING: Document = {
    "name": "PodTopologySpread",
    "args": {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "PodTopologySpreadArgs",
        "defaultingType": "List",
        "defaultConstraints": [],
    },
}


def weigh_profile(profile: Document) -> Document:
    """The same profile with the weights that leave the decision to us."""
    plugins: Document = profile.get("plugins") or {}
    configured: list[Document] = profile.get("pluginConfig") or []
    spreading = [] if any(one["name"] == _SPREADING["name"] for one in configured) else [_SPREADING]
    return {
        **profile,
        "plugins": {**plugins, "score": _weigh(_read(plugins, "score"), _read(plugins, "multiPoint"))},
        "pluginConfig": [*configured, *spreading],
    }


def other_scores(profile: Document) -> tuple[str, ...]:
    """The plugins that are enabled in the profile and may score beside us."""
    plugins: Document = profile.get("plugins") or {}
    named = (*_read(plugins, "score").weights, *_read(plugins, "multiPoint").weights)
    return tuple(name for name in named if name not in PREFERENCES)


class Phase(NamedTuple):
    """What is enabled in a phase, with its weight, and what is disabled in it."""

    weights: Mapping[str, int]
    disabled: tuple[str, ...]

    def is_off(self, name: str) -> bool:
        return name in self.disabled or _ALL in self.disabled


def _read(plugins: Document, phase: str) -> Phase:
    listed: Document = plugins.get(phase) or {}
    return Phase(
        {plugin["name"]: plugin.get("weight") or 1 for plugin in listed.get("enabled") or ()},
        tuple(plugin["name"] for plugin in listed.get("disabled") or ()),
    )


def _weigh(score: Phase, everywhere: Phase) -> Document:
    weights = {**everywhere.weights, **score.weights}
    preferences = [name for name in PREFERENCES if _counts(name, score, everywhere)]
    others = [name for name in score.weights if name not in PREFERENCES]
    silenced = [name for name in SILENCED if name not in weights]
    return {
        "disabled": [{"name": name} for name in dict.fromkeys((*silenced, *PREFERENCES, *score.disabled))],
        "enabled": [
            *({"name": name, "weight": OUTWEIGHING * weights.get(name, 1)} for name in preferences),
            *({"name": name, "weight": weights[name]} for name in others),
        ],
    }


def _counts(name: str, score: Phase, everywhere: Phase) -> bool:
    """Whether a plugin that kube-scheduler has by itself scores in this profile; a phase outdoes `multiPoint`."""
    if name in score.weights or score.is_off(name):
        return name in score.weights
    return name in everywhere.weights or not everywhere.is_off(name)
