"""
Refuse a call whose arguments do not fit the tool.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from guardrails.core.arguments import advice, only_user
from guardrails.core.retries.decision import Stakes
from guardrails.core.retries.model import RetryModel
from guardrails.core.retries.shrinkage import ENOUGH, times
from guardrails.core.state import SessionState
from guardrails.core.values.types import INVALID, Denial, NextAction, ToolCall

from .base import Codes, Facts, Guard, Verdict, guard


MOSTLY: Final = 0.5
"""Above it a call that misses something is more often corrected than not."""


@guard
class Validation(Guard):
    """
    Turn what is wrong with a call's arguments into a `validation_error` that says how to go on.

    The check itself runs before every guard, at the boundary, since it also coerces what is signed. With a model of the
    `retryable` guard, its records decide whether the user is asked: how often such refused calls of the tool were
    corrected.
    """

    codes: ClassVar[Codes] = {"validation.arguments": ()}
    scope_settings: ClassVar[tuple[str, ...] | None] = ()

    def checks_fresh(self, tool: str, known: frozenset[str] | None) -> bool:
        return False

    def check(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Verdict:
        if not call.problems:
            return None
        asked = frozenset(facts.tool.ask_user)
        action, user_facing_hint = advice(call.problems, asked)
        share = _corrected(call.tool, facts.models) if facts.models else None
        if share is not None:
            action, user_facing_hint = _learned(call, asked, share, (action, user_facing_hint))
        fix = (
            "Take what is missing from the conversation, else ask the user; then call the tool again."
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


def _corrected(tool: str, models: Mapping[str, RetryModel]) -> float | None:
    """
    Returns how often refused calls of *tool* were corrected, by the model that has seen most of them. Returns None if
    they are too few to say.
    """
    model = max(models.values(), key=lambda one: one.corrections.seen(tool, INVALID))
    return model.correction(tool, INVALID) if model.corrections.seen(tool, INVALID) >= ENOUGH else None


def _learned(
    call: ToolCall, asked: frozenset[str], share: float, usual: tuple[NextAction, str]
) -> tuple[NextAction, str]:
    """
    Returns the *usual* advice, unless the *share* of such calls that were corrected says otherwise. The user is asked
    if the share is too small to pay, and need not be asked if it is large. A field in *asked*, which only the user can
    know, is asked for anyway.
    """
    action, _ = usual
    stakes = Stakes()
    if action == "fix_arguments" and share <= stakes.retry_cost + stakes.fix_cost:
        return (
            "ask_user",
            f"Ask the user before the next try: refused calls of `{call.tool}` are corrected {times(share)}.",
        )
    if action == "ask_user" and share > MOSTLY and not only_user(call.problems, asked):
        return "fix_arguments", (
            f"Take what is missing from the conversation and call again: refused calls of `{call.tool}` are corrected "
            f"{times(share)}. Ask the user only if it is not there; do not guess."
        )
    return usual
