"""
End a session whose model does nothing but repeat refused calls.
"""

from typing import Annotated, ClassVar, Final

from guardrails.core.guards.base import Codes, Guard, guard
from guardrails.core.state.state import SessionState
from guardrails.core.tools.tool import Tool
from guardrails.core.values.bounds import Ge
from guardrails.core.values.types import Denial

from .budget_words import FINISH, counted


MOST_REFUSED: Final = 10
"""Turns in a row of nothing but refusals, of any calls, that end a session."""


@guard
class Denials(Guard):
    """
    End the session after *max_turns_in_a_row* turns of nothing but refusals that repeated a refused call.

    Denied calls cost nothing, but a model that repeats them spends model money. The first refusal of a call is no
    strike: a model learns from it what is refused. Ten turns in a row of nothing but refusals end the session, repeated
    or not. All denials of one parallel turn are one strike. Denials that say `retryable: true`, and guard errors, are
    none. If the host tells no turns, the times of the calls tell them apart.
    """

    codes: ClassVar[Codes] = {"denials.max_turns_in_a_row": ("limit", "used")}
    tool_settings: ClassVar[tuple[str, ...] | None] = ()
    scope_settings: ClassVar[tuple[str, ...] | None] = ()

    max_turns_in_a_row: Annotated[int, Ge(1)] | None = 3

    def applies(self, tool: Tool) -> bool:
        return self.max_turns_in_a_row is not None

    def turn_refused(self, state: SessionState, now_ms: int) -> Denial | None:
        if self.max_turns_in_a_row is None:
            return None
        limit = self.max_turns_in_a_row
        present = state.turn_refused > 0 and state.only_refused
        turns = state.denied_turns + (present and state.turn_strikes > 0)
        if turns < limit:
            turns, limit = state.refused_turns + present, max(limit, MOST_REFUSED)
        if turns < limit:
            return None
        in_a_row = "" if turns == 1 else " in a row"
        return Denial(
            code="denials.max_turns_in_a_row",
            status="limit_reached",
            message=f"Every tool call of {counted(turns, 'turn')}{in_a_row} was refused. Stopping tool loop.",
            hint=FINISH,
            ends_session=True,
            values={"used": turns, "limit": limit},
        )
