"""Clusters into which helm installs our chart."""

import pytest

from testbed.cluster import Cluster
from testbed.fixtures import NewCluster, clusters, mixed_cluster
from tests.chart.charts import SEEDS_CHART
from tests.repository.files import ROOT

new_cluster = pytest.fixture(scope="package")(clusters)
cluster = pytest.fixture(scope="package")(mixed_cluster)


@pytest.fixture(scope="package")
def bare_cluster(new_cluster: NewCluster) -> Cluster:
    """An API server that keeps objects, and nobody who acts on them."""
    return new_cluster(controllers=False)


@pytest.fixture
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where people are when they type what the documentation says."""
    monkeypatch.chdir(ROOT)


def install(cluster: Cluster, *arguments: str) -> str:
    return cluster.helm("install", "gpu-scheduler", str(ROOT / SEEDS_CHART), *arguments)
