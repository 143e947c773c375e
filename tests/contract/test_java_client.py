"""The official Java client, as the Java HAMi client uses it; the checks themselves are in `java/`."""

import secrets

import pytest

from testbed.fixtures import require
from tests.contract.java_program import missing_for_java, run_checks

pytestmark = pytest.mark.contract(area="Java client", needed_by="Java client, HAMi clients")


@pytest.fixture(scope="module")
def verdicts(engine, api, definitions):
    """What became of each check; one process makes them all."""
    missing = missing_for_java()
    require(not missing, "; ".join(missing))
    namespaces = api.collection("namespaces")
    namespace = namespaces.create({"metadata": {"name": f"contract-java-{secrets.token_hex(4)}"}})["metadata"]["name"]
    yield run_checks(engine, namespace, definitions.serve(namespace).group)
    namespaces.delete(namespace)


@pytest.mark.contract(promise="A pod with device limits is created, read, replaced and deleted as a typed object")
def test_a_typed_pod_makes_the_round_trip(verdicts):
    assert verdicts["pods"] is None


@pytest.mark.contract(promise="Pods and nodes are listed with label and field selectors")
def test_lists_take_selectors(verdicts):
    assert verdicts["selectors"] is None


@pytest.mark.contract(promise="ApiException carries code and Status body")
def test_a_refusal_carries_its_status(verdicts):
    assert verdicts["refusals"] is None


@pytest.mark.contract(promise="A Watch from a version gives typed events")
def test_a_watch_gives_typed_events(verdicts):
    assert verdicts["watch"] is None


@pytest.mark.contract(promise="PatchUtils with JSON patch, merge patch and strategic merge patch")
def test_patches_of_three_kinds(verdicts):
    assert verdicts["patches"] is None


@pytest.mark.contract(promise="Server-side apply creates, conflicts with another manager, and takes over by force")
def test_an_apply_creates_conflicts_and_forces(verdicts):
    assert verdicts["apply"] is None


@pytest.mark.contract(promise="CustomObjectsApi: create, get, list with selector, delete")
def test_a_custom_object_makes_the_round_trip(verdicts):
    assert verdicts["custom objects"] is None
