"""How long a real cluster takes to come and to go. Needs root and Go; the programs are built before the clock starts.

Floor, in the same run: a machine, that is the namespaces, with nothing in them.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import structlog

from testbed.building import Programs
from testbed.cluster import Cluster
from testbed.machine import Machine
from testbed.requirements import missing


def main() -> None:
    if problems := missing():
        sys.exit("; ".join(problems))
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    Programs().build()
    Cluster(node=True).stop()  # once, so that images and unpacked packages are there
    print("a cluster, seconds until it can be used    start    stop")
    measure("floor: a machine with nothing in it", Machine)
    measure("etcd and API server", lambda: Cluster(controllers=False))
    measure("the whole control plane", Cluster)
    measure("with a real node and names resolved", lambda: Cluster(node=True))
    measure("with 1,000 simulated nodes, all reported", lambda: Cluster(simulated_nodes=1000))


def measure(what: str, start: Callable[[], Any]) -> None:
    began = time.perf_counter()
    started = start()
    up = time.perf_counter()
    started.stop()
    print(f"  {what:40} {up - began:7.2f} {time.perf_counter() - up:7.2f}", flush=True)


if __name__ == "__main__":
    main()
