"""A link in a document leads somewhere."""

import re
from pathlib import Path

import pytest

from tests.repository.files import ROOT
from tests.repository.pages import DOCUMENTS, QUOTED, text_outside_fences

LINK = re.compile(r"\[[^\]]*\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def links_of(document: Path) -> list[str]:
    unquoted = QUOTED.sub("", text_outside_fences(document))
    return [target for target in LINK.findall(unquoted) if not ELSEWHERE.match(target)]


def anchors_of(document: Path) -> set[str]:
    """The anchors that a forge makes of a document's headings: lower case, no punctuation, dashes for spaces."""
    headings = HEADING.findall(text_outside_fences(document))
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


def broken_links(document: Path) -> list[str]:
    broken: list[str] = []
    for link in links_of(document):
        path, _, anchor = link.partition("#")
        target = document.parent / path if path else document
        if not target.exists() or (anchor and anchor not in anchors_of(target)):
            broken.append(link)
    return broken


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_relative_link_of_a_document_resolves(document: Path):
    assert broken_links(document) == []


def reached_from(document: Path, seen: frozenset[Path] = frozenset()) -> frozenset[Path]:
    """The documents to which its links lead, and those of these."""
    seen |= {document}
    for link in links_of(document):
        target = (document.parent / link.partition("#")[0]).resolve()
        if target.suffix == ".md" and target not in seen:
            seen = reached_from(target, seen)
    return seen


def test_every_document_is_reached_from_the_readme():
    assert set(DOCUMENTS) - reached_from(ROOT / "README.md") == set()


def test_a_link_to_nowhere_and_an_anchor_to_nowhere_are_found(tmp_path: Path):
    document = tmp_path / "page.md"
    document.write_text("# A title\n[a](#a-title) [b](gone.md) [c](#gone) `[d](code.md)` [e](https://example.org)\n")
    assert broken_links(document) == ["gone.md", "#gone"]
