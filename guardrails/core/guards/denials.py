"""
End a session whose model does nothing but repeat refused calls.
"""

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Final

from guardrails.core.refusals import FINISH, counted
from guardrails.core.state import SessionState, low
from guardrails.core.values.schema import Ge

from .base import Codes, Denial, Event, Facts, Guard, Tool, guard


MOST_REFUSED: Final = 10
"""Turns in a row of nothing but refusals, of whatever calls, after which a session is over."""
REMEMBERED: Final = 16
"""Refused signatures that are kept."""

Strikes = Sequence[Any]
"""(turn of the latest refusal, calls that ran before it, turns before it of refusals only, those of them with a strike, strikes of its turn,
refusals of its turn, refused signatures)"""
NONE: Final[Strikes] = (-1, -1, 0, 0, 0, 0, [])


@guard
class Denials(Guard):
    """
    End the session after *max_turns_in_a_row* turns in which every call was refused, and at least one had been refused before.

    Only the refusal of a call that was refused before is a strike; calls of one turn do not know of each other's refusals. A call
    that runs forgets the turns.
    """

    codes: ClassVar[Codes] = {"denials.max_turns_in_a_row": ("limit", "used")}
    events: ClassVar[tuple[str, ...]] = ("refusal", "extend")
    ends_by_calls: ClassVar[bool] = False
    ends_by_turns: ClassVar[bool] = True
    tool_settings: ClassVar[tuple[str, ...] | None] = ()

    max_turns_in_a_row: Annotated[int, Ge(1)] | None = 3
    """Turns in which every call was refused."""

    def applies(self, tool: Tool) -> bool:
        return self.max_turns_in_a_row is not None

    def spent(self, state: SessionState, mine: Any, facts: Facts) -> Denial | None:
        limit = self.max_turns_in_a_row
        # A call that ran since forgets the turns.
        if mine is None or limit is None or mine[1] != state.seq or not facts.turn_over:
            return None
        turns = mine[3] + (mine[4] > 0)
        if turns < limit:
            turns, limit = mine[2] + 1, max(limit, MOST_REFUSED)
        if turns < limit:
            return None
        in_a_row, values = "" if turns == 1 else " in a row", {"used": turns, "limit": limit}
        message = f"Every tool call of {counted(turns, 'turn')}{in_a_row} was refused. Stopping tool loop."
        code = "denials.max_turns_in_a_row"
        return Denial(code, message, FINISH, "limit_reached", ends_session=True, values=values)

    def event(self, event: Event, state: SessionState, mine: Any, facts: Facts) -> Any:
        if event.name == "extend":
            return None
        return _refused(mine or NONE, event.values["sig"], state) if event.values["strike"] else mine


def _refused(mine: Strikes, sig: int | None, state: SessionState) -> Strikes:
    turn = state.present.number + state.present.implied
    at, ran, refused, denied, strikes, present, sigs = mine
    if ran != state.seq:
        refused = denied = 0
    elif at != turn:
        refused, denied = refused + 1, denied + (strikes > 0)
    if at != turn:
        strikes = present = 0
    key, known = low(sig), list(sigs)
    if key in known[len(known) - present :]:
        return mine
    if sig is not None and key in known[: len(known) - present]:
        strikes += 1
        known.remove(key)
    # A turn in which a call ran is none of refusals only.
    ran = state.seq if state.only_refused else -1
    return [turn, ran, refused, denied, strikes, min(present + 1, REMEMBERED), [*known, key][-REMEMBERED:]]


def refused_turns(state: SessionState) -> int:
    """
    Returns how many turns in a row, the present one among them, brought nothing but refusals.
    """
    mine = state.own.get(Denials.name) or NONE
    return int(mine[2]) + 1 if mine[1] == state.seq else 0
