"""The kinds of `gpu.scheduling/v1` and `compute.kpu.dev/v1alpha1`, as an API server is told of them.

They are YAML because that is what people read and apply. The Helm chart has copies, made by `make chart`; whoever runs
without it installs them from here.
"""

from collections.abc import Mapping
from importlib import resources
from typing import Any

import yaml


def definition_files() -> Mapping[str, str]:
    """The text of each file, by name."""
    return _definitions_in(__name__)


def load_definitions() -> tuple[dict[str, Any], ...]:
    """The CustomResourceDefinitions, ready to be applied."""
    return tuple(yaml.safe_load(text) for text in definition_files().values())


def load_local_definitions() -> tuple[dict[str, Any], ...]:
    """Those of others, which belong on our own engine only."""
    files = _definitions_in(f"{__name__}.local")
    return tuple(yaml.safe_load(text) for text in files.values())


def _definitions_in(package: str) -> dict[str, str]:
    files = sorted(resources.files(package).iterdir(), key=lambda file: file.name)
    return {file.name: file.read_text(encoding="utf-8") for file in files if file.name.endswith(".yaml")}
