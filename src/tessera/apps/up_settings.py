"""Which nodes and cards an engine has: as the command line says, else as before, else as this machine is."""

from pathlib import Path

import msgspec

from tessera.apps.state_directory import EngineSettings
from tessera.errors import DiscoveryFailed, InvalidInput, InvalidRequest
from tessera.model.cores_policy import CoresPolicy
from tessera.vendors.simulated import NodePlan, load_plan, parse_plan, simulate

DEFAULT_CARDS = "2xA100-SXM4-80GB"
DEFAULT_NODES = 4


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says; None for what it does not. A `scheduler_config` of "" is to have none again."""

    nodes: int | None = None
    cards: str | None = None
    cards_file: Path | None = None
    scheduler_config: str | None = None
    cores_policy: CoresPolicy | None = None
    spill_percent: int | None = None

    @property
    def names_cards(self) -> bool:
        return self.cards is not None or self.cards_file is not None


def choose_settings(wanted: Wanted, before: EngineSettings | None) -> EngineSettings:
    if before is not None:
        _check_remembered(wanted, before)
    chosen = before or _as_machine_is(may_be_real=not wanted.names_cards)
    chosen = msgspec.structs.replace(chosen, **_changes(wanted))
    if chosen.has_real_cards and chosen.nodes > 1:
        raise InvalidRequest(
            f"--nodes is {chosen.nodes} and the cards are this machine's own, expected one node for them;"
            f" drop --nodes, or name simulated cards such as --cards {DEFAULT_CARDS}"
        )
    return chosen


def _changes(wanted: Wanted) -> dict[str, object]:
    """Refused here is what would be refused later, when somebody waits for the engine."""
    if wanted.cards is not None and wanted.cards_file is not None:
        raise InvalidRequest("--cards and --cards-file are both given, expected one of them; drop one")
    changes: dict[str, object] = {}
    for name in ("nodes", "cores_policy", "spill_percent"):
        if (said := getattr(wanted, name)) is not None:
            changes[name] = said
    if wanted.cards is not None:
        _check_cards(parse_plan(wanted.cards))
        changes |= {"cards": wanted.cards, "cards_file": ""}
    if wanted.cards_file is not None:
        _check_cards(load_plan(wanted.cards_file))
        changes |= {"cards": "", "cards_file": str(wanted.cards_file.absolute())}
    if wanted.scheduler_config is not None:
        changes["scheduler_config"] = _checked_profiles(wanted.scheduler_config)
    return changes


def _check_remembered(wanted: Wanted, before: EngineSettings) -> None:
    """Files that were named at an earlier start, and are used again."""
    try:
        if wanted.scheduler_config is None:
            _checked_profiles(before.scheduler_config)
    except InvalidInput as error:
        raise InvalidRequest(
            f'{error}; it was named at an earlier start: put it right, or drop it with --scheduler-config ""'
        ) from None
    try:
        if before.cards_file and not wanted.names_cards:
            _check_cards(load_plan(Path(before.cards_file)))
    except InvalidInput as error:
        raise InvalidRequest(
            f"{error}; it was named at an earlier start: put it right, or name other cards with --cards"
        ) from None


def _check_cards(plan: NodePlan) -> None:
    from tessera.vendors.loading import load_catalogue  # not needed where no cards are named

    simulate("--cards", plan, load_catalogue())


def _checked_profiles(path: str) -> str:
    if not path:
        return ""
    from tessera.scheduler.profiles import load_profiles  # not needed where there is none

    load_profiles(Path(path))
    return str(Path(path).absolute())


def _as_machine_is(*, may_be_real: bool) -> EngineSettings:
    if may_be_real and finds_real_cards():
        return EngineSettings(nodes=1)
    return EngineSettings(nodes=DEFAULT_NODES, cards=DEFAULT_CARDS)


def finds_real_cards() -> bool:
    from tessera.vendors.nvml import NvmlBackend  # not needed where cards are named

    try:
        return bool(NvmlBackend().read().devices)
    except DiscoveryFailed:
        return False
