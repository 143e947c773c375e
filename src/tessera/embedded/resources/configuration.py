"""ConfigMaps and Secrets: keys that become files, bytes in base64, and those that are sealed for good."""

import base64
import binascii

from tessera.embedded import causes
from tessera.embedded.documents import Document, Frozen
from tessera.embedded.refusals import Cause, bad_request
from tessera.embedded.resources import names
from tessera.embedded.resources.parts import inside, part_of
from tessera.embedded.resources.strategy import Strategy

SIZE_LIMIT = 1024 * 1024
_SEALED = "field is immutable when `immutable` is set"
_MUST_HAVE = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}


class Sealable(Strategy):
    """Data that can be made immutable, after which it cannot be made mutable again."""

    parts: tuple[str, ...] = ()

    def check_change(self, new: Frozen, old: Frozen) -> list[Cause]:
        if not old.get("immutable"):
            return []
        found = [] if new.get("immutable") else [causes.forbidden("immutable", _SEALED)]
        changed = [part for part in self.parts if (new.get(part) or {}) != (old.get(part) or {})]
        return found + [causes.forbidden(part, _SEALED) for part in changed]


class ConfigMaps(Sealable):
    parts = ("data", "binaryData")

    def default(self, document: Document) -> Document:
        _require_base64(inside(document, "binaryData"), "ConfigMap")
        _drop_nothing(document, "data", "binaryData")
        return document

    def check(self, document: Frozen) -> list[Cause]:
        data, binary = inside(document, "data"), inside(document, "binaryData")
        found: list[Cause] = []
        for key in data:
            found += [causes.invalid(f"data[{key}]", key, sentence) for sentence in names.config_key(key)]
            if key in binary:
                found.append(causes.invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
        for key in binary:
            found += [causes.invalid(f"binaryData[{key}]", key, sentence) for sentence in names.config_key(key)]
        size = sum(len(text.encode()) for text in data.values()) + _decoded_size(binary)
        return [*found, causes.too_long("", SIZE_LIMIT)] if size > SIZE_LIMIT else found


class Secrets(Sealable):
    parts = ("data",)

    def default(self, document: Document) -> Document:
        _require_base64(inside(document, "data"), "Secret")
        strings = document.pop("stringData", None)
        if strings:
            encoded = {key: base64.b64encode(text.encode()).decode() for key, text in strings.items()}
            part_of(document, "data").update(encoded)
        _drop_nothing(document, "data")
        if not document.get("type"):
            document["type"] = "Opaque"
        return document

    def check(self, document: Frozen) -> list[Cause]:
        data: Frozen = inside(document, "data")
        found: list[Cause] = []
        for key in data:
            found += [causes.invalid(f"data[{key}]", key, sentence) for sentence in names.config_key(key)]
        missing = [key for key in _MUST_HAVE.get(document["type"], ()) if key not in data]
        found += [causes.required(f"data[{key}]") for key in missing]
        return [*found, causes.too_long("data", SIZE_LIMIT)] if _decoded_size(data) > SIZE_LIMIT else found

    def check_change(self, new: Frozen, old: Frozen) -> list[Cause]:
        found = super().check_change(new, old)
        return found if new["type"] == old["type"] else [causes.immutable("type", new["type"]), *found]


def _drop_nothing(document: Document, *parts: str) -> None:
    """A map without keys is no map, as the wire has it."""
    for part in parts:
        if part in document and not document[part]:
            del document[part]


def _require_base64(values: Frozen, kind: str) -> None:
    for value in values.values():
        try:
            base64.b64decode(value or "", validate=True)
        except (binascii.Error, ValueError):
            message = f'{kind} in version "v1" cannot be handled as a {kind}: illegal base64 data at input byte 0'
            raise bad_request(message) from None


def _decoded_size(values: Frozen) -> int:
    return sum(len(value or "") * 3 // 4 for value in values.values())
