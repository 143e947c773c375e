"""Which nodes and cards an engine has: as the command line says, else as before, else as this machine is."""

from pathlib import Path

import msgspec

from tessera.apps.state_directory import EngineSettings
from tessera.errors import DiscoveryFailed, InvalidRequest
from tessera.vendors.simulated import load_plan, parse_plan

DEFAULT_CARDS = "2xA100-SXM4-80GB"
DEFAULT_NODES = 4


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says; None for what it does not."""

    nodes: int | None = None
    cards: str | None = None
    cards_file: Path | None = None
    scheduler_config: Path | None = None

    @property
    def names_cards(self) -> bool:
        return self.cards is not None or self.cards_file is not None


def choose_settings(wanted: Wanted, before: EngineSettings | None) -> EngineSettings:
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
    if wanted.nodes is not None:
        changes["nodes"] = wanted.nodes
    if wanted.cards is not None:
        parse_plan(wanted.cards)
        changes |= {"cards": wanted.cards, "cards_file": ""}
    if wanted.cards_file is not None:
        load_plan(wanted.cards_file)
        changes |= {"cards": "", "cards_file": str(wanted.cards_file.absolute())}
    if wanted.scheduler_config is not None:
        changes["scheduler_config"] = str(wanted.scheduler_config.absolute())
    return changes


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
