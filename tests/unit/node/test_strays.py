"""Containers that run with cards which their pod does not name."""

import pytest

from tessera.node.pods import Pod
from tessera.node.strays import Strays
from tessera.vendors.loading import load_catalogue
from tests.builders import a_share
from tests.unit.node.making import ALLOCATED, NODE, a_claim_pod, a_pod, a_tile

CATALOGUE = load_catalogue()
GIVEN, OTHER = (a_share("GPU-0", 1000, 10),), (a_share("GPU-1", 1000, 10),)


@pytest.mark.parametrize(
    ("pod", "is_stray"),
    [
        (a_pod(GIVEN), False),
        (None, False),
        (a_pod(OTHER), True),
        (a_pod(), True),
        (a_pod(annotations={ALLOCATED: "GPU-0,NVIDIA,much,10:;"}), True),
        (a_claim_pod(a_share("GPU-0", 8000, 100), a_share("GPU-1", 8000, 100)), False),
        (a_claim_pod(a_share("GPU-1", 1000, 10)), True),
    ],
    ids=["its cards", "the pod is gone", "other cards", "no cards", "cannot be read", "claimed", "others claimed"],
)
def test_a_stray_is_a_container_whose_pod_names_other_cards(pod: Pod | None, is_stray: bool):
    tile = a_tile("aa", *GIVEN)
    strays = Strays(NODE, CATALOGUE, lambda uid: pod if uid == "uid-1" else None)
    assert strays.among([tile]) == ((tile,) if is_stray else ())
