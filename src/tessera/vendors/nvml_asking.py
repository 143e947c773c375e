"""How NVML is asked. It is loaded when it is first needed, so that there may be no driver where this is imported."""

import importlib
from collections.abc import Callable
from typing import Any

from tessera.errors import DiscoveryFailed


def import_nvml() -> Any:
    try:
        return importlib.import_module("pynvml")
    except ImportError:
        raise DiscoveryFailed("the Python package nvidia-ml-py is missing, expected it for NVIDIA cards") from None


def ask_nvml(nvml: Any, question: Callable[[], Any], otherwise: Any) -> Any:
    """An answer, or `otherwise` from a card or driver that does not know the question."""
    try:
        return question()
    except nvml.NVMLError:
        return otherwise


def text_of(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
