"""Our own package and what it needs at run time, as they would be installed: from wheels, pinned and hashed.

uv is handed the index that pip uses, at run time and unseen, as in the Makefile. What was installed once for the same
requirements, and built once from the same sources, is used again, so the network is needed the first time only.
"""

import hashlib
import os
import shutil
import sys
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from testbed.images.cache import make_once
from testbed.images.digests import file_digest
from testbed.images.errors import ImageFailed
from testbed.images.oci import machine_architecture
from testbed.images.programs import run

REQUIREMENTS = "requirements/runtime.txt"
PROJECT_FILES = ("LICENSE", "README.md", "build_hook.py", "build_protocols.py", "build_schemas.py", "pyproject.toml")
PACKAGE = "src/tessera"


def runtime_dependencies(source: Path, python_version: str, cache: Path) -> Path:
    """A folder with the packages of `requirements/runtime.txt` for this version of Python."""
    requirements = source / REQUIREMENTS
    key = _key([file_digest(_existing(requirements)), python_version, machine_architecture()])
    return make_once(
        cache / "dependencies" / key, lambda scratch: _install(source, requirements, python_version, scratch)
    )


def own_package(source: Path, cache: Path) -> Path:
    """A folder with our package as its wheel has it, built from the sources as they are now."""
    files = [_existing(source / name) for name in PROJECT_FILES]
    files += sorted(_sources(_existing(source / PACKAGE)))
    key = _key(f"{file.relative_to(source)} {file_digest(file)}" for file in files)
    return make_once(cache / "packages" / key, lambda scratch: _build(source, scratch))


def _key(parts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _existing(path: Path) -> Path:
    if not path.exists():
        raise ImageFailed(f"{path}: does not exist, expected it in the sources of Tessera; give their root")
    return path


def _sources(package: Path) -> Iterator[Path]:
    return (path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def _install(source: Path, requirements: Path, python_version: str, folder: Path) -> None:
    uv = shutil.which("uv") or source / ".uv/bin/uv"
    run(
        [uv, "pip", "install", "--target", folder, "--python", sys.executable, "--python-version", python_version,
         "--only-binary", ":all:", "--require-hashes", "--no-deps", "-r", requirements],
        to=f"install {requirements}",
        env=os.environ | _index(),
    )  # fmt: skip
    # uv locks the folder with a file of its own; the programs name an interpreter that the image does not have.
    (folder / ".lock").unlink(missing_ok=True)
    shutil.rmtree(folder / "bin", ignore_errors=True)


def _index() -> dict[str, str]:
    if os.environ.get("UV_DEFAULT_INDEX") or os.environ.get("UV_INDEX_URL"):
        return {}
    index = os.environ.get("PIP_INDEX_URL") or _index_of_pip()
    return {"UV_DEFAULT_INDEX": index} if index else {}


def _index_of_pip() -> str:
    try:
        return run(["python3", "-m", "pip", "config", "get", "global.index-url"], to="ask pip for its index").strip()
    except ImageFailed:
        return ""


def _build(source: Path, folder: Path) -> None:
    wheels = folder.with_suffix(".wheel")
    try:
        run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", wheels], to="build our wheel", cwd=source)
        (wheel,) = wheels.glob("*.whl")
        with zipfile.ZipFile(wheel) as content:
            content.extractall(folder)
    finally:
        shutil.rmtree(wheels, ignore_errors=True)
