"""Lists in pages, over a real store."""

import pytest
import pytest_asyncio

from tessera.embedded.refusals import ApiRefusal
from tessera.embedded.serving.options import read_options
from tessera.embedded.serving.pages import Token, read_page, read_token
from tessera.embedded.store import Key, Store


@pytest_asyncio.fixture
async def store(tmp_path):
    store = Store.open(tmp_path / "state.db")
    for name in "abcd":
        store.put(Key("things", "default", name), {"metadata": {"name": name}}, expected=None)
    await store.settled()
    yield store
    store.close()


def page(store, query=""):
    return read_page(store, "things", "", read_options(query.encode()))


def names(page):
    return [record.key.name for record in page.records]


@pytest.mark.asyncio
async def test_pages_follow_one_another_without_gap(store):
    first = page(store, "limit=3")
    assert names(first) == ["a", "b", "c"]
    assert first.metadata["remainingItemCount"] == 1
    second = page(store, f"limit=3&continue={first.metadata['continue']}")
    assert names(second) == ["d"]
    assert "continue" not in second.metadata


@pytest.mark.asyncio
async def test_later_pages_show_the_state_of_the_first(store):
    first = page(store, "limit=1")
    store.delete(Key("things", "default", "c"), expected=store.get(Key("things", "default", "c")).version)
    store.put(Key("things", "default", "e"), {"metadata": {"name": "e"}}, expected=None)
    await store.settled()
    rest = page(store, f"continue={first.metadata['continue']}")
    assert names(rest) == ["b", "c", "d"]
    assert rest.metadata["resourceVersion"] == first.metadata["resourceVersion"]


@pytest.mark.asyncio
async def test_a_token_of_a_forgotten_version_comes_back_as_one_for_now(store):
    first = page(store, "limit=1")
    store.put(Key("things", "default", "e"), {"metadata": {"name": "e"}}, expected=None)
    await store.settled()
    store.forget(store.version)
    with pytest.raises(ApiRefusal) as refusal:
        page(store, f"continue={first.metadata['continue']}")
    assert (refusal.value.code, refusal.value.reason) == (410, "Expired")
    again = refusal.value.status()["metadata"]["continue"]
    assert names(page(store, f"continue={again}")) == ["b", "c", "d", "e"]


@pytest.mark.asyncio
async def test_a_version_that_was_not_given_yet_is_refused(store):
    with pytest.raises(ApiRefusal) as refusal:
        page(store, f"resourceVersion={store.version + 1}&resourceVersionMatch=NotOlderThan")
    assert refusal.value.code == 504


@pytest.mark.parametrize("text", ["made-up", "", "e30", "bnVsbA", "\u00e9"])
def test_a_made_up_token_is_a_bad_request(text):
    with pytest.raises(ApiRefusal) as refusal:
        read_token(text)
    assert refusal.value.code == 400


def test_a_token_is_read_as_it_was_written():
    token = Token(7, "default", "a/b c")
    assert read_token(token.written()) == token
