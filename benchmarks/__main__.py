"""All benchmarks, in the order of docs/benchmarks.md. `python -m benchmarks decisions` runs one.

Those on a real cluster want root and Go, and run when they are named or by `make bench-cluster`. Each runs in a process
of its own, so that what one leaves in memory does not flatter the next.
"""

import os
import subprocess
import sys

ALL = (
    "decisions",
    "memory",
    "codecs",
    "kube_informer",
    "extender_filter",
    "density",
    "drift",
    "embedded_store",
    "embedded_api",
    "embedded_start",
    "mpi_start",
    "mpijob_sdk",
    "native_memory",
    "native_launch",
    "native_share",
    "tensors",
    "tensors_shared",
)
ON_A_CLUSTER = (
    "testbed_start",
    "kube_cluster",
    "filter_cluster",
    "bind_rate",
    "bind_to_running",
    "claims",
    "admission",
    "openb_cluster",
    "idle",
)

if __name__ == "__main__":
    names = sys.argv[1:] or list(ALL)
    names = list(ON_A_CLUSTER) if names == ["cluster"] else names
    unknown = [name for name in names if name not in (*ALL, *ON_A_CLUSTER)]
    if unknown:
        sys.exit(f'benchmarks: "{unknown[0]}" is unknown, expected cluster, {", ".join((*ALL, *ON_A_CLUSTER))}')
    environment = os.environ if len(sys.argv) > 1 else {"TESSERA_SKIP_DENSITY": "1", **os.environ}
    for name in names:
        print(f"\n== {name}", flush=True)
        done = subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], env=environment, check=False)
        if done.returncode:
            sys.exit(done.returncode)
