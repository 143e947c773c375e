"""Python's bytecode, compiled when an image is built.

In a container nobody may write `__pycache__`, and Debian compiles only when a package is installed: without bytecode
each start would compile all that it imports, which takes longer than the rest of the start. It is never checked against
the source, whose time is meaningless in an image, and it is compiled by the image's own interpreter.
"""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from testbed.images.cache import make_once
from testbed.images.entries import Entry, File, entries_of, fingerprint
from testbed.images.programs import run

COMPILE = """\
import json, pathlib, py_compile, sys
unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
for source, shown, target in json.loads(pathlib.Path(sys.argv[1]).read_bytes()):
    py_compile.compile(source, target, shown, doraise=True, invalidation_mode=unchecked)
"""


def with_bytecode(entries: Iterable[Entry], python: Path, cache: Path) -> Iterator[Entry]:
    """The entries, and the bytecode of each Python source among them; `python` is called as in `python3.11`."""
    sources: dict[str, File] = {}
    for entry in entries:
        if isinstance(entry, File) and entry.path.endswith(".py"):
            sources[entry.path] = entry
        yield entry
    compiled = cache / "bytecode" / _key(sources.values(), python)
    make_once(compiled, lambda scratch: _compile(sources, python, scratch))
    yield from entries_of(compiled)


def _key(sources: Iterable[File], python: Path) -> str:
    key = hashlib.sha256(python.name.encode())
    for source in sources:
        key.update(fingerprint(source) + b"\n")
    return key.hexdigest()


def _compile(sources: dict[str, File], python: Path, folder: Path) -> None:
    folder.mkdir(parents=True)
    work = [
        (str(file.content), f"/{path}", str(folder / _compiled_path(path, python))) for path, file in sources.items()
    ]
    orders = folder / "orders.json"
    orders.write_bytes(msgspec.json.encode(work))
    run([python, "-IB", "-c", COMPILE, orders], to=f"compile {len(work)} Python sources")
    orders.unlink()


def _compiled_path(path: str, python: Path) -> Path:
    source, version = Path(path), python.name.removeprefix("python").replace(".", "")
    return source.parent / "__pycache__" / f"{source.stem}.cpython-{version}.pyc"
