"""What a test of the seeds' samples is given: the document, and a cluster to run them on."""

from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.fixtures import clusters
from tests.seeds.engines import kubeconfig_of_chosen_engine
from tests.seeds.samples import find_seed, seeds_directory
from tests.seeds.shell import Shell

new_cluster = pytest.fixture(scope="package")(clusters)
kubeconfig = pytest.fixture(scope="package")(kubeconfig_of_chosen_engine)


@pytest.fixture(scope="session")
def seed() -> Callable[[int], str]:
    """The text of a seed, by its number; without it the test skips and says so."""

    def read(number: int) -> str:
        found = find_seed(number)
        if found is None:
            pytest.skip(f"seed {number} is not in {seeds_directory()}: its samples are not tested; set TESSERA_SEEDS")
        return found.read_text(encoding="utf-8")

    return read


@pytest.fixture(scope="package")
def shell(kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    return Shell(kubeconfig, tmp_path_factory.mktemp("cache"))
