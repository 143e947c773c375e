"""A KubeSchedulerConfiguration, read by the loop that schedules where there is no kube-scheduler.

Its profiles say under which names pods are placed. The phases in which it may name `GpuClaimPlugin` are ours whether it
names them or not, and what kube-scheduler's own plugins filter is filtered here as well. So what it enables is so
already; a plugin that nobody has is refused, because whoever named it believes otherwise.
"""

from pathlib import Path

import msgspec
import yaml

from tessera.errors import InvalidRequest
from tessera.model.mismatches import explain_mismatch, show

GROUP, KIND = "kubescheduler.config.k8s.io/", "KubeSchedulerConfiguration"
OURS = "GpuClaimPlugin"
STOCK = frozenset(
    {
        "DefaultBinder",
        "DefaultPreemption",
        "DynamicResources",
        "ImageLocality",
        "InterPodAffinity",
        "NodeAffinity",
        "NodeName",
        "NodePorts",
        "NodeResourcesBalancedAllocation",
        "NodeResourcesFit",
        "NodeUnschedulable",
        "NodeVolumeLimits",
        "PodTopologySpread",
        "PrioritySort",
        "SchedulingGates",
        "TaintToleration",
        "VolumeBinding",
        "VolumeRestrictions",
        "VolumeZone",
    }
)


class Plugin(msgspec.Struct, frozen=True):
    name: str


class PluginSet(msgspec.Struct, frozen=True):
    enabled: tuple[Plugin, ...] = ()
    disabled: tuple[Plugin, ...] = ()


class Profile(msgspec.Struct, frozen=True, rename="camel"):
    scheduler_name: str = "default-scheduler"
    plugins: dict[str, PluginSet] = {}


class Configuration(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    profiles: tuple[Profile, ...] = ()


def load_profiles(path: Path) -> tuple[str, ...]:
    try:
        return read_profiles(yaml.safe_load(path.read_bytes()), str(path))
    except OSError as error:
        raise InvalidRequest(f"{path}: cannot be read: {error.strerror}, expected a {KIND}") from None
    except yaml.YAMLError as error:
        raise InvalidRequest(f"{path}: is not YAML: {' '.join(str(error).split())}, expected a {KIND}") from None


def read_profiles(document: object, where: str) -> tuple[str, ...]:
    """The names under which pods are to be placed."""
    try:
        configuration = msgspec.convert(document, Configuration)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"{where}: {explain_mismatch(error, document)}") from None
    if configuration.kind != KIND or not configuration.api_version.startswith(GROUP):
        found = f"{configuration.api_version} {configuration.kind}"
        raise InvalidRequest(f"{where}: is a {found}, expected a {GROUP}v1 {KIND}")
    for profile in configuration.profiles:
        _check_plugins(profile, where)
    return tuple(profile.scheduler_name for profile in configuration.profiles)


def _check_plugins(profile: Profile, where: str) -> None:
    for phase, plugins in profile.plugins.items():
        for plugin in plugins.enabled:
            if plugin.name != OURS and plugin.name not in STOCK:
                raise InvalidRequest(
                    f"{where}: profile {profile.scheduler_name}: {phase} enables {show(plugin.name)}, expected {OURS}"
                    " or a plugin of kube-scheduler; drop it"
                )
