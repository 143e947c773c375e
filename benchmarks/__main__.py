"""All benchmarks, in the order of docs/benchmarks.md. `python -m benchmarks decisions` runs one."""

import os
import sys

from benchmarks import codecs, decisions, density, memory

ALL = {"decisions": decisions.main, "memory": memory.main, "codecs": codecs.main, "density": density.main}

if __name__ == "__main__":
    names = sys.argv[1:]
    if not names:
        names = list(ALL)
        os.environ.setdefault("TESSERA_SKIP_DENSITY", "1")  # its trace is no part of the repository
    unknown = [name for name in names if name not in ALL]
    if unknown:
        sys.exit(f'benchmarks: "{unknown[0]}" is unknown, expected {", ".join(ALL)}')
    for name in names:
        print(f"\n== {name}", flush=True)
        ALL[name]()
