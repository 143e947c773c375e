"""What an image means where nothing is pulled: which command its containers run in this machine's own file system.

A table of patterns says so; Tessera brings one and users put their own before it, in a file that is looked at whenever
a container starts. A container that has a command runs it whatever its image is, unless it says that the image must be
there already (`imagePullPolicy: Never`): then the table decides, as the node's store of images would.
"""

import sys
import tomllib
from collections.abc import Iterable
from fnmatch import fnmatchcase
from importlib import resources
from pathlib import Path

import msgspec

from tessera.embedded.documents import Frozen
from tessera.errors import InvalidInput

MOST_SHOWN = 40


class Image(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`stand_in` says what the command is run instead of, where it is not what the image would run."""

    pattern: str
    command: tuple[str, ...] = ()
    stand_in: str = ""


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    image: tuple[Image, ...]


class Program(msgspec.Struct, frozen=True):
    """What to run, and what people are told about it."""

    argv: tuple[str, ...]
    note: str


class Absent(msgspec.Struct, frozen=True):
    """Why there is nothing to run: the kubelet's word for it, its word once it has tried again, and a sentence."""

    reason: str
    message: str
    later: str


class Images:
    """`users_file` need not be there; what it says comes first."""

    def __init__(self, images: Iterable[Image], users_file: Path) -> None:
        self._images = tuple(images)
        self._users_file = users_file

    @classmethod
    def load(cls, users_file: Path) -> "Images":
        own = resources.files("tessera.embedded.runtime").joinpath("images.toml").read_text(encoding="utf-8")
        return cls(parse_images(own, "images.toml"), users_file)

    def find(self, reference: str) -> Image | None:
        """InvalidInput, if the user's file cannot be used."""
        images = (*_read(self._users_file), *self._images)
        return next((image for image in images if fnmatchcase(reference, image.pattern)), None)

    def program_of(self, container: Frozen) -> Program | Absent:
        try:
            return self._choose(container)
        except InvalidInput as error:
            return Absent("ErrImagePull", str(error), "ImagePullBackOff")

    def _choose(self, container: Frozen) -> Program | Absent:
        reference: str = container.get("image") or ""
        has_command, must_be_there = bool(container.get("command")), container.get("imagePullPolicy") == "Never"
        argv = (*container.get("command", ()), *container.get("args", ()))
        note = f"image {reference} is not pulled: its command runs in this machine's own file system"
        if has_command and not must_be_there:
            return Program(argv, note)
        image = self.find(reference)
        if image is None and must_be_there:
            message = f'Container image "{reference}" is not present with pull policy of Never'
            return Absent("ErrImageNeverPull", f"{message}: {self._advice(reference)}", "ErrImageNeverPull")
        if has_command or (image and not image.command and argv):
            return Program(argv, note)
        if image is None or not image.command:
            message = f'"{reference}" is not pulled, and the container has no command: {self._advice(reference)}'
            return Absent("ErrImagePull", message, "ImagePullBackOff")
        command = tuple(word.replace("{python}", sys.executable) for word in image.command)
        stands = f", in place of {image.stand_in}" if image.stand_in else ""
        note = f"image {reference} is not pulled: this machine runs `{' '.join(command)}` for it{stands}"
        # A stand-in knows nothing of the arguments that were meant for the image's own program.
        return Program(command if image.stand_in else (*command, *argv), note)

    def _advice(self, reference: str) -> str:
        shown = reference if len(reference) <= MOST_SHOWN else f"{reference[: MOST_SHOWN - 3]}..."
        table = f'[[image]] with pattern = "{shown}" and command = [...] to {self._users_file}'
        return f"give the container a command that this machine has, or add an {table}"


def parse_images(text: str, name: str) -> tuple[Image, ...]:
    try:
        return msgspec.convert(tomllib.loads(text), _Table).image
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise InvalidInput(
            f"{name}: cannot be used ({error}), expected [[image]] tables with pattern and command"
        ) from None


def _read(path: Path) -> tuple[Image, ...]:
    try:
        return parse_images(path.read_text(encoding="utf-8"), str(path))
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path}: cannot be read ({error}), expected a table of images") from None
