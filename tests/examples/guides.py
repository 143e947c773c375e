"""Parts of a page that tests look at."""

import re


def section(page: str, heading: str) -> str:
    """What stands below a heading, up to the next of its level or above."""
    found = re.search(rf"^(?P<level>#+) {re.escape(heading)}$", page, re.MULTILINE)
    assert found, f"the page has no heading {heading}"
    end = rf"^#{{1,{len(found['level'])}}} "
    return re.split(end, page[found.end() :], maxsplit=1, flags=re.MULTILINE)[0]
