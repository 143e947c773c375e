"""ValidatingAdmissionPolicies: what the server refuses, or warns of, by itself.

A policy does nothing until a binding puts it in force, for what both of them match.
"""

from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple

from tessera.embedded.admitting.matching import (
    VARIABLES,
    all_hold,
    compile_conditions,
    is_exempt,
    is_matched_by,
    namespace_of,
)
from tessera.embedded.admitting.registrations import (
    BINDINGS,
    POLICIES,
    BindingSpec,
    PolicySpec,
    ReadOnce,
    Validation,
    spec_of,
)
from tessera.embedded.admitting.requests import Reader, Request
from tessera.embedded.admitting.reviewing import variables_of
from tessera.embedded.documents import Frozen
from tessera.embedded.refusals import ApiRefusal, forbidden
from tessera.embedded.rules import Program, RuleBroken, RuleFailed, compile_rule, told_by
from tessera.embedded.rules.types import BOOL, DYN, STRING, Field, Type

_CODES = {
    "Unauthorized": HTTPStatus.UNAUTHORIZED,
    "Forbidden": HTTPStatus.FORBIDDEN,
    "Invalid": HTTPStatus.UNPROCESSABLE_ENTITY,
    "RequestEntityTooLarge": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
}


class Check(NamedTuple):
    """One validation, compiled."""

    said: Validation
    program: Program
    message_program: Program | None


class Policy(NamedTuple):
    """`broken` says why its expressions could not be compiled."""

    name: str
    spec: PolicySpec
    conditions: Sequence[Program] = ()
    variables: Mapping[str, Program] = {}
    checks: Sequence[Check] = ()
    broken: str = ""


class Binding(NamedTuple):
    name: str
    spec: BindingSpec


class Objection(NamedTuple):
    """What a policy has against a request; `is_failure` says that it could not be decided."""

    message: str
    reason: str = "Invalid"
    is_failure: bool = False


def read_policy(document: Frozen) -> Policy:
    name, spec = document["metadata"]["name"], spec_of(document, PolicySpec)
    try:
        return _compiled(name, spec)
    except RuleBroken as broken:
        return Policy(name, spec, broken=f"compilation failed: {broken}")


def _compiled(name: str, spec: PolicySpec) -> Policy:
    named: dict[str, Field] = {}
    known = {**VARIABLES, "namespaceObject": DYN, "variables": Type.with_fields(named)}
    variables: dict[str, Program] = {}
    for variable in spec.variables:  # each sees those before it
        variables[variable.name] = compile_rule(variable.expression, known)
        named[variable.name] = Field(variable.name, variables[variable.name].type)
    checks = [
        Check(
            said,
            compile_rule(said.expression, known, result=BOOL),
            compile_rule(said.message_expression, known, result=STRING) if said.message_expression else None,
        )
        for said in spec.validations
    ]
    return Policy(name, spec, compile_conditions(spec.match_conditions), variables, checks)


def read_binding(document: Frozen) -> Binding:
    return Binding(document["metadata"]["name"], spec_of(document, BindingSpec))


class _Variables(dict[str, Any]):
    """The variables of a policy, computed when first asked for."""

    def __init__(self, programs: Mapping[str, Program], known: Mapping[str, Any]) -> None:
        super().__init__()
        self._programs = programs
        self._known = known

    def __missing__(self, name: str) -> Any:
        try:
            value = self[name] = self._programs[name].evaluate({**self._known, "variables": self})
        except RuleFailed as why:
            raise RuleFailed(f'composited variable "{name}" fails to evaluate: {why}') from None
        return value


def objections(policy: Policy, request: Request, namespace: Frozen | None) -> Iterator[Objection]:
    """What cannot be decided is objected to, unless the policy says that failures are ignored."""
    for objection in _objections(policy, request, namespace):
        if not objection.is_failure or policy.spec.failure_policy == "Fail":
            yield objection


def _objections(policy: Policy, request: Request, namespace: Frozen | None) -> Iterator[Objection]:
    if policy.broken:
        yield Objection(policy.broken, is_failure=True)
        return
    known = {**variables_of(request), "namespaceObject": namespace}
    known["variables"] = _Variables(policy.variables, known)
    try:
        if not all_hold(policy.conditions, known):
            return
    except RuleFailed as why:
        yield Objection(str(why), is_failure=True)
        return
    for check in policy.checks:
        try:
            if check.program.evaluate(known) is not True:
                yield Objection(_message(check, known), check.said.reason)
        except RuleFailed as why:
            expression = check.said.expression.strip()
            yield Objection(f"expression '{expression}' resulted in error: {why}", is_failure=True)


def _message(check: Check, known: Mapping[str, Any]) -> str:
    plain = check.said.message.strip() or f"failed expression: {' '.join(check.said.expression.split())}"
    return told_by(check.message_program, known, plain)


class Policies:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._policies = ReadOnce(read_policy)
        self._bindings = ReadOnce(read_binding)

    def validate(self, request: Request) -> Sequence[str]:
        """Warnings; refuses with the first objection of a binding that denies."""
        warnings: list[str] = []
        for policy, binding in self._in_force(request):
            for objection in objections(policy, request, namespace_of(request, self._reader)):
                who = f"ValidatingAdmissionPolicy '{policy.name}' with binding '{binding.name}'"
                if "Warn" in binding.spec.validation_actions:
                    warnings.append(f"Validation failed for {who}: {objection.message}")
                if "Deny" in binding.spec.validation_actions:
                    raise _denial(request, f"{who} denied request: {objection.message}", objection.reason)
        return warnings

    def _in_force(self, request: Request) -> Iterator[tuple[Policy, Binding]]:
        if is_exempt(request):
            return
        bindings = self._bindings.all(self._reader.list(BINDINGS))
        policies = {policy.name: policy for policy in self._policies.all(self._reader.list(POLICIES))}
        for binding in bindings:
            policy = policies.get(binding.spec.policy_name)
            if policy is not None and self._is_about(policy, binding, request):
                yield policy, binding

    def _is_about(self, policy: Policy, binding: Binding, request: Request) -> bool:
        narrowed = binding.spec.match_resources
        return is_matched_by(policy.spec.match_constraints, request, self._reader, by_default=False) and (
            narrowed is None or is_matched_by(narrowed, request, self._reader, by_default=True)
        )


def _denial(request: Request, message: str, reason: str) -> ApiRefusal:
    said = forbidden(request.kind, request.name, message)
    code = _CODES.get(reason, HTTPStatus.UNPROCESSABLE_ENTITY)
    return ApiRefusal(code, reason, said.message, {**said.details, "causes": [{"message": message}]})
