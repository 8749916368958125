"""
Refuse the calls of a tool that somebody has to look at first.
"""

from typing import Any, ClassVar

from guardrails.core.state import SessionState
from guardrails.core.tools.tool import Tool
from guardrails.core.values.types import Denial, ToolCall

from .base import Codes, Facts, Guard, Verdict, guard


@guard
class Held(Guard):
    """
    Deny every call of a tool that is declared as held, with the reason that its declaration gives.

    This guard is in every chain for a held tool. A policy file has no settings for it.
    """

    codes: ClassVar[Codes] = {"held.tool": ("tool", "reason")}
    scope_settings: ClassVar[tuple[str, ...] | None] = ()

    @classmethod
    def implied(cls, tool: Tool) -> Guard | None:
        return cls() if tool.held else None

    def applies(self, tool: Tool) -> bool:
        return bool(tool.held)

    def check(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Verdict:
        reason, shown = facts.tool.held, call.tool[:64]
        return Denial(
            code="held.tool",
            message=f"`{shown}` is held: {reason}. It was not called.",
            hint="Tell the user, who has to look at it and allow it. Go on without this tool.",
            details={"error_type": "permission", "user_facing_hint": f"`{shown}` is held: {reason}."},
            values={"tool": shown, "reason": reason},
        )
