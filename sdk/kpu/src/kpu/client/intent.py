"""What the user of a Compute wants, checked before anything is sent, and the manifest that says so.

The manifest is the whole intent and nothing else. Server-side apply takes away what a later apply leaves out, so
suspending sends all of it again; and what the operator or others own is never in it.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from kpu.client.asking import can_travel
from kpu.client.models import API_VERSION, KIND
from kpu.client.options import checked_host, checked_port
from kpu.errors import InvalidCompute

INTENT = "compute.kpu.dev/intent"
"""The annotation by which an object here notices that another program wants something else of the same Compute."""

T = TypeVar("T")

_NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_VARIABLE = re.compile(r"[^=\x00]+")


@dataclass(frozen=True, kw_only=True)
class Intent:
    name: str
    image: str | None = None
    command: Sequence[str] | None = None
    args: Sequence[str] | None = None
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    annotations: Mapping[str, str] = field(default_factory=dict[str, str])
    resources: Mapping[str, Any] = field(default_factory=dict[str, Any])
    tls_secret: str | None = None

    def __post_init__(self) -> None:
        _check_name(self.name)
        if self.image is not None and not _is_text(self.image):
            raise self._wrong("image", self.image, "the name of an image, such as 'kpu-torch-server:latest'")
        if self.tls_secret is not None and not _is_text(self.tls_secret):
            raise self._wrong("tls", self.tls_secret, "the name of a Secret of type kubernetes.io/tls")
        self._check_words("command", self.command)
        self._check_words("args", self.args)
        self._check_texts("env", self.env)
        self._check_texts("labels", self.labels)
        self._check_texts("annotations", self.annotations)
        self._check_resources()

    def own_copy(self) -> "Intent":
        """One that stays as it is, whatever becomes of the lists and mappings that it was made from."""
        mappings = {name: dict(getattr(self, name)) for name in ("env", "labels", "annotations", "resources")}
        return replace(self, command=_own(self.command), args=_own(self.args), **mappings)

    @property
    def digest(self) -> str:
        """The same for the same intent, in whatever process."""
        return hashlib.sha256(json.dumps(self._spec(), sort_keys=True).encode()).hexdigest()[:16]

    def manifest(self, namespace: str, *, suspend: bool) -> dict[str, Any]:
        """`suspend` is always said: a spec may not be empty, and who resumes must take the field back."""
        metadata = {
            "name": self.name,
            "namespace": namespace,
            "labels": dict(self.labels),
            "annotations": {**self.annotations, INTENT: self.digest},
        }
        return {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {key: value for key, value in metadata.items() if value},
            "spec": {**self._spec(), "suspend": suspend},
        }

    def _spec(self) -> dict[str, Any]:
        spec = {
            "image": self.image,
            "command": None if self.command is None else list(self.command),
            "args": None if self.args is None else list(self.args),
            "env": [{"name": name, "value": value} for name, value in self.env.items()] or None,
            "labels": dict(self.labels) or None,
            "annotations": dict(self.annotations) or None,
            "resources": {name: str(amount) for name, amount in self.resources.items()} or None,
            "tls": {"secretName": self.tls_secret} if self.tls_secret else None,
        }
        return {key: value for key, value in spec.items() if value is not None}

    def _check_words(self, what: str, words: Any) -> None:
        if words is None:
            return
        if not isinstance(words, list | tuple):
            raise self._wrong(what, words, "a list of strings, such as ['python', '-m', 'server']")
        for word in cast("Sequence[Any]", words):
            if not isinstance(word, str):
                raise self._wrong(f"a word of {what}", word, f"a string, such as {str(word)!r}")
            self._check_characters(f"a word of {what}", word)

    def _check_texts(self, what: str, texts: Any) -> None:
        if not isinstance(texts, Mapping):
            raise self._wrong(what, texts, "a dict of strings, such as {'LOG_LEVEL': 'DEBUG'}")
        for key, value in cast("Mapping[Any, Any]", texts).items():
            if not (isinstance(key, str) and _VARIABLE.fullmatch(key)):
                raise self._wrong(f"a name in {what}", key, "a string that is not empty and has no '='")
            if not isinstance(value, str):
                raise self._wrong(f"{what}[{key!r}]", value, f"a string, such as {str(value)!r}")
            self._check_characters(f"a name in {what}", key)
            self._check_characters(f"{what}[{key!r}]", value)

    def _check_characters(self, what: str, text: str) -> None:
        """No program can be started with others, and JSON has no form for some of them."""
        if "\0" in text or not can_travel(text):
            raise self._wrong(what, text, "text that has a form in UTF-8, without the character of code 0")

    def _check_resources(self) -> None:
        if not isinstance(self.resources, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise self._wrong("resources", self.resources, "a dict, such as {'nvidia.com/gpu': 1}")
        for name, amount in self.resources.items():
            if not _is_text(name):
                raise self._wrong("a name in resources", name, "that of a resource, such as 'nvidia.com/gpu'")
            if isinstance(amount, bool) or not isinstance(amount, str | int | float):
                raise self._wrong(f"resources[{name!r}]", amount, "an amount, such as 1 or '500m'")

    def _wrong(self, what: str, value: Any, expected: str) -> InvalidCompute:
        return InvalidCompute(f"Compute {self.name}: {what} is {value!r}, expected {expected}")


def check_port(name: str, port: Any) -> int:
    return _checked(name, checked_port, port)


def check_suspend(name: str, suspend: Any) -> None:
    if not isinstance(suspend, bool):
        raise InvalidCompute(f"Compute {name}: suspend is {suspend!r}, expected True or False")


def check_host(name: str, host: Any) -> str | None:
    return None if host is None else _checked(name, checked_host, host)


def _checked(name: str, check: Callable[[Any], T], value: Any) -> T:
    try:
        return check(value)
    except ValueError as error:
        raise InvalidCompute(f"Compute {name}: {error}") from None


def _own(words: Sequence[str] | None) -> Sequence[str] | None:
    return None if words is None else tuple(words)


def _check_name(name: Any) -> None:
    if not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise InvalidCompute(
            f"The name of a Compute is {name!r}, expected at most 63 lower-case letters, digits and hyphens, "
            "a letter first and no hyphen last, such as 'my-compute'"
        )


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())
