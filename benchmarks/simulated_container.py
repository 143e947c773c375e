"""A container with one simulated card, for benchmarks of the in-container library."""

import os
from pathlib import Path
from typing import NamedTuple

from tessera.vendors.loading import load_catalogue
from tessera.vendors.simulated import parse_plan, simulate
from tessera.vendors.simulated_driver import DIRECTORY_VARIABLE, write_cards

BUILT = Path(__file__).parents[1] / "build/native"


class Environments(NamedTuple):
    """Of a program on the card: without the library, and with it."""

    bare: dict[str, str]
    limited: dict[str, str]


def simulated_container(scratch: Path, *, memory_mib: int = 0, cores_percent: int = 0) -> Environments:
    devices = simulate("here", parse_plan("1xT4"), load_catalogue()).devices
    write_cards(scratch / "sim", devices)
    (scratch / "cards").mkdir()
    card = f"card {devices[0].uuid} memory_mib {memory_mib} cores_percent {cores_percent}"
    (scratch / "limits").write_text(f"version 1\n{card}\n")
    bare = os.environ | {DIRECTORY_VARIABLE: str(scratch / "sim"), "LD_LIBRARY_PATH": str(BUILT / "sim")}
    limited = bare | {
        "LD_PRELOAD": str(BUILT / "libtessera.so"),
        "TESSERA_LIMITS": str(scratch / "limits"),
        "TESSERA_REGION": str(scratch / "region"),
        "TESSERA_CARDS": str(scratch / "cards"),
    }
    return Environments(bare, limited)
