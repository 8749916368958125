"""
Cap consecutive calls of one tool, and consecutive failures.
"""

from typing import Annotated, Any, ClassVar

from guardrails.core.state import SessionState
from guardrails.core.tools.tool import Tool
from guardrails.core.values.schema import Ge
from guardrails.core.values.types import Denial, Outcome, ToolCall

from .base import Codes, Event, Facts, Guard, Verdict, guard


@guard
class Streak(Guard):
    """
    Deny a tool that was just called *max_same* times in a row, or failed *max_failures* times in a row.

    Another tool in between resets both; a denied call changes neither. A polling tool may be called on and on.
    """

    codes: ClassVar[Codes] = {"streak.max_same": ("limit", "used"), "streak.max_failures": ("limit", "used")}
    events: ClassVar[tuple[str, ...]] = ("withdraw",)

    max_same: Annotated[int, Ge(1)] | None = None
    """Calls of one tool in a row."""
    max_failures: Annotated[int, Ge(1)] | None = None
    """Failures of one tool in a row."""

    def applies(self, tool: Tool) -> bool:
        return self.max_same is not None or self.max_failures is not None

    def check(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Verdict:
        if mine is None or mine[0] != call.tool:
            return None
        _, calls, failures = mine
        if self.max_same is not None and calls >= self.max_same and facts.tool.repeats != "allow":
            return Denial(
                code="streak.max_same",
                message=f"`{call.tool}` was called {calls} times in a row (limit {self.max_same}).",
                hint="Use what you have, or call another tool.",
                values={"used": calls, "limit": self.max_same},
            )
        if self.max_failures is not None and failures >= self.max_failures:
            return Denial(
                code="streak.max_failures",
                message=f"`{call.tool}` failed {failures} times in a row (limit {self.max_failures}).",
                hint="Do something else first: another tool, or tell the user what does not work.",
                values={"used": failures, "limit": self.max_failures},
            )
        return None

    def admit(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Any:
        if mine is None or mine[0] != call.tool:
            return [call.tool, 1, 0]
        return [call.tool, mine[1] + 1, mine[2]]

    def settle(self, call: ToolCall, outcome: Outcome, state: SessionState, mine: Any, facts: Facts) -> Any:
        # A call from before the streak says nothing of it, though it be of the same tool.
        if facts.late or mine is None or facts.seq <= state.seq - mine[1]:
            return mine
        tool, calls, failures = mine
        failures = 0 if outcome.error_type is None else failures + 1
        return mine if failures == mine[2] else [tool, calls, failures]

    def event(self, event: Event, state: SessionState, mine: Any, facts: Facts) -> Any:
        if mine is None or mine[0] != event.values["tool"] or event.values["seq"] <= state.seq - mine[1]:
            return mine
        return [mine[0], max(0, mine[1] - 1), mine[2]]
