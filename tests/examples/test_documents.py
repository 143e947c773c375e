"""What docs/develop claims: our codecs read its formats, its names exist, and nothing that exists is missing."""

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from examples.client.python import hami_client
from tessera.engine.policies import CARD_POLICIES, NODE_POLICIES, check_choice
from tessera.model.annotations import keys
from tessera.model.annotations.allocations import decode_containers, decode_seed_devices
from tessera.model.annotations.binding import node_label
from tessera.model.annotations.handshakes import decode_handshake
from tessera.model.annotations.locks import decode_lock
from tessera.model.annotations.registers import decode_register
from tessera.model.annotations.results import decode_card_names, decode_result
from tessera.model.annotations.selectors import decode_weights, read_policy
from tessera.model.requests import PolicyChoice
from tessera.vendors.loading import load_catalogue
from tests.builders import a_card, a_node, a_pod, a_want
from tests.examples.guides import section
from tests.repository.files import ROOT
from tests.repository.pages import QUOTED
from tests.seeds.samples import samples_of
from tests.unit.engine.world import World

DEVELOP = {path.name: path.read_text() for path in sorted((ROOT / "docs/develop").glob("*.md"))}
Document = dict[str, Any]

WHERE = "the guide"
CODECS: dict[str, Callable[[str], object]] = {
    "hami.io/node-nvidia-register": lambda text: decode_register(text, vendor="NVIDIA", where=WHERE),
    "hami.io/node-handshake-nvidia": lambda text: decode_handshake(text).at,
    "hami.io/mutex.lock": lambda text: decode_lock(text, WHERE),
    keys.VGPU_NODE: str,
    keys.VGPU_TIME: int,
    keys.DEVICES_TO_ALLOCATE: lambda text: decode_seed_devices(text, WHERE),
    "hami.io/vgpu-devices-to-allocate": lambda text: decode_containers(text, WHERE),
    "hami.io/vgpu-devices-allocated": lambda text: decode_containers(text, WHERE),
    keys.SCHEDULING_RESULT: lambda text: decode_result(text, WHERE),
    keys.DEVICE_ALLOCATED: lambda text: decode_card_names(text, WHERE),
    keys.NODE_POLICY: lambda text: check_choice(PolicyChoice(node=text)) or text,
    keys.CARD_POLICY: lambda text: check_choice(read_policy({keys.CARD_POLICY: text})) or text,
    keys.SCORING_WEIGHTS: lambda text: decode_weights(text, WHERE),
}


def examples() -> Iterator[tuple[str, Document]]:
    for name, text in DEVELOP.items():
        for sample in samples_of(text, "yaml"):
            metadata = yaml.safe_load(sample.text)["metadata"]
            if "annotations" in metadata:
                yield f"{name}: {sample.section} {sample.position}", metadata


EXAMPLES = list(examples())


@pytest.mark.parametrize("metadata", [one for _, one in EXAMPLES], ids=[name for name, _ in EXAMPLES])
def test_every_annotation_of_an_example_is_read_by_our_codec(metadata: Document):
    for key, text in metadata["annotations"].items():
        assert CODECS[key](text), f"{key} of the example says nothing"


@pytest.mark.parametrize("metadata", [one for _, one in EXAMPLES if keys.DEVICES_TO_ALLOCATE in one["annotations"]])
def test_the_annotations_of_an_example_agree_with_each_other(metadata: Document):
    said = metadata["annotations"]
    flat = decode_seed_devices(said[keys.DEVICES_TO_ALLOCATE], WHERE)
    for key in ("hami.io/vgpu-devices-to-allocate", "hami.io/vgpu-devices-allocated"):
        assert [card for container in decode_containers(said[key], WHERE) for card in container] == list(flat)
    result = decode_result(said[keys.SCHEDULING_RESULT], WHERE)
    assert (result.node, len(result.cards)) == (said[keys.VGPU_NODE], len(flat))
    assert len(decode_card_names(said[keys.DEVICE_ALLOCATED], WHERE)) == len(flat)
    if "labels" in metadata:
        assert metadata["labels"] == {keys.VGPU_NODE: node_label(result.node)}


def test_every_spelling_of_a_handshake_in_the_reference_has_the_same_time():
    rows = [line for line in section(DEVELOP["api-reference.md"], "On a node").splitlines() if line.startswith("| `")]
    shakes = [QUOTED.findall(row)[0] for row in rows if re.match(r"\| `(Re|De)", row)]
    assert len(shakes) == 5
    assert len({str(decode_handshake(text).at)[:19] for text in shakes}) == 1
    for text in shakes:
        assert hami_client.parse_handshake(text)["at"] == decode_handshake(text).at.replace(microsecond=0)  # type: ignore[union-attr]


def test_the_resources_of_the_reference_are_those_of_the_catalogue():
    text = section(DEVELOP["api-reference.md"], "Resources of a container")
    known = {name for vendor in load_catalogue() for name in resource_names(vendor)}
    named = {name for name in QUOTED.findall(text) if "/" in name and name.partition("/")[0].endswith(".com")}
    assert named <= known
    (nvidia,) = [vendor for vendor in load_catalogue() if vendor.name == "NVIDIA"]
    assert set(resource_names(nvidia)) - named <= {name for name in known if name.startswith("volcano.sh/")}


def resource_names(vendor: Any) -> list[str]:
    names = vendor.resources
    single = [getattr(names, kind) for kind in ("count", "memory", "memory_percent", "cores", "priority")]
    return [name for name in [*single, *names.count_aliases, *names.memory_aliases] if name]


def test_the_python_client_is_as_the_reference_says():
    rows = re.findall(r"^\| `(\w+)\((.*?)\)` \|", section(DEVELOP["api-reference.md"], "The Python client"), re.M)
    methods = {name: method for name, method in vars(hami_client.HAMiClient).items() if inspect.isfunction(method)}
    public = {name for name in methods if not name.startswith("_")}
    assert {name for name, _ in rows} - {"HAMiClient"} == public
    for name, told in rows:
        function = methods["__init__" if name == "HAMiClient" else name]
        assert told == parameters_of(function), name


def parameters_of(function: Any) -> str:
    texts = list[str]()
    for name, parameter in list(inspect.signature(function).parameters.items())[1:]:
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in texts:
            texts.append("*")
        default = "NVIDIA" if parameter.default is hami_client.NVIDIA else parameter.default
        shown = default if default == "NVIDIA" else f'"{default}"' if isinstance(default, str) else default
        texts.append(name if parameter.default is parameter.empty else f"{name}={shown}")
    return ", ".join(texts)


@pytest.mark.parametrize("kind", ["NodeInfo", "PodInfo", "SchedulingInfo", "Device", "AllocatedDevice"])
def test_the_fields_of_the_python_client_are_as_the_reference_says(kind: str):
    text = section(DEVELOP["api-reference.md"], "The Python client")
    (fields,) = re.findall(rf"`{kind}`(?::| has) ((?:`\w+`(?:, )?)+)", text)
    assert QUOTED.findall(fields) == list(getattr(hami_client, kind).__annotations__)


def test_the_policies_of_the_guide_are_those_that_exist():
    rows = re.findall(r"^\| (`[^|]+`) \| (yes|no) \| (yes|no) \|", DEVELOP["scheduler-policy.md"], re.M)
    named = {
        name: (of_nodes == "yes", of_cards == "yes")
        for names, of_nodes, of_cards in rows
        for name in QUOTED.findall(names)
    }
    there = {*NODE_POLICIES, *CARD_POLICIES}
    assert named == {name: (name in NODE_POLICIES, name in CARD_POLICIES) for name in there}


def test_the_example_of_the_policies_comes_out_as_the_guide_says():
    rows = re.findall(
        r"^\| `(\S+)` / `(\S+)` \| (node-[ab])(, the (?:card in use|idle card))? \|",
        DEVELOP["scheduler-policy.md"],
        re.M,
    )
    assert len(rows) == 4
    for node, cards, place, card in rows:
        world = World(
            *(a_node(name, *(a_card(f"{name}-{n}", memory_mib=40960) for n in "01")) for name in ("node-a", "node-b"))
        )
        world.hold("node-a", "node-a-0", 20480)
        pod = a_pod(a_want(1, memory_mib=8192), policy=PolicyChoice(node=node, cards=(cards,)))
        assert world.node(pod) == place
        assert not card or world.cards(pod) == [["node-a-0" if "in use" in card else "node-a-1"]]
