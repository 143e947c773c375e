"""Lists: selectors, pages, and how old an answer may be."""

import pytest

from tests.contract.api import MERGE_PATCH
from tests.contract.objects import config_map, pod
from tests.contract.refusals import refused

pytestmark = pytest.mark.contract(area="Listing", needed_by="everything")

OURS = "metadata.name!=kube-root-ca.crt"  # every namespace is given this ConfigMap


@pytest.fixture
def three(config_maps):
    """a and b are red, c is blue; a is old."""
    config_maps.create(config_map("a", labels={"colour": "red", "old": ""}))
    config_maps.create(config_map("b", labels={"colour": "red"}))
    config_maps.create(config_map("c", labels={"colour": "blue"}))


@pytest.mark.contract(
    promise="A list has the kind of its items with List added, a resourceVersion, and is sorted by name"
)
def test_a_list_is_sorted_and_versioned(config_maps):
    for name in ("b", "c", "a"):
        config_maps.create(config_map(name))
    listing = config_maps.listing(fieldSelector=OURS)
    assert (listing["kind"], listing["apiVersion"]) == ("ConfigMapList", "v1")
    assert int(listing["metadata"]["resourceVersion"]) > 0
    assert [item["metadata"]["name"] for item in listing["items"]] == ["a", "b", "c"]
    assert "kind" not in listing["items"][0]


@pytest.mark.usefixtures("three")
@pytest.mark.contract(promise="Label selectors: equality, inequality, sets, existence, absence, all together")
@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("colour=red", ["a", "b"]),
        ("colour==red,old", ["a"]),
        ("colour!=red", ["c"]),
        ("colour in (red, blue)", ["a", "b", "c"]),
        ("colour notin (red)", ["c"]),
        ("!old", ["b", "c"]),
        ("old=", ["a"]),
    ],
)
def test_a_label_selector_finds_what_it_says(config_maps, selector, found):
    assert config_maps.names(labelSelector=selector, fieldSelector=OURS) == found


@pytest.mark.contract(promise="A selector that cannot be parsed is 400", needed_by="views, kubectl")
@pytest.mark.parametrize("query", [{"labelSelector": "a in"}, {"fieldSelector": "spec.colour=red"}], ids=str)
def test_a_wrong_selector_is_a_bad_request(config_maps, query):
    with refused(400, "BadRequest"):
        config_maps.names(**query)


@pytest.mark.contract(
    promise="Pods are selected by metadata.name, spec.nodeName, spec.schedulerName, spec.restartPolicy, status.phase",
    needed_by="scheduler, node, views, kubectl, HAMi clients",
)
@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("metadata.name=placed", ["placed"]),
        ("spec.nodeName=no-such-node", ["placed"]),
        ("spec.nodeName=", ["failed", "waiting"]),
        ("spec.schedulerName=another", ["waiting"]),
        ("spec.restartPolicy=Never", ["failed"]),
        ("status.phase=Failed", ["failed"]),
        ("status.phase!=Failed,status.phase!=Succeeded", ["placed", "waiting"]),
    ],
)
def test_a_field_selector_finds_pods(pods, selector, found):
    pods.create(pod("placed", spec={"nodeName": "no-such-node"}))
    pods.create(pod("waiting", spec={"schedulerName": "another"}))
    pods.create(pod("failed", spec={"restartPolicy": "Never"}))
    pods.patch("failed/status", MERGE_PATCH, {"status": {"phase": "Failed"}})
    assert pods.names(fieldSelector=selector) == found
    pods.delete("placed", {"gracePeriodSeconds": 0})


@pytest.mark.contract(promise="A list of all namespaces holds what is in each", needed_by="everything, kubectl")
def test_all_namespaces_can_be_listed_at_once(api, namespace, config_maps):
    config_maps.create(config_map("settings", labels={"run": namespace}))
    found = api.collection("configmaps").listing(labelSelector=f"run={namespace}")["items"]
    assert [item["metadata"]["namespace"] for item in found] == [namespace]


@pytest.mark.usefixtures("three")
@pytest.mark.contract(
    promise="limit gives a page, a continue token and the number of items left", needed_by="kube, kubectl"
)
def test_pages_together_are_the_whole_list(config_maps):
    first = config_maps.listing(limit=3)
    assert len(first["items"]) == 3
    assert first["metadata"]["remainingItemCount"] == 1
    last = config_maps.listing(limit=3, **{"continue": first["metadata"]["continue"]})
    assert "continue" not in last["metadata"]
    both = [item["metadata"]["name"] for page in (first, last) for item in page["items"]]
    assert both == ["a", "b", "c", "kube-root-ca.crt"]


@pytest.mark.usefixtures("three")
@pytest.mark.contract(promise="All pages show the state at the first page's version", needed_by="kube")
def test_later_pages_do_not_see_what_happened_since_the_first(config_maps):
    first = config_maps.listing(limit=1)
    config_maps.delete("c")
    config_maps.create(config_map("d"))
    rest = config_maps.listing(**{"continue": first["metadata"]["continue"]})
    assert rest["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert [item["metadata"]["name"] for item in rest["items"]] == ["b", "c", "kube-root-ca.crt"]


@pytest.mark.contract(promise="A continue token that means nothing is 400", needed_by="kube")
def test_a_made_up_token_is_refused(config_maps):
    with refused(400, "BadRequest") as refusal:
        config_maps.listing(**{"continue": "made-up"})
    assert "continue key is not valid" in refusal.value.message


@pytest.mark.contract(promise="A list at resourceVersion=0 may be old; it is answered", needed_by="kube")
def test_a_list_of_any_age_is_answered(config_maps):
    listing = config_maps.listing(resourceVersion="0")
    assert int(listing["metadata"]["resourceVersion"]) > 0


@pytest.mark.contract(promise="resourceVersionMatch=NotOlderThan waits until it knows that version", needed_by="kube")
def test_a_list_is_never_older_than_what_was_asked(config_maps):
    version = config_maps.create(config_map("settings"))["metadata"]["resourceVersion"]
    query = {"resourceVersion": version, "resourceVersionMatch": "NotOlderThan", "fieldSelector": OURS}
    assert config_maps.names(**query) == ["settings"]


@pytest.mark.contract(promise="resourceVersionMatch=Exact shows the state at exactly that version", needed_by="kube")
def test_an_exact_list_shows_the_past(config_maps):
    version = config_maps.create(config_map("settings"))["metadata"]["resourceVersion"]
    config_maps.create(config_map("later"))
    query = {"resourceVersion": version, "resourceVersionMatch": "Exact", "fieldSelector": OURS}
    listing = config_maps.listing(**query)
    assert [item["metadata"]["name"] for item in listing["items"]] == ["settings"]
    assert listing["metadata"]["resourceVersion"] == version


@pytest.mark.contract(promise="resourceVersionMatch without a resourceVersion is 422", needed_by="kube")
def test_a_match_needs_a_version(config_maps):
    with refused(422, "Invalid"):
        config_maps.listing(resourceVersionMatch="Exact")


@pytest.mark.contract(promise="A read is never older than a write that was answered before it", needed_by="everything")
def test_what_was_written_is_read(config_maps):
    created = config_maps.create(config_map("settings", {"n": "0"}))
    for number in range(1, 20):
        config_maps.replace("settings", created | {"data": {"n": str(number)}, "metadata": {"name": "settings"}})
        assert config_maps.get("settings")["data"]["n"] == str(number)
        assert config_maps.listing(fieldSelector=OURS)["items"][0]["data"]["n"] == str(number)
