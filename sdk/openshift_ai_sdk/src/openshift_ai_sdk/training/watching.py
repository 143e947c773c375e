"""To be told when something changes, instead of asking all the time.

A watch here only wakes: whoever is woken asks again and judges what it is told then. So it does not matter whether a
watch ends early, is refused, or has lost its place (410); at worst the next look comes after the pause that was wanted
anyway.
"""

import json
import math
import time
from collections.abc import Mapping
from typing import Callable, Optional, TypeVar

from kubernetes.client.exceptions import ApiException

from . import api
from .documents import Document, text_at
from .errors import status_of
from .stopping import pause

T = TypeVar("T")
SHORT_S = 0.2
PATIENCE_S = 60.0
"""How long an API server may be away, such as while it is renewed, before that is an error."""


def wait_for_change(path: str, query: Mapping[str, object], seen: Document, within_s: float) -> None:
    """Return when what the query finds is no longer as it was `seen`, or when the time is over."""
    began_s = time.monotonic()
    version = text_at(seen, "metadata", "resourceVersion")
    if version and api.is_reachable() and _is_woken(path, {**query, "resourceVersion": version}, within_s):
        return
    pause(within_s - (time.monotonic() - began_s))


def _is_woken(path: str, query: Mapping[str, object], within_s: float) -> bool:
    """False if nothing came of the watch: nothing has changed, or it cannot be watched."""
    watch = {**query, "watch": "true", "timeoutSeconds": max(1, int(within_s))}
    # A server that ends the watch itself lets us keep the connection; one that does not is not waited for much longer.
    quiet_s = within_s + 1 if within_s >= 1 else max(within_s, SHORT_S)
    try:
        for line in api.lines(path, watch, quiet_s):
            event = json.loads(line)
            if event.get("type") == "ERROR":
                pause(SHORT_S)
            return True
    except (ApiException, ValueError):
        return False
    return False


def patiently(ask: Callable[[], T], until_s: float = math.inf) -> T:
    """What it answers. While the server is not itself it is asked again, for a minute at most."""
    until_s = min(until_s, time.monotonic() + PATIENCE_S)
    while True:
        try:
            return ask()
        except ApiException as error:
            if status_of(error) not in api.TRANSIENT or time.monotonic() >= until_s or not api.is_reachable():
                raise
        pause(SHORT_S * 2)


def if_known(ask: Callable[[], T]) -> Optional[T]:
    """What it answers, or None where that cannot be known: for what would be good to know, and is not needed."""
    try:
        return ask()
    except ApiException:
        return None
