"""The cluster that the examples run on: one like that of the seeds' samples."""

import pytest

from testbed.fixtures import clusters
from tests.seeds.engines import kubeconfig_of_chosen_engine

new_cluster = pytest.fixture(scope="package")(clusters)
kubeconfig = pytest.fixture(scope="package")(kubeconfig_of_chosen_engine)
