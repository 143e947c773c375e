"""The samples of the seeds: the documents that the product was asked to be true to, which are not part of it.

They are found in the directory that `TESSERA_SEEDS` names, or in `shared/seeds` beside the repository. Nothing of them
is kept here; where they are not, their tests skip and say so.
"""

import ast
import builtins
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.repository.files import ROOT

_FENCED = re.compile(r"^(?P<fence>```|~~~)[ \t]*(?P<language>\w*)[^\n]*\n(?P<text>.*?)^(?P=fence)[ \t]*$", re.M | re.S)
_HEADING = re.compile(r"^#{1,6}\s+(?P<title>.+?)\s*#*$", re.M)


class Sample(NamedTuple):
    """`position` counts the samples of one language in a document, from 0; `section` is the heading above it."""

    language: str
    section: str
    position: int
    text: str


def seeds_directory() -> Path:
    return Path(os.environ.get("TESSERA_SEEDS") or ROOT.parent / "shared" / "seeds")


def find_seed(number: int) -> Path | None:
    return next(iter(sorted(seeds_directory().glob(f"{number}-*.md"))), None)


def samples_of(document: str, language: str) -> tuple[Sample, ...]:
    """What stands in fences of this language, in order."""
    blocks = [block for block in _FENCED.finditer(document) if block["language"].lower() == language]
    return tuple(
        Sample(language, _section_above(document, block.start()), position, block["text"])
        for position, block in enumerate(blocks)
    )


def with_what_it_needs(sample: Sample, earlier: Sequence[Sample]) -> str:
    """The sample as a program: before it stand earlier samples that make the names which it uses and does not make."""
    needed = list(_preludes(_free_names(sample.text), earlier))
    return "\n".join([*(one.text for one in reversed(needed)), sample.text])


def arguments_of(sample: Sample, function: str) -> dict[str, Any]:
    """The keyword arguments that the sample gives to a function, where they are plain values."""
    calls = [node for node in ast.walk(ast.parse(sample.text)) if isinstance(node, ast.Call)]
    (found,) = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == function]
    return {str(given.arg): ast.literal_eval(given.value) for given in found.keywords}


def _preludes(names: set[str], earlier: Sequence[Sample]) -> Iterator[Sample]:
    """The latest first, so that what they need in their turn is found before them."""
    for sample in reversed(earlier):
        if names & _made_names(sample.text):
            yield sample
            names = (names - _made_names(sample.text)) | _free_names(sample.text)


def _free_names(program: str) -> set[str]:
    used = {node.id for node in ast.walk(ast.parse(program)) if isinstance(node, ast.Name)}
    return used - _made_names(program) - set(dir(builtins))


def _made_names(program: str) -> set[str]:
    made = set[str]()
    for node in ast.walk(ast.parse(program)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                made.add(name)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                made |= {(one.asname or one.name).partition(".")[0] for one in names}
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                made.add(name)
            case _:
                pass
    return made


def _section_above(document: str, position: int) -> str:
    headings = list(_HEADING.finditer(document[:position]))
    return headings[-1]["title"] if headings else ""
