"""A KubeSchedulerConfiguration that somebody wrote, read for whoever works by it.

The embedded loop takes the names from it under which pods are placed. There the phases in which it may name
`GpuClaimPlugin` are ours whether it names them or not, and what kube-scheduler's own plugins filter is filtered as
well. So what it enables is so already; a plugin that nobody has is refused, because whoever named it believes
otherwise. `adapting` makes from it what a stock kube-scheduler runs with our extender.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml

from tessera.errors import InvalidRequest
from tessera.model.mismatches import explain_mismatch, show

VERSION, KIND = "kubescheduler.config.k8s.io/v1", "KubeSchedulerConfiguration"
OURS = "GpuClaimPlugin"
OUR_PHASES = ("preFilter", "filter", "score", "reserve", "preBind")
EVERYWHERE = "multiPoint"
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
    weight: int | None = None


class PluginSet(msgspec.Struct, frozen=True):
    enabled: tuple[Plugin, ...] | None = None
    disabled: tuple[Plugin, ...] | None = None


class PluginConfig(msgspec.Struct, frozen=True):
    name: str


class Profile(msgspec.Struct, frozen=True, rename="camel"):
    scheduler_name: str | None = None
    plugins: dict[str, PluginSet | None] | None = None
    plugin_config: tuple[PluginConfig, ...] | None = None

    @property
    def name(self) -> str:
        return self.scheduler_name or "default-scheduler"

    def enabled(self) -> Iterator[tuple[str, str]]:
        """Phases, and what is enabled in them."""
        for phase, plugins in (self.plugins or {}).items():
            for plugin in (plugins and plugins.enabled) or ():
                yield phase, plugin.name

    @property
    def our_phases(self) -> tuple[str, ...]:
        """The phases in which our plugin is to have a say."""
        named = {phase for phase, plugin in self.enabled() if plugin == OURS}
        return OUR_PHASES if EVERYWHERE in named else tuple(phase for phase in OUR_PHASES if phase in named)

    def unknown_plugins(self) -> Iterator[tuple[str, str]]:
        return ((phase, plugin) for phase, plugin in self.enabled() if plugin != OURS and plugin not in STOCK)


class Resource(msgspec.Struct, frozen=True):
    name: str


class OtherExtender(msgspec.Struct, frozen=True, rename="camel"):
    url_prefix: str
    bind_verb: str | None = None
    managed_resources: tuple[Resource, ...] | None = None


class Configuration(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    profiles: tuple[Profile, ...] | None = None
    extenders: tuple[OtherExtender, ...] | None = None


class Given(NamedTuple):
    """The whole of what was written, what we read of it, and where it was written."""

    document: dict[str, Any]
    configuration: Configuration
    where: str

    @property
    def profiles(self) -> tuple[Profile, ...]:
        return self.configuration.profiles or ()


def load_profiles(path: Path) -> tuple[str, ...]:
    """The names under which pods are to be placed where there is no kube-scheduler."""
    given = load_configuration(path)
    for profile in given.profiles:
        for phase, plugin in profile.unknown_plugins():
            raise InvalidRequest(
                f"{path}: profile {profile.name}: {phase} enables {show(plugin)}, expected {OURS}"
                " or a plugin of kube-scheduler; drop it"
            )
    return tuple(profile.name for profile in given.profiles)


def load_configuration(path: Path) -> Given:
    try:
        return parse_configuration(path.read_bytes(), str(path))
    except OSError as error:
        raise InvalidRequest(f"{path}: cannot be read: {error.strerror}, expected a {KIND}") from None


def parse_configuration(text: bytes, where: str) -> Given:
    """`where` is the name of what it was read from."""
    try:
        return _read_configuration(yaml.safe_load(text), where)
    except (yaml.YAMLError, UnicodeError) as error:
        raise InvalidRequest(f"{where}: is not YAML: {' '.join(str(error).split())}, expected a {KIND}") from None


def _read_configuration(document: Any, where: str) -> Given:
    try:
        configuration = msgspec.convert(document, Configuration)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"{where}: {explain_mismatch(error, document)}") from None
    if (configuration.api_version, configuration.kind) != (VERSION, KIND):
        found = f"{configuration.api_version} {configuration.kind}"
        raise InvalidRequest(f"{where}: is a {found}, expected a {VERSION} {KIND}")
    for profile in configuration.profiles or ():
        for phase, plugin in profile.enabled():
            if plugin == OURS and phase not in (*OUR_PHASES, EVERYWHERE):
                raise InvalidRequest(
                    f"{where}: profile {profile.name}: {phase} enables {OURS}, expected it in"
                    f" {', '.join(OUR_PHASES)} or {EVERYWHERE}; drop it there"
                )
    return Given(document, configuration, where)
