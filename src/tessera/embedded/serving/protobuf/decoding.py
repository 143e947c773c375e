"""Messages to documents, as if the same object had come in JSON."""

import base64
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import msgspec

from tessera.embedded.documents import Document
from tessera.embedded.serving.protobuf.wire import Cut, fields, signed

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_TYPE_META, _RAW = 1, 2
_API_VERSION, _KIND = 1, 2
_KEY, _VALUE = 1, 2
_DELETE_OPTIONS = "apis.meta.v1.DeleteOptions"


class Undecodable(ValueError):
    """The sentence says what stands in the way."""


class Field(NamedTuple):
    """`name` is empty where what is inside belongs to the type around it. `shape` is one, many or map."""

    name: str
    type: str
    shape: str = "one"
    if_zero: str = ""

    def leaves_out(self, value: Any) -> bool:
        """What is zero and would be absent in JSON."""
        return self.if_zero == "drop" and not value


@cache
def _types() -> Mapping[str, Mapping[int, Field]]:
    text = files("tessera.embedded.serving.protobuf").joinpath("field_numbers.json").read_bytes()
    return msgspec.json.decode(text, type=dict[str, dict[int, Field]])


def decode_message(body: bytes) -> Document:
    """An object in the envelope in which Kubernetes sends protobuf. Raises Undecodable."""
    if not body.startswith(_MAGIC):
        raise Undecodable("the body does not begin as protobuf of Kubernetes does")
    try:
        envelope = dict(fields(body[len(_MAGIC) :]))
        about = dict(fields(_bytes(envelope.get(_TYPE_META, b""))))
        api_version, kind = (_bytes(about.get(number, b"")).decode() for number in (_API_VERSION, _KIND))
        document = _read(_bytes(envelope.get(_RAW, b"")), _type_of(api_version, kind))
    except (Cut, UnicodeDecodeError, struct.error, msgspec.DecodeError) as error:
        raise Undecodable(f"the body cannot be read as protobuf: {error}") from None
    return {"apiVersion": api_version, "kind": kind, **document}


def _type_of(api_version: str, kind: str) -> str:
    """`apps/v1` Deployment is apps.v1.Deployment; options of a deletion come under the version of what is deleted."""
    group, _, version = api_version.rpartition("/")
    name = f"{group.partition('.')[0] or 'core'}.{version}.{kind}"
    if kind == "DeleteOptions":
        name = _DELETE_OPTIONS
    if name not in _types():
        raise Undecodable(f"{kind} in version {api_version!r} is not known in protobuf, expected it in JSON")
    return name


def _read(data: bytes, type: str) -> Document:
    document: Document = {}
    for number, value in fields(data):
        field = _types()[type].get(number)
        if field is None:
            continue  # of a newer Kubernetes than we know
        if field.shape == "map":
            entry = dict(fields(_bytes(value)))
            document.setdefault(field.name, {})[_bytes(entry.get(_KEY, b"")).decode()] = _entry(entry, field.type)
        elif field.shape == "many":
            document.setdefault(field.name, []).append(_value(value, field.type))
        elif not field.name:
            document |= _value(value, field.type)
        elif not field.leaves_out(read := _value(value, field.type)):
            document[field.name] = read
    return document


def _entry(entry: dict[int, int | bytes], type: str) -> Any:
    return _value(entry[_VALUE], type) if _VALUE in entry else _value(b"", type)


def _value(value: int | bytes, type: str) -> Any:
    plain = _PLAIN.get(type)
    if plain:
        return plain(value)
    special = _SPECIAL.get(type)
    return special(_bytes(value)) if special else _read(_bytes(value), type)


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise Cut("a number stands where a text or a message should")
    return value


def _number(value: int | bytes) -> int:
    if not isinstance(value, int):
        raise Cut("a text or a message stands where a number should")
    return signed(value)


def _time(data: bytes) -> str | None:
    moment = _moment(data)
    return moment and moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _micro_time(data: bytes) -> str | None:
    moment = _moment(data)
    return moment and moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _moment(data: bytes) -> datetime | None:
    """None for the time that a program in Go means when it says none."""
    told = dict(fields(data))
    if not told:
        return None
    seconds, nanos = (_number(told.get(number, 0)) for number in (1, 2))
    try:
        return datetime.fromtimestamp(seconds, UTC).replace(microsecond=nanos // 1000)
    except (ValueError, OverflowError, OSError):
        return None


def _int_or_string(data: bytes) -> int | str:
    told = dict(fields(data))
    if told.get(1):
        return _bytes(told.get(3, b"")).decode()
    return _number(told.get(2, 0))


def _quantity(data: bytes) -> str:
    return _bytes(dict(fields(data)).get(1, b"")).decode()


def _json(data: bytes) -> Any:
    """JSON in the middle of protobuf, such as managedFields."""
    return msgspec.json.decode(_bytes(dict(fields(data)).get(1, b"null")) or b"null")


def _items(data: bytes) -> list[str]:
    return [_bytes(value).decode() for _, value in fields(data)]


_PLAIN: Mapping[str, Callable[[int | bytes], Any]] = {
    "string": lambda value: _bytes(value).decode(),
    "bytes": lambda value: base64.b64encode(_bytes(value)).decode(),
    "bool": lambda value: bool(_number(value)),
    "int32": _number,
    "int64": _number,
    "double": lambda value: struct.unpack("<d", _bytes(value))[0],
}
_SPECIAL: Mapping[str, Callable[[bytes], Any]] = {
    "apis.meta.v1.Time": _time,
    "apis.meta.v1.MicroTime": _micro_time,
    "apis.meta.v1.FieldsV1": _json,
    "runtime.RawExtension": _json,
    "util.intstr.IntOrString": _int_or_string,
    "api.resource.Quantity": _quantity,
    "authentication.v1.ExtraValue": _items,
    "authorization.v1.ExtraValue": _items,
}
