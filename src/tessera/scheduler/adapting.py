"""A KubeSchedulerConfiguration that names GpuClaimPlugin, made into one that the stock kube-scheduler runs.

kube-scheduler has no such plugin; its phases are answered by our extender. So the plugin goes out of every phase and
the extender comes in; whatever else was written stays. An extender is for all profiles and does all of its work or
none. Where a profile wanted less, it is told what it gets all the same: `notes` has a sentence for each such thing.
"""

from collections.abc import Iterator
from typing import NamedTuple

from tessera.errors import InvalidRequest
from tessera.model.catalogue import Catalogue
from tessera.model.mismatches import show
from tessera.scheduler.configuration import (
    ALL_NODES,
    BEST_NODE,
    CLIENT,
    ELECTION,
    EVERY_NODE,
    PROFILES,
    SCORING,
    Endpoint,
    deciding,
    managed_resources,
    scoring,
)
from tessera.scheduler.profiles import OUR_PHASES, OURS, Given, Profile
from tessera.scheduler.weighing import Document, other_scores, weigh_profile

_SCORE, _SHARE = "score", "percentageOfNodesToScore"


class Adapted(NamedTuple):
    document: Document
    notes: tuple[str, ...]


def adapt_configuration(
    given: Given, catalogue: Catalogue, endpoint: Endpoint, *, kubeconfig: str = "", leader_elect: bool | None = None
) -> Adapted:
    """`kubeconfig` and `leader_elect` outdo what the document says, where they are given."""
    _refuse_unusable(given, catalogue)
    written = given.document
    client, election = CLIENT | _part(written, "clientConnection"), ELECTION | _part(written, "leaderElection")
    named = zip(_list(written, "profiles"), given.profiles, strict=True)
    profiles = [_adapted(profile, as_read, written) if as_read.our_phases else profile for profile, as_read in named]
    document = {
        **written,
        "clientConnection": client | ({"kubeconfig": kubeconfig} if kubeconfig else {}),
        "leaderElection": election | ({} if leader_elect is None else {"leaderElect": leader_elect}),
        "profiles": profiles,
        "extenders": [*_list(written, "extenders"), *_extenders(given, profiles, catalogue, endpoint)],
    }
    return Adapted(document, tuple(f"{given.where}: {note}" for note in _notes(given)))


def _refuse_unusable(given: Given, catalogue: Catalogue) -> None:
    if not any(profile.our_phases for profile in given.profiles):
        raise InvalidRequest(
            f"{given.where}: no profile enables {OURS}, expected one that does; enable it in {', '.join(OUR_PHASES)}"
        )
    ours = set(managed_resources(catalogue))
    for extender in given.configuration.extenders or ():
        if extender.bind_verb:
            raise InvalidRequest(
                f"{given.where}: extender {extender.url_prefix} has bindVerb {show(extender.bind_verb)}, expected none,"
                " because only one extender may bind and ours must; drop the verb or the extender"
            )
        for resource in extender.managed_resources or ():
            if resource.name in ours:
                raise InvalidRequest(
                    f"{given.where}: extender {extender.url_prefix} manages {resource.name}, expected no resource that"
                    " ours manages; drop it or the extender"
                )


def _adapted(profile: Document, as_read: Profile, written: Document) -> Document:
    stripped = _stripped(profile)
    weighed = weigh_profile(stripped) if _SCORE in as_read.our_phases else stripped
    share = profile.get(_SHARE) or written.get(_SHARE)
    return weighed if share else weighed | {_SHARE: EVERY_NODE}


def _stripped(profile: Document) -> Document:
    """The same profile without our plugin."""
    plugins = _part(profile, "plugins")
    phases = {phase: _without_ours(_part(plugins, phase)) for phase in plugins}
    return profile | {
        "plugins": {phase: left for phase, left in phases.items() if left},
        "pluginConfig": [one for one in _list(profile, "pluginConfig") if one["name"] != OURS],
    }


def _without_ours(phase: Document) -> Document:
    sides = {side: [one for one in _list(phase, side) if one["name"] != OURS] for side in phase}
    return {side: left for side, left in sides.items() if left}


def _extenders(given: Given, profiles: list[Document], catalogue: Catalogue, endpoint: Endpoint) -> list[Document]:
    """Pods without cards are scored only where every profile wants it."""
    scored = [_SCORE in profile.our_phases for profile in given.profiles]
    if not any(scored):
        return [deciding(catalogue, endpoint, ALL_NODES)]
    if not all(scored):
        return [deciding(catalogue, endpoint, ALL_NODES) | SCORING]
    others = given.configuration.extenders or any(other_scores(profile) for profile in profiles)
    return [deciding(catalogue, endpoint, ALL_NODES if others else BEST_NODE), scoring(endpoint)]


def _notes(given: Given) -> Iterator[str]:
    are_scored = any(_SCORE in profile.our_phases for profile in given.profiles)
    for profile in given.profiles:
        yield from (f"profile {profile.name} {what}" for what in _differences(profile, are_scored=are_scored))
    names = [profile.name for profile in given.profiles]
    for name in PROFILES:
        if name not in names:
            yield f"no profile is called {name}; pods that the webhook sends there wait until some scheduler has it"


def _differences(profile: Profile, *, are_scored: bool) -> Iterator[str]:
    """What becomes of a profile otherwise than it says."""
    done = [phase for phase in OUR_PHASES if phase != _SCORE or are_scored]
    missing = [phase for phase in done if phase not in profile.our_phases]
    if missing:
        yield (
            f"does not enable {OURS} in {', '.join(missing)}; its pods that ask for cards pass there all the same,"
            " because an extender is for all profiles and does all of its work"
        )
    for phase, plugin in profile.unknown_plugins():
        yield f"enables {show(plugin)} in {phase}, which the stock kube-scheduler does not have; it is left in"
    if any(one.name == OURS for one in profile.plugin_config or ()):
        yield f"has arguments for {OURS}, which nobody reads; what it can be told are flags of tessera run extender"


def _part(holder: Document, field: str) -> Document:
    part: Document | None = holder.get(field)
    return part or {}


def _list(holder: Document, field: str) -> list[Document]:
    listed: list[Document] | None = holder.get(field)
    return listed or []
