"""The cluster that most tests of the testbed look at."""

import pytest

from testbed.fixtures import clusters, mixed_cluster

new_cluster = pytest.fixture(scope="package")(clusters)
cluster = pytest.fixture(scope="package")(mixed_cluster)
