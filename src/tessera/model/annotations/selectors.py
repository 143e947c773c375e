"""What users write: lists, switches, weights and policies, on pods and (cordons) on nodes.

Policy names are only split here; which of them exist is the engine's business.
"""

from collections.abc import Iterable, Mapping

import msgspec

from tessera.errors import InvalidPolicy
from tessera.model.annotations import keys
from tessera.model.annotations.complaints import shorten
from tessera.model.annotations.limits import LARGEST, written_name, written_number
from tessera.model.annotations.records import truth
from tessera.model.requests import EQUAL_WEIGHTS, CardSelector, PolicyChoice, ScoringWeights

_WEIGHTS_EXPECTED = 'whole numbers for slot, core and memory, one of them above 0, such as "slot=1,core=1,memory=3"'


class SelectorKeys(msgspec.Struct, frozen=True, kw_only=True):
    """The annotation keys with which a vendor's users choose cards; empty where the vendor has none."""

    use_types: str = ""
    avoid_types: str = ""
    use_uuids: str = ""
    avoid_uuids: str = ""
    mode: str = ""
    same_numa: str = ""


def decode_list(text: str) -> tuple[str, ...]:
    """The entries of a comma list; blanks and repeats are dropped."""
    return tuple(dict.fromkeys(entry.strip() for entry in text.split(",") if entry.strip()))


def encode_list(entries: Iterable[str]) -> str:
    return ",".join(written_name(entry, "comma list", "entry", ",") for entry in entries)


def decode_flag(text: str, where: str) -> bool:
    """A switch; empty is off."""
    return bool(text.strip()) and truth(text, where, "value")


def decode_cordon(text: str) -> frozenset[str]:
    """The UUIDs of cards that get no new work."""
    return frozenset(decode_list(text))


def encode_cordon(uuids: Iterable[str]) -> str:
    return encode_list(sorted(uuids))


def decode_weights(text: str, where: str) -> ScoringWeights:
    pairs = [entry.partition("=") for entry in text.split(",") if entry.strip()]
    found = {name.strip().lower(): _weight(value) for name, _, value in pairs}
    weights = [found.get(name) for name in ScoringWeights.__struct_fields__]
    known = [weight for weight in weights if weight is not None]
    if len(known) != len(weights) or len(pairs) != len(weights) or not any(known):
        raise InvalidPolicy(f'{where} is "{shorten(text)}", expected {_WEIGHTS_EXPECTED}')
    slot, core, memory = known
    return ScoringWeights(slot=slot, core=core, memory=memory)


def encode_weights(weights: ScoringWeights) -> str:
    numbers = msgspec.structs.asdict(weights)
    if not any(numbers.values()):
        raise InvalidPolicy(f"scoring weights are all 0, expected {_WEIGHTS_EXPECTED}")
    return ",".join(f"{name}={written_number(number, 'scoring weights', name)}" for name, number in numbers.items())


def read_selector(annotations: Mapping[str, str], names: SelectorKeys, where: str) -> CardSelector:
    """Which cards of one vendor a pod accepts."""
    return CardSelector(
        use_types=decode_list(annotations.get(names.use_types, "")),
        avoid_types=decode_list(annotations.get(names.avoid_types, "")),
        use_uuids=decode_list(annotations.get(names.use_uuids, "")),
        avoid_uuids=decode_list(annotations.get(names.avoid_uuids, "")),
        mode=annotations.get(names.mode, "").strip(),
        same_numa=decode_flag(annotations.get(names.same_numa, ""), f"{where}: {names.same_numa}"),
    )


def read_policy(annotations: Mapping[str, str], where: str) -> PolicyChoice:
    """Which policies a pod wants."""
    weights = annotations.get(keys.SCORING_WEIGHTS, "")
    return PolicyChoice(
        node=annotations.get(keys.NODE_POLICY, "").strip(),
        cards=decode_list(annotations.get(keys.CARD_POLICY, "")),
        weights=decode_weights(weights, f"{where}: {keys.SCORING_WEIGHTS}") if weights.strip() else EQUAL_WEIGHTS,
    )


def _weight(text: str) -> int | None:
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) <= len(str(LARGEST))):
        return None
    return int(digits) if int(digits) <= LARGEST else None
