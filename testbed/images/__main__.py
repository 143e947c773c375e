"""`python -m testbed.images`: lists the images there are recipes for, and writes them as files."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tessera.errors import TesseraError
from testbed.building import Programs
from testbed.images.cache import default_cache
from testbed.images.oci import Image, write_image
from testbed.images.recipes import busybox, coredns, kpu, pause, python, tessera

ROOT = Path(__file__).resolve().parents[2]
REFERENCES = {
    "busybox": busybox.REFERENCE,
    "coredns": coredns.REFERENCE,
    "kpu": kpu.REFERENCE,
    "pause": pause.REFERENCE,
    "python": python.REFERENCE,
    "tessera": tessera.REFERENCE,
}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    try:
        options.act(options)
    except TesseraError as error:
        print(f"testbed.images: {error}", file=sys.stderr)
        return 1
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m testbed.images", description="Make images without a registry.")
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    listing = verbs.add_parser("list", help="show the images and what they will be called")
    listing.set_defaults(act=_list)
    building = verbs.add_parser("build", help="write images as files for `ctr images import` or `docker load`")
    building.add_argument("names", nargs="+", choices=REFERENCES, metavar="NAME", help=", ".join(REFERENCES))
    building.add_argument("--output", type=Path, required=True, metavar="DIR", help="where NAME.tar is written")
    building.add_argument("--cache", type=Path, default=default_cache(), metavar="DIR", help="default: %(default)s")
    building.add_argument("--coredns", type=Path, metavar="FILE", help="the program; default: the testbed's own build")
    building.set_defaults(act=_build)
    return parser.parse_args(arguments)


def _list(_options: argparse.Namespace) -> None:
    for name, reference in REFERENCES.items():
        print(f"{name:8} {reference}")


def _build(options: argparse.Namespace) -> None:
    recipes: dict[str, Callable[[], Image]] = {
        "busybox": lambda: busybox.busybox_image(options.cache),
        "coredns": lambda: coredns.coredns_image(options.coredns or Programs()["coredns"]),
        "kpu": lambda: kpu.kpu_image(ROOT, options.cache),
        "pause": lambda: pause.pause_image(options.cache),
        "python": lambda: python.python_image(options.cache),
        "tessera": lambda: tessera.tessera_image(ROOT, options.cache),
    }
    for name in options.names:
        written = write_image(recipes[name](), options.output / f"{name}.tar", options.cache)
        size_mb = written.path.stat().st_size / 1_000_000
        print(f"{written.path}  {size_mb:.1f} MB  {written.reference}  {written.digest}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
