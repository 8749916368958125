"""
End a session whose model does nothing but repeat refused calls.
"""

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Final

from guardrails.core.state import SessionState, low
from guardrails.core.tools.tool import Tool
from guardrails.core.values.schema import Ge
from guardrails.core.values.types import Denial, ToolCall
from guardrails.core.words import FINISH, counted

from .base import Codes, Event, Facts, Guard, guard


MOST_REFUSED: Final = 10
"""Turns in a row of nothing but refusals, of whatever calls, after which a session is over."""
REMEMBERED: Final = 16
"""Refused signatures that are kept."""

Strikes = Sequence[Any]
"""(turns in a row of refusals only, those of them with a strike, strikes of this turn, refusals of this turn, refused signatures)"""
NONE: Final[Strikes] = (0, 0, 0, 0, [])


@guard
class Denials(Guard):
    """
    End the session after *max_turns_in_a_row* turns in which every call was refused, and at least one had been refused before.

    Only the refusal of a call that was refused before is a strike; calls of one turn do not know of each other's refusals. A call
    that runs forgets the turns.
    """

    codes: ClassVar[Codes] = {"denials.max_turns_in_a_row": ("limit", "used")}
    events: ClassVar[tuple[str, ...]] = ("refusal", "turn", "extend")
    ends_by_calls: ClassVar[bool] = False
    tool_settings: ClassVar[tuple[str, ...] | None] = ()

    max_turns_in_a_row: Annotated[int, Ge(1)] | None = 3
    """Turns in which every call was refused."""

    def applies(self, tool: Tool) -> bool:
        return self.max_turns_in_a_row is not None

    def admit(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Any:
        return mine if mine is None or not (mine[0] or mine[1]) else [0, 0, *mine[2:]]

    def spent(self, state: SessionState, mine: Any, facts: Facts) -> Denial | None:
        limit = self.max_turns_in_a_row
        if limit is None or mine is None or not facts.turn_over:
            return None
        refused, denied, strikes, present, _ = mine
        now = present > 0 and state.only_refused
        turns = denied + (now and strikes > 0)
        if turns < limit:
            turns, limit = refused + now, max(limit, MOST_REFUSED)
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

    def event(self, event: Event, state: SessionState, mine: Any, facts: Facts) -> Any:
        if event.name == "refusal":
            return _refused(mine or NONE, event.values["sig"]) if event.values["strike"] else mine
        if event.name == "extend" or mine is None:
            return None
        refused, denied, strikes, present, sigs = mine
        if present and state.only_refused:
            refused, denied = refused + 1, denied + (strikes > 0)
        return [refused, denied, 0, 0, sigs]


def _refused(mine: Strikes, sig: int | None) -> Strikes:
    refused, denied, strikes, present, sigs = mine
    key, known = low(sig), list(sigs)
    if key in known[len(known) - present :]:
        return mine
    if sig is not None and key in known[: len(known) - present]:
        strikes += 1
        known.remove(key)
    return [refused, denied, strikes, min(present + 1, REMEMBERED), [*known, key][-REMEMBERED:]]


def refused_turns(state: SessionState) -> int:
    """
    Returns how many turns in a row, the present one among them, brought nothing but refusals.
    """
    refused, _, _, present, _ = state.own.get(Denials.name) or NONE
    return int(refused + (present > 0 and state.only_refused))


def has_strikes(state: SessionState) -> bool:
    """
    Returns whether a refusal counts, of this turn or of those before it.
    """
    refused, _, _, present, _ = state.own.get(Denials.name) or NONE
    return bool(refused or present)
