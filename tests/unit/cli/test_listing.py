import json

import pytest
import yaml
from msgspec.structs import replace

from tessera.cli.listing import Listing
from tessera.cli.nodes import NODE_LOOK
from tessera.cli.pods import pod_look
from tests.unit.cli.showing import NODES, PODS
from tests.unit.views.making import NOW

POD_LOOK = pod_look(namespaces=True)


def test_json_and_yaml_are_the_same_list(capsys: pytest.CaptureFixture[str]):
    Listing(NODE_LOOK, "json").show(NODES, NOW)
    document = json.loads(capsys.readouterr().out)
    Listing(NODE_LOOK, "yaml").show(NODES, NOW)

    assert document == yaml.safe_load(capsys.readouterr().out)
    assert (document["apiVersion"], document["kind"]) == ("views.tessera.io/v1", "NodeList")
    assert [item["name"] for item in document["items"]] == ["cpu", "gpu-a", "gpu-b"]
    assert document["items"][1]["cards"][0]["memoryUsedMib"] == 80_000


def test_names_are_as_kubectl_takes_them(capsys: pytest.CaptureFixture[str]):
    Listing(POD_LOOK, "name").show(PODS[:2], NOW)

    assert capsys.readouterr().out == "pod/half-1\npod/half-2\n"


def test_a_table_of_nothing_is_nothing_and_a_document_of_nothing_is_one(capsys: pytest.CaptureFixture[str]):
    Listing(POD_LOOK, "").show((), NOW)
    assert capsys.readouterr().out == ""

    Listing(POD_LOOK, "json").show((), NOW)
    assert json.loads(capsys.readouterr().out)["items"] == []


def test_who_watches_is_shown_everything_and_then_what_changes(capsys: pytest.CaptureFixture[str]):
    listing, (first, second, *_) = Listing(POD_LOOK, ""), PODS
    listing.show_changed([first, second], NOW)
    assert len(capsys.readouterr().out.splitlines()) == 3

    listing.show_changed([first, second], NOW)
    assert capsys.readouterr().out == ""

    listing.show_changed([first, replace(second, phase="Failed")], NOW)
    assert [line.split()[1:3] for line in capsys.readouterr().out.splitlines()] == [["half-2", "Failed"]]

    listing.show_changed([replace(second, phase="Failed")], NOW)
    assert [line.split()[1:3] for line in capsys.readouterr().out.splitlines()] == [["half-1", "Deleted"]]


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_who_watches_documents_gets_one_for_each_change(capsys: pytest.CaptureFixture[str], output: str):
    listing = Listing(POD_LOOK, output)
    listing.show_changed(PODS[:1], NOW)
    listing.show_changed((), NOW)
    text = capsys.readouterr().out
    documents = [json.loads(line) for line in text.splitlines()] if output == "json" else list(yaml.safe_load_all(text))

    assert [(each["kind"], each["name"], each["deleted"]) for each in documents] == [
        ("Pod", "half-1", False),
        ("Pod", "half-1", True),
    ]
