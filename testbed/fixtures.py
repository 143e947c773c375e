"""Clusters for pytest: a directory's `new_cluster(...)` makes them, and they end with the directory's last test.

A conftest.py makes it its own by `new_cluster = pytest.fixture(scope="package")(clusters)`. Clusters that lived longer
would add up: a kubelet and its like hold some ten of the few instances of inotify that a host gives to one user.

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


def clusters(request: pytest.FixtureRequest) -> Iterator[NewCluster]:
    """What a fixture yields whose clusters end with it, if nobody ends them before; logs stay if a test failed."""
    require_testbed()
    with ExitStack() as stack:

        def make(**options: object) -> Cluster:
            options["has_failed"] = lambda: bool(request.session.testsfailed)
            cluster = Cluster(**options)  # type: ignore[arg-type] # the options are Cluster's own
            stack.callback(cluster.stop)
            return cluster

        yield make


def mixed_cluster(new_cluster: NewCluster) -> Cluster:
    """One real node, two simulated ones. Whoever breaks something for the others makes a cluster of their own."""
    return new_cluster(node=True, simulated_nodes=2)
