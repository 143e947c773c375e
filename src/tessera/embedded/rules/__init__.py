"""CEL, the language in which schemas, policies and webhooks say what must hold.

Our own, because of the libraries on PyPI only Google's knows optional values, at 50 MB, and none can type an object by
its OpenAPI schema or has Kubernetes' functions: what is missing is as much as the language itself. A rule is read once
and becomes nested closures over plain JSON values, which need not be converted, so deciding takes microseconds.

A rule that cannot be read, or that makes no sense by its types, is broken: it is refused when it is written. One that
cannot be decided for the value at hand has failed. What is missing is an error, and `&&` and `||` look past one.
"""

from tessera.embedded.rules.mistakes import RuleBroken, RuleFailed
from tessera.embedded.rules.program import Program, compile_rule, told_by
from tessera.embedded.rules.validating import broken_rules, rule_violations

__all__ = ["Program", "RuleBroken", "RuleFailed", "broken_rules", "compile_rule", "rule_violations", "told_by"]
