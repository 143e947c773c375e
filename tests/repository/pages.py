"""Our documents, and what of them is code."""

import re
from pathlib import Path

from tests.repository.files import own_files

DOCUMENTS = own_files("*.md")
PAGES = [document for document in DOCUMENTS if document.name != "CHANGELOG.md"]
"""All that tell of what is, and not of what was."""
FENCED = re.compile(
    r"^ *(?P<fence>```|~~~)(?P<language>[^\n]*)\n(?P<text>.*?)^ *(?P=fence)[^\S\n]*$", re.MULTILINE | re.DOTALL
)
QUOTED = re.compile(r"`([^`\n]+)`")


def text_outside_fences(document: Path) -> str:
    return FENCED.sub("", document.read_text(encoding="utf-8"))


def quotes_of(document: Path) -> list[str]:
    return QUOTED.findall(text_outside_fences(document))


def commands_of(document: Path) -> list[str]:
    """Lines that a reader would type, and what is quoted in sentences and tables: it may be a command."""
    fences = FENCED.finditer(document.read_text(encoding="utf-8"))
    typed = [fence["text"].replace("\\\n", " ") for fence in fences if fence["language"] in ("", "bash")]
    return [*(line for text in typed for line in text.splitlines()), *quotes_of(document)]
