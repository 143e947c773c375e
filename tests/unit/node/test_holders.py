"""Who holds which tiles, read from what the kubelet tells and from a file of it that is no API."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera.node.holders import Holder, holders_of, read_checkpoint, read_pod_resources
from tessera.node.protocols.pod_resources_pb2 import ListPodResourcesResponse
from tests.unit.node.making import RESOURCE, a_checkpoint, an_entry

TILES = frozenset({"tile-0", "tile-1"})


def a_listed(container: str = "main", *, ids: frozenset[str] = TILES, pod: str = "train-0") -> Holder:
    return Holder(resource=RESOURCE, ids=ids, container=container, namespace="default", pod=pod)


def a_kept(container: str = "main", *, ids: frozenset[str] = TILES, token: str = "aa") -> Holder:
    return Holder(resource=RESOURCE, ids=ids, container=container, pod_uid="uid-1", token=token)


def read_holders(content: bytes) -> tuple[Holder, ...]:
    holders = read_checkpoint(content)
    assert holders is not None
    return holders


def test_a_checkpoint_names_the_pod_the_container_its_tiles_and_our_answer():
    (holder,) = read_holders(a_checkpoint(an_entry("uid-1", "main", {"0": ["tile-0", "tile-1"]}, token="aa")))
    assert holder == a_kept()


def test_tiles_of_several_numa_nodes_are_one_holding():
    ids = {"0": ["tile-0"], "1": ["tile-1"], "-1": None}
    (holder,) = read_holders(a_checkpoint(an_entry("uid-1", "main", ids, token="aa")))
    assert holder.ids == TILES


def test_a_checkpoint_from_before_kubernetes_1_20_is_read_as_well():
    (holder,) = read_holders(a_checkpoint(an_entry("uid-1", "main", ["tile-0", "tile-1"], token="aa")))
    assert holder == a_kept()


def test_an_entry_that_looks_odd_is_left_aside_and_the_others_are_read():
    odd = [an_entry("uid-1", "main", {"0": "tile-0"}), {"PodUID": 7}, "text", None]
    holders = read_holders(a_checkpoint(*odd, an_entry("uid-2", "main", {"0": ["tile-5"]}, token="bb")))
    assert [(holder.pod_uid, holder.token) for holder in holders] == [("uid-2", "bb")]


@pytest.mark.parametrize("answer", ["", "no base64!", "////", "aGVsbG8gd29ybGQ=", None])
def test_an_answer_that_was_not_ours_gives_no_token(answer: str | None):
    (holder,) = read_holders(a_checkpoint(an_entry("uid-1", "main", {"0": ["tile-0"]}, AllocResp=answer)))
    assert holder.token == ""


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[]", b'{"Data": null}', b'{"Data": {"PodDeviceEntries": 3}}', b"\xff"]
)
def test_a_checkpoint_that_is_no_checkpoint_says_nothing(content: bytes):
    assert read_checkpoint(content) is None


def test_a_checkpoint_of_a_kubelet_that_gave_nothing_yet_names_nobody():
    assert read_checkpoint(msgspec.json.encode({"Data": {"PodDeviceEntries": None}})) == ()


@given(st.binary(max_size=200))
def test_no_content_of_the_checkpoint_is_an_error(content: bytes):
    assert isinstance(read_checkpoint(content), tuple | None)


def test_the_api_may_tell_a_containers_tiles_in_parts():
    answer = ListPodResourcesResponse()
    pod = answer.pod_resources.add(name="train-0", namespace="default")
    container = pod.containers.add(name="main")
    for tile in sorted(TILES):
        container.devices.add(resource_name=RESOURCE, device_ids=[tile])
    container.devices.add(resource_name="amd.com/gpu", device_ids=["tile-0"])
    pod.containers.add(name="beside")
    holders = {holder.resource: holder for holder in read_pod_resources(answer)}
    assert holders[RESOURCE] == a_listed()
    assert holders["amd.com/gpu"].ids == {"tile-0"}
    assert len(holders) == 2


def test_the_container_that_the_checkpoint_names_is_the_one():
    other = a_kept("other", ids=frozenset({"tile-9"}), token="bb")
    assert holders_of(RESOURCE, TILES, (), (other, a_kept()), ()) == (a_kept(),)


def test_an_init_container_and_the_app_container_that_takes_over_its_tiles_may_both_be_meant():
    init, app = a_kept("init", token="aa"), a_kept("main", token="bb")
    assert holders_of(RESOURCE, TILES, (a_listed(),), (init, app), ("bb",)) == (init, app)


def test_the_same_ids_of_another_resource_are_other_tiles():
    assert holders_of("amd.com/gpu", TILES, (a_listed(),), (a_kept(),), ("aa",)) == ()


def test_a_container_that_holds_more_than_these_tiles_is_not_meant():
    assert holders_of(RESOURCE, frozenset({"tile-0"}), (a_listed(),), (a_kept(),), ("aa",)) == ()


def test_without_a_checkpoint_the_one_container_of_the_api_had_the_one_answer():
    assert holders_of(RESOURCE, TILES, (a_listed(),), (), ("aa",)) == (msgspec.structs.replace(a_listed(), token="aa"),)


@pytest.mark.parametrize(
    ("listed", "answered"),
    [
        ((a_listed(),), ()),
        ((a_listed(),), ("aa", "bb")),
        ((a_listed("one"), a_listed("two")), ("aa",)),
        ((), ("aa",)),
    ],
    ids=["never answered", "answered twice", "two containers", "nobody"],
)
def test_without_a_checkpoint_nobody_is_guessed(listed: tuple[Holder, ...], answered: tuple[str, ...]):
    assert holders_of(RESOURCE, TILES, listed, (), answered) == ()


def test_an_entry_of_another_plugin_is_nobody_of_ours():
    assert holders_of(RESOURCE, TILES, (), (a_kept(token=""),), ()) == ()
