"""
Cap consecutive calls of one tool, and consecutive failures.
"""

from typing import Annotated, Any, ClassVar

from guardrails.core.values.schema import Ge, Le

from .base import Codes, Denial, Facts, Guard, SessionState, Tool, ToolCall, Verdict, guard


@guard
class Streak(Guard):
    """
    Deny a tool that was just called *max_same* times in a row, or failed *max_failures* times in a row.

    Another tool in between resets both; a denied call changes neither. *max_same* is not for a tool with `repeats: allow`.
    """

    codes: ClassVar[Codes] = {"streak.max_same": ("limit", "used"), "streak.max_failures": ("limit", "used")}

    max_same: Annotated[int, Ge(1), Le(200)] | None = None
    """Calls of one tool in a row."""
    max_failures: Annotated[int, Ge(1), Le(200)] | None = None
    """Failures of one tool in a row."""

    @property
    def remembers(self) -> int:
        return max(self.max_same or 0, self.max_failures or 0)

    def applies(self, tool: Tool) -> bool:
        return self.remembers > 0

    def check(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Verdict:
        calls = failures = worked = 0
        for one in reversed(state.window):
            worked += one.status == "ok"
            if one.tool != call.tool or (worked and self.max_same is None):
                break
            # One that was given up tells nothing.
            calls += one.status != "expired"
            failures += one.status == "error" and not worked
        if self.max_same is not None and calls >= self.max_same and facts.tool.repeats != "allow":
            name, used, limit, what = "max_same", calls, self.max_same, "was called"
            hint = "Use what you have, or call another tool."
        elif self.max_failures is not None and failures >= self.max_failures:
            name, used, limit, what = "max_failures", failures, self.max_failures, "failed"
            hint = "Do something else first: another tool, or tell the user what does not work."
        else:
            return None
        message = f"`{call.tool}` {what} {used} times in a row (limit {limit})."
        return Denial(f"streak.{name}", message, hint, values={"used": used, "limit": limit})
