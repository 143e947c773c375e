"""The catalogue, read from files: those that come with Tessera and those that a site adds.

A file lists vendors as `[[vendor]]`. What several have in common may stand once under `[shared]`, where `<name>` is
replaced by each vendor's name. A mistake is found here, at start, and never when the first pod asks.
"""

import tomllib
from collections.abc import Iterable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any, cast

import msgspec

from tessera.errors import InvalidCatalogue
from tessera.model.catalogue import Catalogue, Vendor
from tessera.model.mismatches import explain_mismatch, show
from tessera.vendors.rendering import check_placeholders
from tessera.vendors.rules import RULES

Table = dict[str, Any]


class _Sourced(msgspec.Struct, frozen=True):
    vendor: Vendor
    place: str


def load_catalogue(extra: Iterable[Path] = (), *, builtin: bool = True) -> Catalogue:
    """The vendors in force. `extra` are files, or directories whose `.toml` files are read in order of name."""
    sourced = [*_read_builtin()] if builtin else []
    for path in extra:
        for file in _files_at(path):
            sourced += _read_file(str(file), _read_text(file))
    _refuse_collisions(sourced)
    return Catalogue(entry.vendor for entry in sourced)


def parse_vendors(text: str, name: str = "catalogue") -> tuple[Vendor, ...]:
    """The vendors of one file's text, each checked by itself."""
    return tuple(entry.vendor for entry in _read_file(name, text))


def _read_builtin() -> Iterator[_Sourced]:
    files = resources.files("tessera.vendors").joinpath("catalogue").iterdir()
    for file in sorted(files, key=lambda file: file.name):
        if file.name.endswith(".toml"):
            yield from _read_file(file.name, file.read_text(encoding="utf-8"))


def _files_at(path: Path) -> list[Path]:
    if not path.exists():
        raise InvalidCatalogue(f"{path}: does not exist, expected a vendor file or a directory of them")
    return sorted(path.glob("*.toml")) if path.is_dir() else [path]


def _read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidCatalogue(f"{file}: cannot be read ({error}), expected a vendor file") from None


def _read_file(name: str, text: str) -> list[_Sourced]:
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidCatalogue(f"{name}: is not TOML, expected a vendor file: {error}") from None
    unknown = sorted(content.keys() - {"vendor", "shared"})
    if unknown:
        raise InvalidCatalogue(f"{name}: {unknown[0]} is unknown, expected only [[vendor]] and [shared]")
    entries, shared = content.get("vendor"), content.get("shared", {})
    if not isinstance(entries, list) or not entries:
        raise InvalidCatalogue(
            f"{name}: vendor is {show(cast('object', entries))}, expected one or more [[vendor]] tables"
        )
    if not isinstance(shared, dict):
        raise InvalidCatalogue(f"{name}: shared is {show(shared)}, expected a table")
    listed = cast("list[object]", entries)
    return [_read_vendor(name, index, entry, cast("Table", shared)) for index, entry in enumerate(listed)]


def _read_vendor(name: str, index: int, entry: object, shared: Table) -> _Sourced:
    place = f"{name}: vendor[{index}]"
    if not isinstance(entry, dict):
        raise InvalidCatalogue(f"{place} is {show(entry)}, expected a table")
    own = cast("Table", entry)
    document = _merge(_fill(shared, str(own.get("name", ""))), own)
    try:
        vendor = msgspec.convert(document, Vendor)
    except msgspec.ValidationError as error:
        raise InvalidCatalogue(f"{name}: {explain_mismatch(error, document, f'vendor[{index}]')}") from None
    _check_rules(vendor, place)
    _check_memory(vendor, place)
    check_placeholders(vendor, place)
    return _Sourced(vendor, f'{name} (vendor "{vendor.name}")')


def _merge(base: Table, own: Table) -> Table:
    """`own` over `base`; tables are merged, everything else is replaced."""
    merged = {**base, **own}
    for key in base.keys() & own.keys():
        if isinstance(base[key], dict) and isinstance(own[key], dict):
            merged[key] = _merge(base[key], own[key])
    return merged


def _fill(value: Any, name: str) -> Any:
    if isinstance(value, str):
        return value.replace("<name>", name)
    if isinstance(value, dict):
        return {key: _fill(item, name) for key, item in cast("Table", value).items()}
    if isinstance(value, list):
        return [_fill(item, name) for item in cast("list[Any]", value)]
    return value


def _check_rules(vendor: Vendor, place: str) -> None:
    for index, name in enumerate(vendor.rules):
        if name not in RULES:
            known = ", ".join(sorted(RULES))
            raise InvalidCatalogue(f"{place}.rules[{index}] is {show(name)}, expected one of {known}")
        for field in RULES[name].needs:
            if not getattr(vendor, field):
                raise InvalidCatalogue(f"{place}.{field} is missing, expected it to be set for the rule {name}")


def _check_memory(vendor: Vendor, place: str) -> None:
    for step in vendor.memory_steps_mib:
        if step % vendor.memory_unit_mib:
            unit = vendor.memory_unit_mib
            raise InvalidCatalogue(f"{place}.memory_steps_mib is {step}, expected multiples of memory_unit_mib, {unit}")
    for template in vendor.templates:
        if template.cores > vendor.cores_per_card:
            most = vendor.cores_per_card
            raise InvalidCatalogue(
                f"{place}: template {template.name} has {template.cores} cores, expected at most {most}"
            )


def _refuse_collisions(sourced: list[_Sourced]) -> None:
    """A word must lead to one vendor: its name in any case, its resources, the annotations that carry its cards."""
    taken: dict[tuple[str, str], str] = {}
    for entry in sourced:
        vendor = entry.vendor
        words = [
            ("name", vendor.name.lower()),
            *(("resource", key) for key, _ in vendor.resources.named()),
            *(("annotation", key) for key in vendor.annotations.owned()),
        ]
        for kind, word in words:
            if (kind, word) in taken:
                first = taken[kind, word]
                raise InvalidCatalogue(f"{entry.place}: {kind} is {show(word)}, expected one that {first} does not use")
            taken[kind, word] = entry.place
