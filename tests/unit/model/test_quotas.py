import pytest

from tessera.model.quotas import Limits, read_quotas
from tessera.vendors.loading import load_catalogue

VENDORS = load_catalogue()


def a_quota(**hard: object) -> dict[str, object]:
    return {"metadata": {"namespace": "team", "name": "cards"}, "spec": {"hard": hard}}


def test_a_quota_limits_cards_memory_and_cores_of_a_vendor():
    quota = a_quota(
        **{
            "limits.nvidia.com/gpumem": "64k",
            "limits.nvidia.com/gpucores": 400,
            "requests.nvidia.com/gpu": "4",
            "limits.cpu": "8",
            "pods": "10",
        }
    )
    assert read_quotas([quota], VENDORS).limits == {"NVIDIA": Limits(cards=4, memory_mib=64_000, cores_percent=400)}


def test_figures_are_in_the_units_of_the_vendors_resource():
    quota = a_quota(
        **{
            "limits.cambricon.com/mlu.smlu.vmemory": "16",
            "limits.mthreads.com/sgpu-core": "8",
            "limits.metax-tech.com/vmemory": "2",
        }
    )
    assert read_quotas([quota], VENDORS).limits == {
        "MLU": Limits(memory_mib=4096),
        "Mthreads": Limits(cores_percent=50),
        "Metax-SGPU": Limits(memory_mib=2048),
    }
    assert read_quotas([a_quota(**{"limits.metax-tech.com/vmemory": "1.5Gi"})], VENDORS).limits == {
        "Metax-SGPU": Limits(memory_mib=1536)
    }


def test_of_several_quotas_and_of_both_prefixes_the_smallest_counts():
    quotas = [
        a_quota(**{"limits.nvidia.com/gpu": "4", "requests.nvidia.com/gpu": "3"}),
        a_quota(**{"limits.nvidia.com/gpu": "5", "limits.nvidia.com/gpumem": "0"}),
    ]
    assert read_quotas(quotas, VENDORS).limits == {"NVIDIA": Limits(cards=3, memory_mib=0)}


def test_a_quota_that_says_nothing_of_cards_limits_none():
    assert read_quotas([{}, {"spec": None}, {"spec": {"hard": None}}, a_quota(cpu="1")], VENDORS) == ({}, ())


@pytest.mark.parametrize(
    ("quota", "sentence"),
    [
        (
            a_quota(**{"limits.nvidia.com/gpumem": "64Gi"}),
            'resource quota team/cards: limits.nvidia.com/gpumem is "64Gi", '
            'expected a whole number of MiB such as "64000", without a unit',
        ),
        (
            a_quota(**{"limits.nvidia.com/gpu": "-1"}),
            'resource quota team/cards: limits.nvidia.com/gpu is "-1", expected a whole number such as "8"',
        ),
        (
            a_quota(**{"limits.nvidia.com/gpucores": None}),
            'resource quota team/cards: limits.nvidia.com/gpucores is missing, expected a whole number such as "8"',
        ),
        (
            a_quota(**{"limits.metax-tech.com/vmemory": "8x"}),
            'resource quota team/cards: limits.metax-tech.com/vmemory is "8x", expected a quantity such as "64Gi"',
        ),
        ({"spec": []}, "resource quota: spec is a list, expected an object"),
    ],
)
def test_a_figure_that_cannot_be_read_is_told_of(quota: object, sentence: str):
    (told,) = read_quotas([quota], VENDORS).complaints
    assert told.removesuffix("; until then it allows nothing") == sentence


def test_a_figure_that_cannot_be_read_allows_nothing_and_the_others_hold():
    good, bad = a_quota(**{"limits.nvidia.com/gpu": "4"}), a_quota(**{"limits.nvidia.com/gpumem": "1Gi"})
    for quotas in ([good, bad], [bad, good]):
        assert read_quotas(quotas, VENDORS).limits == {"NVIDIA": Limits(cards=4, memory_mib=0)}
