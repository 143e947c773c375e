"""Asks an extender as kube-scheduler does: filter, prioritize, bind, one pod after the other, over one connection.

Reads one line of JSON with all node names and one for each pod, and prints one with the seconds of each verb. What
/filter said last is written to the file that `--keep` names.
"""

import argparse
import http.client
import json
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.extender_filter import check_half_refused


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("--verbs", type=int, choices=(1, 2, 3), default=3, help="filter, prioritize and bind, or less")
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args()
    names, *pods = map(json.loads, sys.stdin)
    load = Load(http.client.HTTPConnection(asked.host, asked.port), names)
    for pod in pods:
        load.filter(pod)
        best = load.prioritize(pod) if asked.verbs > 1 else ""
        if asked.verbs > 2:
            load.bind(pod, best)
    if asked.keep:
        asked.keep.write_bytes(load.last_filter)
    print(json.dumps(load.seconds))


class Load:
    def __init__(self, connection: http.client.HTTPConnection, names: list[str]) -> None:
        self._connection = connection
        self._names = names
        self.seconds: dict[str, list[float]] = {"filter": [], "prioritize": [], "bind": []}
        self.last_filter = b""

    def filter(self, pod: dict[str, Any]) -> None:
        self.last_filter = self._ask("filter", {"Pod": pod, "Nodes": None, "NodeNames": self._names})
        check_half_refused(self.last_filter)

    def prioritize(self, pod: dict[str, Any]) -> str:
        """The best of those that passed."""
        passed = json.loads(self.last_filter)["NodeNames"]
        scores = json.loads(self._ask("prioritize", {"Pod": pod, "Nodes": None, "NodeNames": passed}))
        return max(scores, key=lambda score: score["Score"])["Host"]

    def bind(self, pod: dict[str, Any], node: str) -> None:
        metadata = pod["metadata"]
        args = {"PodName": metadata["name"], "PodNamespace": metadata["namespace"], "PodUID": metadata["uid"]}
        answer = json.loads(self._ask("bind", {**args, "Node": node}))
        assert not answer["Error"], answer["Error"]

    def _ask(self, verb: str, args: dict[str, Any]) -> bytes:
        body = json.dumps(args).encode()
        began = time.perf_counter()
        self._connection.request("POST", f"/{verb}", body)
        answer = self._connection.getresponse().read()
        self.seconds[verb].append(time.perf_counter() - began)
        return answer


if __name__ == "__main__":
    main()
