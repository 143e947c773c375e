"""What users write: lists, switches, weights and policies, on pods and (cordons) on nodes.

Policy names are only split here; which of them exist is the engine's business.
"""

from collections.abc import Iterable, Mapping

import msgspec

from tessera.errors import InvalidAnnotation, InvalidPolicy
from tessera.model.annotations import keys
from tessera.model.annotations.complaints import shorten
from tessera.model.annotations.limits import LARGEST, written_name, written_number
from tessera.model.annotations.records import FLAG, as_flag
from tessera.model.requests import EQUAL_WEIGHTS, CardSelector, PolicyChoice, ScoringWeights

_WEIGHTS_EXPECTED = 'whole numbers for slot, core and memory, one of them above 0, such as "slot=1,core=1,memory=3"'


class SelectorKeys(msgspec.Struct, frozen=True, kw_only=True):
    """The annotation keys with which a vendor's users choose cards; None where the vendor has none."""

    use_type: str | None = None
    avoid_type: str | None = None
    use_uuid: str | None = None
    avoid_uuid: str | None = None
    mode: str | None = None
    numa_bind: str | None = None


def decode_list(text: str) -> tuple[str, ...]:
    """The entries of a comma list; blanks and repeats are dropped."""
    if not text:
        return ()
    return tuple(dict.fromkeys(entry.strip() for entry in text.split(",") if entry.strip()))


def encode_list(entries: Iterable[str]) -> str:
    return ",".join(written_name(entry, "comma list", "entry", ",") for entry in entries)


def decode_flag(text: str, where: str) -> bool:
    """A switch; empty is off."""
    known = as_flag(text) if text.strip() else False
    if known is None:
        raise InvalidAnnotation(f'{where} is "{shorten(text)}", expected {FLAG}')
    return known


def read_soft_vnpu(annotations: Mapping[str, str], where: str) -> bool:
    """Whether a node cuts its Ascend cards by software, and not by the hardware's templates."""
    return decode_flag(annotations.get(keys.SOFT_VNPU, ""), f"{where}: {keys.SOFT_VNPU}")


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


def read_selector(annotations: Mapping[str, str], names: SelectorKeys) -> CardSelector:
    """Which cards of one vendor a pod accepts. Sentences name the key; the caller adds the pod."""

    def said(key: str | None) -> str:
        return annotations.get(key, "").strip() if key else ""

    return CardSelector(
        use_types=decode_list(said(names.use_type)),
        avoid_types=decode_list(said(names.avoid_type)),
        use_uuids=decode_list(said(names.use_uuid)),
        avoid_uuids=decode_list(said(names.avoid_uuid)),
        mode=said(names.mode),
        same_numa=decode_flag(said(names.numa_bind), names.numa_bind or ""),
    )


def read_policy(annotations: Mapping[str, str]) -> PolicyChoice:
    """Which policies a pod wants, as written; which of them exist is for the engine to say."""
    weights = annotations.get(keys.SCORING_WEIGHTS, "").strip()
    return PolicyChoice(
        node=annotations.get(keys.NODE_POLICY, "").strip(),
        cards=decode_list(annotations.get(keys.CARD_POLICY, "")),
        weights=decode_weights(weights, keys.SCORING_WEIGHTS) if weights else EQUAL_WEIGHTS,
    )


def _weight(text: str) -> int | None:
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) <= len(str(LARGEST))):
        return None
    return int(digits) if int(digits) <= LARGEST else None
