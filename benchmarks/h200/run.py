"""`python -m benchmarks.h200.run SECTION…`: measures, prints while it goes, and ends with a table for each section.

Sections are run one after the other and each stands alone, because the machine with the card is there for minutes.
"""

import argparse
import platform
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

from .bench import Bench
from .observers import Card
from .tables import render

SECTIONS = ("single", "pairs", "memory", "raw", "kill", "micro", "throughput", "embedded", "compute")
LIBRARY = Path(__file__).parents[2] / "build/native/libtessera.so"


def main() -> None:
    arguments = _arguments()
    if not arguments.library.exists():
        sys.exit(f"benchmarks.h200: {arguments.library} is missing; `make native` builds it")
    arguments.out.mkdir(parents=True, exist_ok=True)
    card = Card()
    card.watch()
    print(f"card {card.name()} {card.uuid()}, Python {platform.python_version()}", flush=True)
    tables: list[str] = []
    everything: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="h200.") as scratch:
        for section in arguments.sections:
            bench = Bench(
                section, arguments.out, Path(scratch), arguments.library.resolve(), card, arguments.quick,
                frozenset(arguments.only), everything,
            )  # fmt: skip
            rows = import_module(f".{section}", __package__).run(bench)
            tables.append(render(section, rows))
            print(tables[-1], flush=True)
            (arguments.out / "tables.md").write_text("\n".join(tables))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.h200.run", description=__doc__)
    parser.add_argument("sections", nargs="+", choices=SECTIONS, metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--quick", action="store_true", help="a quarter of the time, to see whether everything works")
    parser.add_argument(
        "--only", nargs="*", default=[], metavar="PART", help="parts of a section, by the names it prints"
    )
    parser.add_argument("--out", type=Path, default=Path("h200-results"), help="where JSON and tables go")
    parser.add_argument("--library", type=Path, default=LIBRARY)
    return parser.parse_args()


if __name__ == "__main__":
    main()
