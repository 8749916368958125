"""
End a session whose model does nothing but repeat refused calls.
"""

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Final

from guardrails.core.refusals import counted, end
from guardrails.core.state import SessionState, low
from guardrails.core.values.schema import Ge

from .base import Codes, Denial, Event, Facts, Guard, Tool, guard


MOST_REFUSED: Final = 10
"""Turns in a row of nothing but refusals, of whatever calls, after which a session is over."""
REMEMBERED: Final = 16
"""Refused signatures that are kept."""

Strikes = Sequence[Any]
"""(calls that ran before the latest refusal, its turn, turns before that of refusals only, those of them with a strike, signatures that were
refused before it, those that were refused in it)"""
NONE: Final[Strikes] = (-1, -1, 0, 0, [], [])


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
        if mine is None or limit is None or mine[0] != state.seq or not facts.turn_over:
            return None
        _, _, refused, struck, *signatures = mine
        turns = struck + _strikes(*signatures)
        if turns < limit:
            turns, limit = refused + 1, max(limit, MOST_REFUSED)
        if turns < limit:
            return None
        in_a_row = counted(turns, "turn") if turns == 1 else f"{turns} turns in a row"
        return end("denials.max_turns_in_a_row", f"Every tool call of {in_a_row} was refused.", used=turns, limit=limit)

    def event(self, event: Event, state: SessionState, mine: Any, facts: Facts) -> Any:
        if event.name == "extend":
            return None
        return _refused(mine or NONE, event.values["sig"], state) if event.values["strike"] else mine


def _refused(mine: Strikes, sig: int | None, state: SessionState) -> Strikes:
    turn = state.present.mark
    ran, at, refused, struck, before, now = mine
    if ran != state.seq:
        refused = struck = 0
    elif at != turn:
        refused, struck = refused + 1, struck + _strikes(before, now)
    if at != turn:
        before, now = [*(key for key in before if key not in now), *now][-REMEMBERED:], []
    if sig is not None and low(sig) not in now:
        now = [*now, low(sig)][-REMEMBERED:]
    # A turn in which a call ran is none of refusals only.
    return [state.seq if state.only_refused else -1, turn, refused, struck, before, now]


def _strikes(before: Sequence[int], now: Sequence[int]) -> bool:
    """
    Returns whether a call of the turn *now* had been refused *before*.
    """
    return not set(before).isdisjoint(now)


def refused_turns(state: SessionState) -> int:
    """
    Returns how many turns in a row, the present one among them, brought nothing but refusals.
    """
    mine = state.own.get(Denials.name) or NONE
    return int(mine[2]) + 1 if mine[0] == state.seq else 0
