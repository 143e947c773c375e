"""What the in-container library adds to a launch, in front of a driver that does nothing.

Three programs take turns: without the library, with it and no share to keep to, and with a share. The best turn of each
counts, because whatever else the machine does only adds to it.
"""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

BUILT = Path(__file__).parents[1] / "build/native"
TURNS = 8
SHARE_PERCENT = 50
MOST_NS = {"no share": 10, "a share": 100}
HAMI_CORE_NS = {"no share": "20", "a share": "24 to 27"}
"""Added to the same kind of driver, where HAMi-core was measured."""


def main() -> None:
    program, library = BUILT / "probe/launches", BUILT / "libtessera.so"
    if not program.exists() or not library.exists():
        sys.exit("benchmarks.native_launch: the C libraries are not built; `make native` does it")
    with TemporaryDirectory() as scratch:
        kinds = _environments(Path(scratch), library)
        laps = [{kind: _lap(program, environment) for kind, environment in kinds.items()} for _ in range(TURNS)]
    best = {kind: min(lap[kind] for lap in laps) for kind in kinds}
    print(f"  a launch, driver alone        {best['bare']:6.1f} ns")
    for kind, most in MOST_NS.items():
        added = best[kind] - best["bare"]
        print(f"  added with {kind:<18} {added:6.1f} ns  (wanted below {most}; HAMi-core {HAMI_CORE_NS[kind]})")


def _environments(scratch: Path, library: Path) -> dict[str, dict[str, str]]:
    (scratch / "cards").mkdir()
    bare = os.environ | {"LD_LIBRARY_PATH": str(BUILT / "probe/stub")}
    loaded = bare | {
        "LD_PRELOAD": str(library),
        "TESSERA_REGION": str(scratch / "region"),
        "TESSERA_CARDS": str(scratch / "cards"),
    }
    return {"bare": bare, "no share": loaded, "a share": loaded | {"CUDA_DEVICE_SM_LIMIT": str(SHARE_PERCENT)}}


def _lap(program: Path, environment: dict[str, str]) -> float:
    command = [str(program), "5", "500000"]
    return float(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    main()
