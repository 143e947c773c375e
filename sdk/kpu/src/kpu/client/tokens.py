"""Where the token of a Compute is found: in the Secret that the operator makes, unless the Compute's own `env` says so.

The server takes a variable of the user before ours, and a file before a variable. Pure.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from kpu.client.models import KpuV1alpha1Compute
from kpu.errors import Unauthenticated

TOKEN, TOKEN_FILE = "KPU_TOKEN", "KPU_TOKEN_FILE"
KEY = "token"


class InSecret(NamedTuple):
    name: str
    key: str


def find_token(compute: KpuV1alpha1Compute) -> str | InSecret:
    """The token itself, or the Secret that has it. Unauthenticated for one that only the pod can know."""
    variables: dict[str, Mapping[str, Any]] = {one["name"]: one for one in compute.spec.env or ()}
    if TOKEN_FILE in variables:
        raise _hidden(compute, TOKEN_FILE)
    told = variables.get(TOKEN)
    if told is None:
        return InSecret(f"{compute.metadata.name}-token", KEY)
    source: Mapping[str, Any] = told.get("valueFrom") or {}
    if reference := source.get("secretKeyRef"):
        return InSecret(reference["name"], reference["key"])
    value: str = told.get("value") or ""
    if source or _refers_to_others(value):
        raise _hidden(compute, TOKEN)
    return value.replace("$$", "$")


def _refers_to_others(value: str) -> bool:
    """`$(NAME)` stands for another variable of the pod, and `$$` for a dollar sign."""
    return "$(" in value.replace("$$", "")


def _hidden(compute: KpuV1alpha1Compute, variable: str) -> Unauthenticated:
    return Unauthenticated(
        f"Compute {compute.metadata.namespace}/{compute.metadata.name} has a token of its own, by {variable} in env, "
        f"that only its pod can know; give {TOKEN} as plain text or by secretKeyRef, or connect with "
        "TensorClient(host, port, token=...)"
    )
