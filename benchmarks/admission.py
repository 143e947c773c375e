"""How many pods a second our webhook admits over TLS, in the real process beside a real API server.

Every pod asks for a card and is changed. Peer, in the same run: a Starlette webhook that allows everything, served the
same way. Whoever asks is a process of its own; its ceiling is what a server of canned bytes answers it.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import structlog

from benchmarks.kube_pods import a_pod
from benchmarks.scheduling import FROM_THIS_TREE, Scheduling, quiet_cluster
from testbed.cluster import Cluster
from testbed.program import Program

WANTED_RATE, WANTED_PART = 1_000, 0.5
OURS_PORT, PEER_PORT, CEILING_PORT = 8443, 8444, 8445
QUESTIONS = 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--for-s", type=float, default=10.0, help="how long each is asked")
    asked = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    with quiet_cluster() as cluster:
        directory = serving_directory(cluster)
        host = cluster.machine.addresses.machine
        Scheduling(cluster).start_extender(f"--webhook={host}:{OURS_PORT}", f"--webhook-tls-dir={directory}")
        print("admission reviews over TLS                     a second")
        ceiling = measure(
            cluster, "ceiling of asking: canned bytes", CEILING_PORT, asked.for_s, start(cluster, "canned")
        )
        peer = measure(
            cluster, "peer: Starlette, allows everything", PEER_PORT, asked.for_s, start(cluster, "allowing")
        )
        ours = measure(cluster, "our webhook, changes every pod", OURS_PORT, asked.for_s)
        print(f"  part of the peer {ours / peer:.0%} (>= {WANTED_PART:.0%}), a second {ours:.0f} (>= {WANTED_RATE})")
        if ceiling < 1.2 * peer:
            print("  the asking is hardly faster than the peer's answers: the peer may be faster than this shows")


def serving_directory(cluster: Cluster) -> Path:
    pair = cluster.control_plane.authority.issue("webhook", "webhook", reachable_at=[cluster.machine.addresses.machine])
    directory = cluster.machine.directory / "webhook"
    directory.mkdir()
    shutil.copy(pair.certificate, directory / "tls.crt")
    shutil.copy(pair.key, directory / "tls.key")
    return directory


def start(cluster: Cluster, kind: str) -> Program:
    port = CEILING_PORT if kind == "canned" else PEER_PORT
    host, directory = cluster.machine.addresses.machine, cluster.machine.directory / "webhook"
    command = [sys.executable, "-m", "benchmarks.noop_webhook", kind, host, str(port), str(directory)]
    return cluster.machine.start(kind, command, environment=FROM_THIS_TREE)


def measure(cluster: Cluster, what: str, port: int, for_s: float, server: Program | None = None) -> float:
    """A server that was started for this is stopped after it, so that the next has the cores."""
    host, authority = cluster.machine.addresses.machine, cluster.control_plane.authority.files.certificate
    command = [sys.executable, "-m", "benchmarks.admission_load", host, str(port), f"--authority={authority}"]
    done = subprocess.run(
        cluster.machine.enter(*command, f"--for-s={for_s}"),
        input=b"\n".join(map(a_question, range(QUESTIONS))),
        stdout=subprocess.PIPE,
        check=True,
        timeout=for_s + 60,
        env=os.environ | FROM_THIS_TREE,
    )
    if server is not None:
        server.stop()
    print(f"  {what:40} {float(done.stdout):12.0f}", flush=True)
    return float(done.stdout)


def a_question(number: int) -> bytes:
    pod = a_pod(number)
    pod["spec"] = {key: value for key, value in pod["spec"].items() if key not in ("nodeName", "schedulerName")}
    pod["metadata"] = {key: pod["metadata"][key] for key in ("name", "namespace", "labels", "ownerReferences")}
    request = {
        "uid": f"{number:08}-0000-4000-8000-000000000000",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": pod["metadata"]["namespace"],
        "operation": "CREATE",
        "userInfo": {"username": "system:serviceaccount:kube-system:job-controller", "groups": ["system:masters"]},
        "object": {"apiVersion": "v1", "kind": "Pod", "metadata": pod["metadata"], "spec": pod["spec"]},
        "oldObject": None,
        "dryRun": False,
    }
    return msgspec.json.encode({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})


if __name__ == "__main__":
    main()
