"""Registrations as they are read: once for each version, and with nulls as if they were not there."""

from tessera.embedded.admitting.registrations import BindingSpec, ReadOnce, spec_of, webhooks_of


def versioned(name, version):
    return {"metadata": {"name": name, "resourceVersion": version}}


def test_each_version_of_an_object_is_read_once():
    read = []
    once = ReadOnce(lambda document: read.append(document) or document["metadata"]["name"])
    assert once.all([versioned("a", "1"), versioned("b", "1")]) == ["a", "b"]
    assert once.all([versioned("a", "1"), versioned("b", "2")]) == ["a", "b"]
    assert once.all([versioned("b", "2")]) == ["b"]
    assert [(one["metadata"]["name"], one["metadata"]["resourceVersion"]) for one in read] == [
        ("a", "1"),
        ("b", "1"),
        ("b", "2"),
    ]


def test_what_went_is_forgotten():
    read = []
    once = ReadOnce(read.append)
    for there in ([versioned("a", "1")], [], [versioned("a", "1")]):
        once.all(there)
    assert len(read) == 2


def test_null_is_as_if_it_were_not_there():
    hook = {"name": "h", "clientConfig": {"url": "https://h", "service": None}, "timeoutSeconds": None, "rules": None}
    (read,) = webhooks_of({"webhooks": [hook]})
    assert (read.timeout_seconds, read.rules, read.client_config.service) == (10, (), None)
    assert webhooks_of({"webhooks": None}) == ()
    assert spec_of({"spec": {"policyName": "p", "matchResources": None}}, BindingSpec).match_resources is None
