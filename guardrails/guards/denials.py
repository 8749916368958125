"""
End a session whose model does nothing but repeat refused calls.
"""

from typing import Annotated, ClassVar

from annotated_types import Ge

from ..state import SessionState
from ..types import Denial
from .base import Codes, Guard, guard
from .budget import FINISH, counted


@guard
class Denials(Guard):
    """
    End the session after *max_turns_in_a_row* turns in which every decided call was denied.

    Denied calls cost nothing, but a model that repeats them spends model money. All denials of one parallel turn are
    one strike; denials that say `retryable: true`, guard errors and a signature's first validation error are none.
    Turns are what `charge` and `begin_turn` say: a host that calls neither has one long turn, and this cap never acts.
    """

    codes: ClassVar[Codes] = {"denials.max_turns_in_a_row": ("limit", "used")}

    max_turns_in_a_row: Annotated[int, Ge(1)] | None = 3

    @property
    def active(self) -> bool:
        return self.max_turns_in_a_row is not None

    @property
    def calls_spend(self) -> tuple[str, ...]:
        return ()

    def turn_spent(self, state: SessionState, now_ms: int) -> Denial | None:
        if self.max_turns_in_a_row is None:
            return None
        turns = state.denied_turns + (1 if state.turn_admitted == 0 and state.turn_strikes else 0)
        if turns < self.max_turns_in_a_row:
            return None
        in_a_row = "" if turns == 1 else " in a row"
        return Denial(
            code="denials.max_turns_in_a_row",
            status="limit_reached",
            message=f"Every tool call of {counted(turns, 'turn')}{in_a_row} was refused. Stopping tool loop.",
            hint=FINISH,
            ends_session=True,
            values={"used": turns, "limit": self.max_turns_in_a_row},
        )
