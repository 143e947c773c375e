"""Generates what the package needs and the repository does not keep, whenever the package is built or installed.

Each script beside this one has a `generate` that writes files and says where they are. Hatchling takes one hook.
"""

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SCRIPTS = ("build_protocols.py", "build_schemas.py")


class GeneratedFiles(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        del version
        root = Path(self.root)
        for script in SCRIPTS:
            build_data["artifacts"] += runpy.run_path(str(root / script))["generate"](root)
