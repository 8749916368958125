"""
Cap consecutive calls of one tool.
"""

from typing import Annotated, ClassVar

from guardrails.core.guards.base import Codes, Facts, Guard, Verdict, guard
from guardrails.core.state.state import SessionState
from guardrails.core.tools.tool import Tool
from guardrails.core.values.bounds import Ge
from guardrails.core.values.types import Denial, ToolCall


@guard
class Streak(Guard):
    """
    Deny a tool that was just called *max_same* times, or failed *max_failures* times, in a row.

    Another tool in between resets both; a denied call does not extend them. Polling tools may be called for ever.
    """

    codes: ClassVar[Codes] = {
        "streak.max_same": ("limit", "used"),
        "streak.max_failures": ("limit", "used"),
    }
    scope_settings: ClassVar[tuple[str, ...] | None] = ()

    max_same: Annotated[int, Ge(1)] | None = None
    max_failures: Annotated[int, Ge(1)] | None = None

    def applies(self, tool: Tool) -> bool:
        return self.max_same is not None or self.max_failures is not None

    def check(self, call: ToolCall, state: SessionState, facts: Facts) -> Verdict:
        if call.tool != state.streak_tool or (facts.failed is not None and facts.failed.retried):
            # Another attempt of the library's is no further call of the model.
            return None
        if self.max_same is not None and state.streak >= self.max_same and facts.tool.repeats != "allow":
            return Denial(
                code="streak.max_same",
                message=f"`{call.tool}` was called {state.streak} times in a row (limit {self.max_same}).",
                hint="Use what you have, or call another tool.",
                values={"used": state.streak, "limit": self.max_same},
            )
        if self.max_failures is not None and state.streak_failures >= self.max_failures:
            return Denial(
                code="streak.max_failures",
                message=f"`{call.tool}` failed {state.streak_failures} times in a row (limit {self.max_failures}).",
                hint="Do something else first: another tool, or tell the user what does not work.",
                values={"used": state.streak_failures, "limit": self.max_failures},
            )
        return None
