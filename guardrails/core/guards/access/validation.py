"""
Refuse a call whose arguments do not fit the tool.
"""

from typing import ClassVar

from guardrails.core.arguments import advice
from guardrails.core.guards.base import Codes, Facts, Guard, Verdict, guard
from guardrails.core.state.state import SessionState
from guardrails.core.values.types import Denial, ToolCall


@guard
class Validation(Guard):
    """
    Turn what is wrong with a call's arguments into a `validation_error` that says how to go on.

    The check itself runs before every guard, at the boundary, since it also coerces what is signed.
    """

    codes: ClassVar[Codes] = {"validation.arguments": ()}

    def checks_fresh(self, tool: str, known: frozenset[str] | None) -> bool:
        return False

    def check(self, call: ToolCall, state: SessionState, facts: Facts) -> Verdict:
        if not call.problems:
            return None
        action, user_facing_hint = advice(call.problems, frozenset(facts.tool.ask_user))
        fix = (
            "Ask the user, then call the tool with the corrected arguments."
            if action == "ask_user"
            else "Correct the arguments and call the tool again."
        )
        return Denial(
            code="validation.arguments",
            status="validation_error",
            message=f"The arguments do not fit `{call.tool}`.",
            hint=fix,
            details={
                "errors": [{"field": problem.field, "message": problem.message} for problem in call.problems],
                "user_facing_hint": user_facing_hint,
                "retryable_after_correction": True,
                "next_action": action,
            },
        )
