"""The store beside a plain model of it: any writes, failures, forgetting and restarts, and followers from anywhere."""

import asyncio
import tempfile
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tessera.embedded.store import Following, Forgotten, Key, Record, Stale, Store
from tessera.embedded.store import feed as feed_module
from tessera.errors import StoreFailed
from tests.unit.embedded.store.storing import no_room_on_the_disk, thing

RESOURCES = ("pods", "leases")
KEYS = [Key(resource, namespace, name) for resource in RESOURCES for namespace in ("a", "b") for name in ("x", "y")]
State = dict[Key, tuple[int, int]]
"""Version and value of each object."""


class Write(NamedTuple):
    key: Key
    value: int | None  # None deletes
    is_stale: bool


class Told(NamedTuple):
    """A change as the model tells it."""

    version: int
    key: Key
    before: tuple[int, int] | None
    after: tuple[int, int] | None


writes = st.builds(
    Write, st.sampled_from(KEYS), st.one_of(st.none(), st.integers(0, 99)), st.sampled_from([False, False, True])
)


class StoreMachine(RuleBasedStateMachine):
    """`states` has the state at each version that stands."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.directory = tempfile.TemporaryDirectory()
        self.path = Path(self.directory.name) / "state.db"
        self.now: State = {}
        self.states: dict[int, State] = {1: {}}
        self.told: list[Told] = []
        self.version = self.given = self.oldest = 1
        self.followers: list[tuple[Following, str, str, int]] = []
        self.patching = pytest.MonkeyPatch()

    @initialize(window=st.integers(1, 5), stride=st.integers(1, 5))
    def open(self, window: int, stride: int) -> None:
        self.patching.setattr(feed_module, "WINDOW", window)
        self.patching.setattr(feed_module, "STRIDE", stride)
        self.store = Store.open(self.path)

    @rule(writes=st.lists(writes, max_size=6))
    def tick(self, writes: list[Write]) -> None:
        self.loop.run_until_complete(self.write(writes))
        self.told += self.pending

    @rule(writes=st.lists(writes, max_size=6))
    def tick_that_fails(self, writes: list[Write]) -> None:
        before = dict(self.now)
        with no_room_on_the_disk():
            try:
                self.loop.run_until_complete(self.write(writes))
            except StoreFailed:
                assert self.pending
            else:
                assert not self.pending
        for change in self.pending:
            del self.states[change.version]
        self.now = before
        self.version = self.durable

    async def write(self, writes: list[Write]) -> None:
        """All in one tick, with a look at everything after each."""
        self.pending: list[Told] = []
        for write in writes:
            current = self.now.get(write.key)
            known = current[0] if current else None
            if write.is_stale:
                self.refused(write, known)
            elif write.value is not None:
                self.applied(write.key, self.put(write, known), current)
            elif known is not None:
                self.applied(write.key, self.deleted(write, known), current)
            self.shows_what_is_there()
        await self.store.settled()

    def refused(self, write: Write, known: int | None) -> None:
        wrong = 1 if known is None else known - 1
        put = partial(self.store.put, document=thing(write.value))
        attempt = self.store.delete if write.value is None else put
        with pytest.raises(Stale) as stale:
            attempt(write.key, expected=wrong)
        assert (stale.value.current.version if stale.value.current else None) == known

    def put(self, write: Write, known: int | None) -> tuple[int, int] | None:
        record = self.store.put(write.key, thing(write.value), expected=known)
        return seen(record)

    def deleted(self, write: Write, known: int) -> None:
        last = self.store.delete(write.key, expected=known)
        assert seen(last) == (self.given + 1, self.now[write.key][1])

    def applied(self, key: Key, after: tuple[int, int] | None, before: tuple[int, int] | None) -> None:
        self.version = self.given = self.given + 1
        self.pending.append(Told(self.version, key, before, after))
        if after is None:
            del self.now[key]
        else:
            assert after[0] == self.version
            self.now[key] = after
        self.states[self.version] = dict(self.now)

    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        before = data.draw(st.integers(1, self.version + 1))
        self.store.forget(before)
        self.oldest = max(self.oldest, min(before, self.durable))

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.followers.clear()
        self.store = Store.open(self.path)
        self.given = self.durable

    @property
    def durable(self) -> int:
        return self.told[-1].version if self.told else 1

    @rule(resource=st.sampled_from(RESOURCES), namespace=st.sampled_from(["", "a", "b"]), data=st.data())
    def follow(self, resource: str, namespace: str, data: st.DataObject) -> None:
        since = data.draw(st.integers(1, self.version))
        if since < self.oldest:
            with pytest.raises(Forgotten):
                self.store.follow(resource, namespace, since=since)
            return
        self.followers.append((self.store.follow(resource, namespace, since=since), resource, namespace, since))

    @rule(data=st.data())
    def listen(self, data: st.DataObject) -> None:
        """One follower takes all that there is; whoever was slower than history is cut off."""
        if not self.followers:
            return
        number = data.draw(st.integers(0, len(self.followers) - 1))
        following, resource, namespace, since = self.followers.pop(number)
        heard, is_cut_off = self.loop.run_until_complete(hear(following, self.durable))
        expected = [
            told
            for told in self.told
            if told.version > since and told.key.resource == resource and namespace in ("", told.key.namespace)
        ]
        if is_cut_off:
            assert since < self.oldest
            assert heard == expected[: len(heard)]
        else:
            assert heard == expected
            assert following.reached == max(since, self.durable)
            self.followers.append((following, resource, namespace, following.reached))

    @invariant()
    def shows_what_is_there(self) -> None:
        assert (self.store.version, self.store.oldest) == (self.version, self.oldest)
        for key in KEYS:
            assert seen(self.store.get(key)) == self.now.get(key)
        for resource in RESOURCES:
            for namespace in ("", "a", "b"):
                self.lists(resource, namespace)

    def lists(self, resource: str, namespace: str) -> None:
        def chosen(state: State) -> list[tuple[Key, tuple[int, int]]]:
            return sorted(
                (key, value)
                for key, value in state.items()
                if key.resource == resource and namespace in ("", key.namespace)
            )

        assert [(record.key, seen(record)) for record in self.store.list(resource, namespace)] == chosen(self.now)
        for version, state in self.states.items():
            if version < self.oldest:
                with pytest.raises(Forgotten):
                    self.store.list_at(resource, namespace, version)
            else:
                past = self.store.list_at(resource, namespace, version)
                assert [(record.key, seen(record)) for record in past] == chosen(state)

    def teardown(self) -> None:
        self.store.close()
        self.loop.close()
        self.patching.undo()
        self.directory.cleanup()


def seen(record: Record | None) -> tuple[int, int] | None:
    if record is None:
        return None
    document = record.document()
    assert document["metadata"]["resourceVersion"] == str(record.version)
    return record.version, document["spec"]["value"]


async def hear(following: Following, durable: int) -> tuple[list[Told], bool]:
    """Everything at hand, and whether it ended because history has moved on."""
    heard: list[Told] = []
    while True:
        waiting = asyncio.ensure_future(anext(following))
        await asyncio.sleep(0)
        while not waiting.done() and following.reached < durable:
            await asyncio.sleep(0)
        if not waiting.done():
            waiting.cancel()
            return heard, False
        try:
            change = await waiting
        except Forgotten:
            return heard, True
        heard.append(Told(change.version, change.key, seen(change.replaced), seen(change.after)))
        is_deletion = change.after is None
        assert change.before == (change.last if is_deletion else change.replaced)


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(stateful_step_count=30)
