"""Vendor files: the built-in ones are sound, and a mistake in one is one sentence."""

import re

import pytest

from tessera.errors import InvalidCatalogue
from tessera.vendors.loading import load_catalogue, parse_vendors

VENDOR = """
[[vendor]]
name = "Acme"
title = "Acme Rocket"
resources = { count = "acme.com/rocket" }
annotations = { allocated = "acme.com/allocated" }
"""

BUILTIN = load_catalogue()


def test_every_vendor_of_the_table_is_built_in():
    assert {vendor.name for vendor in BUILTIN} == {
        *("NVIDIA", "MLU", "DCU", "MR-V100", "MR-V50", "BI-V150", "BI-V100", "Mthreads", "Metax-GPU", "Metax-SGPU"),
        *("GCU", "Enflame", "kunlun", "XPU", "AWSNeuron", "AMD", "Vastai", "Biren"),
        *("Ascend910A", "Ascend910B2", "Ascend910B3", "Ascend910B4", "Ascend910B4-1", "Ascend910C", "Ascend310P"),
    }


@pytest.mark.parametrize(
    ("key", "vendor", "role"),
    [
        ("nvidia.com/gpu", "NVIDIA", "count"),
        ("nvidia.com/gpumem", "NVIDIA", "memory"),
        ("nvidia.com/gpumem-percentage", "NVIDIA", "memory_percent"),
        ("nvidia.com/gpucores", "NVIDIA", "cores"),
        ("nvidia.com/priority", "NVIDIA", "priority"),
        ("cambricon.com/mlu", "MLU", "count"),
        ("cambricon.com/vmlu", "MLU", "count"),
        ("hygon.com/dcu", "DCU", "count"),
        ("hygon.com/dcunum", "DCU", "count"),
        ("huawei.com/Ascend910B4-1-memory", "Ascend910B4-1", "memory"),
        ("iluvatar.ai/MR-V100.vMem", "MR-V100", "memory"),
    ],
)
def test_a_resource_key_leads_to_its_vendor(key, vendor, role):
    use = BUILTIN.by_resource(key)
    assert use
    assert (use.vendor.name, use.role) == (vendor, role)
    assert key in BUILTIN.managed_resources()


@pytest.mark.parametrize(
    ("key", "vendors"),
    [
        ("hami.io/node-nvidia-register", ["NVIDIA"]),
        ("hami.io/node-handshake-nvidia", ["NVIDIA"]),
        ("hami.io/node-handshake", ["NVIDIA"]),
        ("hami.io/vgpu-devices-to-allocate", ["NVIDIA"]),
        ("hami.io/node-register-Ascend910B3", ["Ascend910B3"]),
        ("hami.io/node-MR-V100-register", ["MR-V100"]),
        ("metax-tech.com/use-gpuuuid", ["Metax-GPU", "Metax-SGPU"]),
        ("example.com/nobody", []),
    ],
)
def test_an_annotation_leads_to_its_vendors(key, vendors):
    assert [vendor.name for vendor in BUILTIN.by_annotation(key)] == vendors


def test_a_key_of_nobody_is_not_managed():
    assert BUILTIN.by_resource("cpu") is None
    assert BUILTIN.by_name("Nobody") is None
    assert len(BUILTIN) == len(list(BUILTIN)) == 25


def test_a_file_and_a_directory_add_vendors(tmp_path):
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "other.toml").write_text(VENDOR.replace("Acme", "Other").replace("acme", "other"))
    (tmp_path / "more" / "notes.txt").write_text("not a vendor")
    (tmp_path / "acme.toml").write_text(VENDOR)
    catalogue = load_catalogue([tmp_path / "acme.toml", tmp_path / "more"])
    assert [vendor.name for vendor in catalogue][-2:] == ["Acme", "Other"]
    assert len(catalogue) == len(BUILTIN) + 2


def test_a_site_may_do_without_the_built_in_vendors(tmp_path):
    (tmp_path / "nvidia.toml").write_text(VENDOR.replace("Acme", "NVIDIA").replace("acme.com/rocket", "nvidia.com/gpu"))
    assert load_catalogue([tmp_path], builtin=False).managed_resources() == ("nvidia.com/gpu",)


def test_shared_values_are_filled_in_and_overridden():
    shared = """
    [shared]
    slots = 4
    title = "Chip <name>"
    resources = { count = "chip.com/<name>", memory = "chip.com/<name>.mem" }
    annotations = { allocated = "chip.com/<name>-allocated" }
    [[vendor]]
    name = "A1"
    [[vendor]]
    name = "A2"
    slots = 2
    resources = { memory = "chip.com/memory" }
    """
    one, two = parse_vendors(shared)
    assert (one.title, one.slots, one.resources.memory) == ("Chip A1", 4, "chip.com/A1.mem")
    assert (two.slots, two.resources.count, two.resources.memory) == (2, "chip.com/A2", "chip.com/memory")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("vendor = [", "bad.toml: is not TOML, expected a vendor file: "),
        ("", "bad.toml: vendor is missing, expected one or more [[vendor]] tables"),
        ("vendor = 3", "bad.toml: vendor is 3, expected one or more [[vendor]] tables"),
        ("vendor = [3]", "bad.toml: vendor[0] is 3, expected a table"),
        ("shared = 3\n" + VENDOR, "bad.toml: shared is 3, expected a table"),
        ("[vendors]\n" + VENDOR, "bad.toml: vendors is unknown, expected only [[vendor]] and [shared]"),
        (VENDOR.replace('title = "Acme Rocket"', ""), "bad.toml: vendor[0].title is missing, expected it to be set"),
        (VENDOR + "slots = 0", "bad.toml: vendor[0].slots is 0, expected a whole number >= 1"),
        (VENDOR + 'slots = "many"', 'bad.toml: vendor[0].slots is "many", expected a whole number'),
        (VENDOR + "colour = 1", "bad.toml: vendor[0].colour is unknown, expected only fields that exist"),
        (
            VENDOR.replace("acme.com/rocket", "no key"),
            'bad.toml: vendor[0].resources.count is "no key", expected a string',
        ),
        (VENDOR + 'rules = ["warp"]', 'bad.toml: vendor[0].rules[0] is "warp", expected one of cores-make-cards, '),
        (
            VENDOR + 'rules = ["memory-steps-up"]',
            "bad.toml: vendor[0].memory_steps_mib is missing, expected it to be set for the rule memory-steps-up",
        ),
        (
            VENDOR + "memory_unit_mib = 256\nmemory_steps_mib = [1000]",
            "bad.toml: vendor[0].memory_steps_mib is 1000, expected multiples of memory_unit_mib, 256",
        ),
        (
            VENDOR + 'templates = [{ name = "t", memory_mib = 1, cores = 101 }]',
            "bad.toml: vendor[0]: template t has 101 cores, expected at most 100",
        ),
        (
            VENDOR + 'environment = [{ name = "A", value = "{colour}" }]',
            'bad.toml: vendor[0].environment[0].value is "{colour}", expected one of ',
        ),
        (
            VENDOR + 'environment = [{ name = "A", value = "{uuid.__class__}" }]',
            'bad.toml: vendor[0].environment[0].value is "{uuid.__class__}", expected one of ',
        ),
        (
            VENDOR + 'environment = [{ name = "A_{position}", value = "x", per = "list" }]',
            'bad.toml: vendor[0].environment[0].name is "A_{position}", expected one of ',
        ),
        (
            VENDOR + 'mounts = [{ container = "/a", host = "{index}" }]',
            'bad.toml: vendor[0].mounts[0].host is "{index}", expected one of ',
        ),
        (VENDOR + 'card_id = "{"', 'bad.toml: vendor[0].card_id is "{", expected braces around one of '),
        (
            VENDOR + VENDOR,
            'bad.toml (vendor "Acme"): name is "acme", expected one that bad.toml (vendor "Acme") does not',
        ),
        (
            VENDOR + VENDOR.replace("Acme", "Other"),
            'bad.toml (vendor "Other"): resource is "acme.com/rocket", expected one that bad.toml (vendor "Acme") does',
        ),
        (
            VENDOR + VENDOR.replace("Acme", "Other").replace("rocket", "plane"),
            'bad.toml (vendor "Other"): annotation is "acme.com/allocated", expected one that bad.toml (vendor "Acme")',
        ),
        (
            VENDOR.replace("acme.com/rocket", "nvidia.com/gpu"),
            'bad.toml (vendor "Acme"): resource is "nvidia.com/gpu", expected one that nvidia.toml (vendor "NVIDIA")',
        ),
        (
            VENDOR.replace('count = "acme.com/rocket"', 'count = "acme.com/rocket", memory = "acme.com/rocket"'),
            'bad.toml (vendor "Acme"): resource is "acme.com/rocket", expected one that bad.toml (vendor "Acme") does',
        ),
        (
            VENDOR.replace('"acme.com/allocated"', '"acme.com/allocated", register_format = "xml"'),
            'bad.toml: vendor[0].annotations.register_format is "xml", expected one of the words documented for it',
        ),
    ],
)
def test_a_mistake_in_a_file_is_one_sentence(tmp_path, text, sentence):
    file = tmp_path / "bad.toml"
    file.write_text(text)
    with pytest.raises(InvalidCatalogue) as caught:
        load_catalogue([file])
    said = str(caught.value).replace(f"{tmp_path}/", "")
    assert said.startswith(sentence)
    assert not re.search(r"\n.", said)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InvalidCatalogue, match=r"none\.toml: does not exist, expected a vendor file or a directory"):
        load_catalogue([tmp_path / "none.toml"])


def test_a_file_that_is_not_text_is_named(tmp_path):
    file = tmp_path / "bytes.toml"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidCatalogue, match=r"bytes\.toml: cannot be read"):
        load_catalogue([file])
