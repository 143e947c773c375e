import os
from typing import Any, cast

import pytest

from tessera.errors import InvalidPolicy, SimulationFailed
from tessera.simulation.campaign import Campaign, run_campaign
from tessera.simulation.made_up import make_up_cluster
from tessera.simulation.scenario import Scenario


class Deadly:
    """Kills the process that unpickles it, as the kernel would."""

    def __reduce__(self) -> Any:
        return os._exit, (9,)


def test_a_worker_that_dies_gives_one_sentence() -> None:
    with pytest.raises(SimulationFailed, match="a worker process died, probably out of memory; try fewer --workers"):
        run_campaign(cast(Scenario, Deadly()), Campaign(policies=("defrag",), seeds=(42, 43)), workers=1)


def test_what_fails_in_a_worker_is_raised_here() -> None:
    campaign = Campaign(policies=("unheard-of", "defrag"), seeds=(42,))

    with pytest.raises(InvalidPolicy, match='the node policy is "unheard-of"'):
        run_campaign(make_up_cluster("2x2"), campaign, workers=1)
