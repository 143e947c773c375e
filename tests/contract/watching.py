"""The events of a watch, each waited for with patience that ends."""

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple


class Event(NamedTuple):
    type: str
    object: dict[str, Any]

    @property
    def name(self) -> str:
        return self.object["metadata"]["name"]


class Watch:
    """An event that does not come is an error of the connection, whose reads end in time."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines = lines

    def __iter__(self) -> Iterator[Event]:
        for line in self._lines:
            event = json.loads(line)
            yield Event(event["type"], event["object"])

    def next(self) -> Event:
        for event in self:
            return event
        raise AssertionError("the watch ended before another event came")

    def take(self, count: int) -> list[Event]:
        return [self.next() for _ in range(count)]

    def until(self, condition: Callable[[Event], bool]) -> Event:
        """The first event for which the condition holds."""
        for event in self:
            if condition(event):
                return event
        raise AssertionError("the watch ended before the event that was waited for")
