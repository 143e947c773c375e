"""Pages of a list: as a whole, or one by one when something in it is odd."""

import msgspec
import pytest

from tessera.errors import UnreadableReply
from tessera.kube.kinds import NODES
from tessera.kube.listing import Page, join_pages, read_page
from tessera.kube.objects import ObjectMeta

BODY = b'{"metadata":{"resourceVersion":"7","continue":"more"},"items":[%s]}'
GOOD = b'{"metadata":{"name":"a"},"size":1}'
ODD = b'{"metadata":{"name":"b","uid":"u","resourceVersion":"3"},"size":"large"}'


class Node(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    size: int


KIND = NODES.decoded_as(Node)


def test_a_page_says_how_to_go_on() -> None:
    page = read_page(KIND, BODY % GOOD, "nodes")

    assert page == Page((Node(ObjectMeta(name="a"), 1),), "7", "more")


def test_one_odd_object_does_not_hide_the_others() -> None:
    page = read_page(KIND, BODY % (ODD + b"," + GOOD), "nodes")

    assert [node.metadata.name for node in page.items] == ["a"]
    assert [(odd.identity.key.name, odd.identity.uid) for odd in page.undecodable] == [("b", "u")]


def test_no_items_are_an_empty_page() -> None:
    assert read_page(KIND, b'{"metadata":{"resourceVersion":"7"},"items":null}', "nodes") == Page((), "7")


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"items":[]}'])
def test_what_is_no_list_is_unreadable(body: bytes) -> None:
    with pytest.raises(UnreadableReply, match="list nodes"):
        read_page(KIND, body, "nodes")


def test_pages_are_joined_in_order_with_the_version_of_the_first() -> None:
    joined = join_pages([Page((1, 2), "7", "more"), Page((3,), "7")])

    assert joined == Page((1, 2, 3), "7")
