"""Peculiarities: what a request means on a vendor's cards, and what it cannot mean."""

import msgspec
import pytest

from tessera.errors import InvalidRequest
from tessera.model.requests import CardSelector, DeviceRequest
from tessera.vendors.loading import load_catalogue
from tessera.vendors.rules import RULES, refine

CATALOGUE = load_catalogue()


def refined(vendor: str, **figures: object) -> DeviceRequest:
    described = CATALOGUE.by_name(vendor)
    assert described
    return refine(described, DeviceRequest(vendor=vendor, **({"count": 1} | figures)))  # pyright: ignore[reportArgumentType]


def figures_of(request: DeviceRequest) -> tuple[int, int, int, int]:
    return request.count, request.memory_mib, request.memory_percent, request.cores_percent


@pytest.mark.parametrize(
    ("vendor", "asked", "given"),
    [
        ("NVIDIA", {"memory_mib": 3001}, (1, 3001, 0, 0)),
        ("Ascend910B3", {"memory_mib": 1}, (1, 16384, 0, 25)),
        ("Ascend910B3", {"memory_mib": 16384}, (1, 16384, 0, 25)),
        ("Ascend910B3", {"memory_mib": 16385}, (1, 32768, 0, 50)),
        ("Ascend910B3", {"memory_mib": 32769}, (1, 0, 100, 100)),
        ("Ascend910B3", {"count": 4, "memory_mib": 65536}, (4, 0, 100, 100)),
        ("Ascend910B3", {"count": 4, "memory_percent": 100, "cores_percent": 100}, (4, 0, 100, 100)),
        ("Ascend910A", {"memory_mib": 2000}, (1, 2184, 0, 6)),
        ("Ascend310P", {"memory_mib": 6000}, (1, 6144, 0, 25)),
        ("Ascend910C", {"memory_percent": 100}, (2, 0, 100, 100)),
        ("Ascend910C", {"count": 4, "memory_percent": 100}, (4, 0, 100, 100)),
        ("Mthreads", {"memory_mib": 1024, "cores_percent": 25}, (1, 1024, 0, 25)),
        ("Mthreads", {"count": 2, "memory_mib": 1000}, (2, 0, 100, 100)),
        ("XPU", {"memory_mib": 1}, (1, 24576, 0, 25)),
        ("XPU", {"memory_mib": 24577}, (1, 49152, 0, 50)),
        ("XPU", {"memory_percent": 100, "cores_percent": 100}, (1, 0, 100, 100)),
        ("AWSNeuron", {"memory_percent": 100, "cores_percent": 50}, (1, 0, 50, 50)),
        ("AWSNeuron", {"memory_percent": 100, "cores_percent": 400}, (4, 0, 100, 100)),
        ("AWSNeuron", {"count": 3, "memory_percent": 100, "cores_percent": 100}, (3, 0, 100, 100)),
    ],
)
def test_a_request_becomes_what_the_hardware_can_give(vendor, asked, given):
    assert figures_of(refined(vendor, **asked)) == given


@pytest.mark.parametrize(
    ("vendor", "asked", "sentence"),
    [
        (
            "Ascend910B3",
            {"count": 2, "memory_mib": 8192},
            'huawei.com/Ascend910B3-memory is "8192", expected none beside 2 cards; several cards are only given whole',
        ),
        (
            "Ascend910B3",
            {"memory_mib": 8192, "cores_percent": 30},
            'huawei.com/Ascend910B3-core is set, expected it only with huawei.com/vnpu-mode "hami-core"',
        ),
        (
            "Ascend910C",
            {"count": 3},
            'huawei.com/Ascend910C is "3", expected an even number such as "4"; its cards come in pairs',
        ),
        (
            "Mthreads",
            {"memory_mib": 1536},
            'mthreads.com/sgpu-memory is "3", expected one of 2, 4, 8, 16, 32, 64, 96',
        ),
        ("XPU", {"memory_mib": 98305}, 'kunlunxin.com/vxpu-memory is "98305", expected at most 98304'),
        (
            "AWSNeuron",
            {"cores_percent": 150},
            'aws.amazon.com/neuroncore is "3", expected 1 or a multiple of 2, the cores of a card',
        ),
    ],
)
def test_what_the_hardware_cannot_give_is_refused_in_one_sentence(vendor, asked, sentence):
    with pytest.raises(InvalidRequest) as caught:
        refined(vendor, **asked)
    assert str(caught.value) == sentence


def test_ascend_cut_by_software_keeps_what_was_asked_for():
    soft = CardSelector(mode="hami-core")
    request = refined("Ascend910B3", memory_mib=5000, cores_percent=30, selector=soft)
    assert figures_of(request) == (1, 5000, 0, 30)


def test_a_rule_keeps_what_it_is_not_about():
    selector = CardSelector(use_uuids=("a",))
    request = refined("Ascend910B3", memory_mib=5000, priority=1, selector=selector)
    assert (request.priority, request.selector) == (1, selector)


@pytest.mark.parametrize("name", sorted(RULES))
def test_every_rule_is_used_by_a_vendor(name):
    assert [vendor for vendor in CATALOGUE if name in vendor.rules]


@pytest.mark.parametrize("vendor", list(CATALOGUE), ids=lambda vendor: vendor.name)
def test_what_was_refined_stays_as_it_is_when_it_is_read_again(vendor):
    whole = DeviceRequest(vendor=vendor.name, count=2, memory_percent=100, cores_percent=100)
    assert refine(vendor, whole) == whole
    if "even-count" not in vendor.rules:
        part = refine(
            vendor, msgspec.structs.replace(whole, count=1, memory_percent=0, memory_mib=1024, cores_percent=0)
        )
        assert refine(vendor, part) == part
        assert part.memory_on(98304) >= 1024
