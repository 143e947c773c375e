"""Generates the Python modules of our protocols whenever the package is built or installed."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCES = Path("src")
PROTOCOLS = Path("tessera/node/protocols")


class ProtocolsHook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        del version
        from grpc_tools import protoc  # of the build environment: whoever reads metadata only does without it

        sources = Path(self.root) / SOURCES
        protocols = sorted((sources / PROTOCOLS).glob("*.proto"))
        flags = [f"--proto_path={sources}", f"--python_out={sources}", f"--pyi_out={sources}"]
        if protoc.main(["protoc", *flags, *map(str, protocols)]):
            raise SystemExit(f"{PROTOCOLS}: the protocols cannot be generated; protoc has said why")
        build_data["artifacts"] += [f"{SOURCES / PROTOCOLS}/*_pb2.py", f"{SOURCES / PROTOCOLS}/*_pb2.pyi"]
