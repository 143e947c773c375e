"""What can be wrong with a rule: it is no rule, or it cannot be decided."""


class RuleBroken(Exception):
    """The text is no rule. `at` counts characters from its start."""

    def __init__(self, what: str, at: int = 0) -> None:
        super().__init__(what)
        self.at = at

    def placed_in(self, text: str) -> "RuleBroken":
        """The same with line and column, in the form in which people know it from Kubernetes."""
        before = text[: self.at]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        return RuleBroken(f"ERROR: <input>:{line}:{column}: {self}", self.at)


class RuleFailed(Exception):
    """The rule cannot be decided for these values."""
