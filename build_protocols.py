"""Generates the Python modules of our protocols from their .proto files."""

from pathlib import Path

SOURCES = Path("src")
PROTOCOLS = Path("tessera/node/protocols")


def generate(root: Path) -> list[str]:
    from grpc_tools import protoc  # of the build environment: whoever reads metadata only does without it

    sources = root / SOURCES
    protocols = sorted((sources / PROTOCOLS).glob("*.proto"))
    flags = [f"--proto_path={sources}", f"--python_out={sources}", f"--pyi_out={sources}"]
    if protoc.main(["protoc", *flags, *map(str, protocols)]):
        raise SystemExit(f"{PROTOCOLS}: the protocols cannot be generated; protoc has said why")
    return [f"{SOURCES / PROTOCOLS}/*_pb2.py", f"{SOURCES / PROTOCOLS}/*_pb2.pyi"]
