"""Made-up cards: like the real ones, and the same every time."""

import pytest

from tessera.errors import InvalidInventory
from tessera.vendors.loading import load_catalogue
from tessera.vendors.simulated import SimulatedBackend, load_plan, parse_plan, simulate

CATALOGUE = load_catalogue()


def cards(description: str, node: str = "gpu-01"):
    return simulate(node, parse_plan(description), CATALOGUE)


def test_eight_cards_are_like_an_eight_card_machine():
    devices = cards("8xA100-SXM4-80GB").devices
    assert [device.index for device in devices] == list(range(8))
    assert {device.memory_mib for device in devices} == {81_920}
    assert {device.model for device in devices} == {"NVIDIA A100-SXM4-80GB"}
    assert [device.numa for device in devices] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert len({device.island for device in devices}) == 1
    assert all(device.slots == 10 for device in devices)


def test_uuids_follow_from_the_node_and_the_index():
    assert cards("4xT4") == cards("4xT4")
    uuids = [device.uuid for node in ("a", "b") for device in cards("4xT4", node).devices]
    assert len(set(uuids)) == 8
    assert all(uuid.startswith("GPU-") for uuid in uuids)


def test_more_cards_keep_the_uuids_of_fewer():
    assert [device.uuid for device in cards("8xT4").devices][:4] == [device.uuid for device in cards("4xT4").devices]


def test_links_are_faster_within_an_island():
    inventory = cards("8xV100-SXM2-16GB")
    score = {(link.one, link.other): link.score for link in inventory.links}
    first, second, *_, last = (device.uuid for device in inventory.devices)
    assert len(score) == 28
    assert score[first, second] == 220
    assert score[first, last] == 10


def test_cards_without_fast_links_are_on_no_island():
    assert {device.island for device in cards("4xT4").devices} == {""}


def test_several_vendors_share_a_node_but_no_links():
    inventory = cards("2xT4,2xAscend310P")
    assert [(device.vendor, device.index) for device in inventory.devices] == [
        ("NVIDIA", 0),
        ("NVIDIA", 1),
        ("Ascend310P", 0),
        ("Ascend310P", 1),
    ]
    assert len(inventory.links) == 2
    vendor = CATALOGUE.by_name("Ascend310P")
    assert vendor
    own = SimulatedBackend(inventory, vendor).read()
    assert [device.vendor for device in own.devices] == ["Ascend310P"] * 2
    assert len(own.links) == 1


def test_two_groups_of_one_vendor_count_on():
    devices = cards("2xT4,2xL4").devices
    assert [device.index for device in devices] == [0, 1, 2, 3]
    assert len({device.uuid for device in devices}) == 4


@pytest.mark.parametrize("vendor", list(CATALOGUE), ids=lambda vendor: vendor.name)
def test_every_vendor_can_be_simulated(vendor):
    assert vendor.models, "a built-in vendor knows at least one model"
    for model in vendor.models:
        assert cards(f"2x{model.name}").devices[1].vendor == vendor.name


def test_a_file_may_say_more(tmp_path):
    file = tmp_path / "node.toml"
    file.write_text(
        """
        [[cards]]
        model = "A100-SXM4-80GB"
        count = 4
        island_size = 2
        numa_size = 2
        slots = 3
        unhealthy = [1]

        [[cards]]
        model = "GB10"
        vendor = "NVIDIA"
        memory_mib = 122880

        [[links]]
        one = 3
        other = 2
        score = 7
        """
    )
    inventory = simulate("n", load_plan(file), CATALOGUE)
    assert [device.healthy for device in inventory.devices] == [True, False, True, True, True]
    assert [device.numa for device in inventory.devices] == [0, 0, 1, 1, 0]
    assert [device.slots for device in inventory.devices] == [3, 3, 3, 3, 10]
    assert len({device.island for device in inventory.devices[:4]}) == 2
    assert inventory.devices[4].memory_mib == 122_880
    third, fourth = inventory.devices[2].uuid, inventory.devices[3].uuid
    assert {link.score for link in inventory.links if (link.one, link.other) == (third, fourth)} == {7}


def test_a_file_may_describe_islands_of_different_bandwidth(tmp_path):
    file = tmp_path / "node.toml"
    fast = '[[cards]]\nmodel = "A100-SXM4-80GB"\ncount = 4\nisland_size = 4\n'
    file.write_text(f"{fast}{fast}bandwidth_gbps = 64\nunhealthy = [3]\n")
    devices = simulate("n", load_plan(file), CATALOGUE).devices
    assert [device.bandwidth_gbps for device in devices] == [600] * 4 + [64] * 4
    first, second = ({device.island for device in some} for some in (devices[:4], devices[4:]))
    assert len(first) == len(second) == 1
    assert first != second
    assert [device.index for device in devices if not device.healthy] == [7]


def test_cards_that_are_joined_to_none_have_no_bandwidth():
    assert {device.bandwidth_gbps for device in cards("2xT4").devices} == {0}
    assert {device.bandwidth_gbps for device in cards("2xH200").devices} == {900}


@pytest.mark.parametrize(
    ("description", "sentence"),
    [
        ("A100", 'cards is "A100", expected a number and a model such as "8xA100-SXM4-80GB"'),
        ("0xT4", 'cards is "0xT4", expected a number'),
        ("2xWarp9", 'model is "Warp9", expected one of '),
        ("9999xT4", "gpu-01: cards is 9999, expected at most 1024 on one node"),
    ],
)
def test_a_description_that_means_nothing_gets_one_sentence(description, sentence):
    with pytest.raises(InvalidInventory) as caught:
        cards(description)
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("cards = 3", "node.toml: cards is 3, expected a list"),
        ('[[cards]]\nmodel = "T4"\ncolour = "red"', "node.toml: cards[0].colour is unknown"),
        (
            '[[cards]]\nmodel = "T4"\n[[links]]\none = 0\nother = 1\nscore = 1',
            "n: links[0] is 0 and 1, expected two of",
        ),
        ('[[cards]]\nmodel = "X"\nvendor = "Nobody"', 'vendor is "Nobody", expected one of AMD'),
        ("cards = [", "node.toml: is not TOML"),
    ],
)
def test_a_file_that_means_nothing_gets_one_sentence(tmp_path, content, sentence):
    file = tmp_path / "node.toml"
    file.write_text(content)
    with pytest.raises(InvalidInventory) as caught:
        simulate("n", load_plan(file), CATALOGUE)
    assert str(caught.value).removeprefix(f"{tmp_path}/").startswith(sentence)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InvalidInventory, match=r"none\.toml: cannot be read"):
        load_plan(tmp_path / "none.toml")
