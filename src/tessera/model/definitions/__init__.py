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
    files = sorted(resources.files(__name__).iterdir(), key=lambda file: file.name)
    return {file.name: file.read_text(encoding="utf-8") for file in files if file.name.endswith(".yaml")}


def load_definitions() -> tuple[dict[str, Any], ...]:
    """The CustomResourceDefinitions, ready to be applied."""
    return tuple(yaml.safe_load(text) for text in definition_files().values())
