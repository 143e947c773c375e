"""Admission policies: what the API server refuses by itself, so that nothing of ours must be up for it."""

from collections.abc import Mapping, Sequence
from typing import Any

Document = dict[str, Any]
_API = "admissionregistration.k8s.io/v1"


def policy_in_force(
    name: str,
    *,
    writes: Sequence[Document],
    concerns: tuple[str, str],
    variables: Mapping[str, str],
    validations: Sequence[Document],
) -> tuple[Document, Document]:
    """The policy, and the binding without which it does nothing.

    `concerns` is a name and a CEL expression: whose writes are looked at. `variables` are expressions by name.
    """
    condition, expression = concerns
    policy: Document = {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"matchPolicy": "Equivalent", "resourceRules": list(writes)},
            "matchConditions": [{"name": condition, "expression": expression}],
            "variables": [{"name": key, "expression": value} for key, value in variables.items()],
            "validations": list(validations),
        },
    }
    binding: Document = {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }
    return policy, binding
