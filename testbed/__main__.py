"""`make cluster` and `make programs`: the testbed for hands."""

import argparse
import signal
import sys
import threading
import time

import structlog

from tessera.errors import TesseraError
from testbed.building import Programs
from testbed.cluster import Cluster
from testbed.images.cache import default_cache
from testbed.images.debian import unpack
from testbed.images.recipes.busybox import busybox_image
from testbed.mpi import NAMES as MPI_NAMES
from testbed.mpi import install_mpi
from testbed.node import DEBIAN_PACKAGES
from testbed.requirements import require

GREETING = """
A Kubernetes {version} is up ({took:.0f} s). In another terminal:

  export KUBECONFIG={kubeconfig}
  {kubectl} get nodes

Logs are in {logs}. Ctrl-C ends the cluster and leaves nothing behind."""


def main() -> int:
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    arguments = _parse()
    try:
        arguments.action(arguments)
    except TesseraError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m testbed", description=__doc__)
    actions = parser.add_subparsers(required=True)
    build = actions.add_parser("build", help="build every program and fetch what nodes need, unless it is there")
    build.set_defaults(action=lambda _: _build())
    up = actions.add_parser("up", help="run a cluster until Ctrl-C")
    up.add_argument("--simulated-nodes", type=_count, default=4, metavar="N", help="nodes kept by kwok (default: 4)")
    up.add_argument("--no-node", action="store_true", help="leave out the real node")
    up.set_defaults(action=_up)
    return parser.parse_args()


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text} is no number of nodes, expected 0 or more")
    return int(text)


def _build() -> None:
    require()
    Programs().build()
    print("Unpacking runc, network plugins and busybox from Debian …", file=sys.stderr, flush=True)
    unpack(DEBIAN_PACKAGES)
    busybox_image(default_cache())
    for name in MPI_NAMES:
        print(f"Fetching {name} …", file=sys.stderr, flush=True)
        install_mpi(name)


def _up(arguments: argparse.Namespace) -> None:
    began, ended = time.monotonic(), threading.Event()
    with Cluster(node=not arguments.no_node, simulated_nodes=arguments.simulated_nodes) as cluster:
        print(
            GREETING.format(
                version=cluster.programs.version("kubectl"),
                took=time.monotonic() - began,
                kubeconfig=cluster.kubeconfig,
                kubectl=cluster.programs["kubectl"],
                logs=cluster.machine.logs,
            ),
            flush=True,
        )
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: ended.set())
        ended.wait()


if __name__ == "__main__":
    sys.exit(main())
