"""Clusters for pytest: `new_cluster(...)` makes them, `cluster` is the one that tests share.

Where a cluster cannot run, tests skip and say why; on CI they fail, because a check that skips proves nothing.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from testbed.cluster import Cluster
from testbed.requirements import missing

NewCluster = Callable[..., Cluster]


def require(available: bool, sentence: str) -> None:
    """Skip the test where something is not available; on CI fail."""
    if available:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"{sentence}; CI must have it", pytrace=False)
    pytest.skip(sentence)


def require_testbed() -> None:
    problems = missing()
    require(not problems, "; ".join(problems))


@pytest.fixture(scope="session")
def new_cluster(request: pytest.FixtureRequest) -> Iterator[NewCluster]:
    """Makes clusters that end with the session, if their test does not end them; logs stay if a test failed."""
    require_testbed()
    with ExitStack() as stack:

        def make(**options: object) -> Cluster:
            cluster = Cluster(**options)  # type: ignore[arg-type] # the options are Cluster's own
            stack.callback(lambda: cluster.stop(failed=bool(request.session.testsfailed)))
            return cluster

        yield make


@pytest.fixture(scope="session")
def cluster(new_cluster: NewCluster) -> Cluster:
    """One real node, two simulated ones. Whoever breaks something for the others makes a cluster of their own."""
    return new_cluster(node=True, simulated_nodes=2)
