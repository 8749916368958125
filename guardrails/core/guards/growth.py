"""
A fuse against a session that grows too fast: calls, model requests, tokens.
"""

from typing import Annotated, Any, ClassVar, Final

from guardrails.core.state import SessionState
from guardrails.core.tools.tool import Tool
from guardrails.core.values.schema import Gt
from guardrails.core.values.types import Denial, ToolCall
from guardrails.core.words import FINISH, counted

from .base import Codes, Event, Facts, Guard, Verdict, guard
from .rate import DAY_MS, gcra, level_of


BLOWN: Final = -1
CALLS, REQUESTS, TOKENS = range(3)
CAPS: Final = (
    ("max_calls_per_second", 1_000, "call"),
    ("max_requests_per_second", 1_000, "model request"),
    ("max_tokens_per_minute", 60_000, "token"),
)
"""By place, each cap: its setting, its milliseconds, and what it counts."""


@guard
class Growth(Guard):
    """
    End a session, and all of its family, that makes too many calls or requests a second, or uses too many tokens a minute.

    Requests count when they start, failed ones too. It remembers a level of each; a blown fuse stays so until `extend`.
    """

    codes: ClassVar[Codes] = {f"growth.{name}": ("limit",) for name, *_ in CAPS}
    family: ClassVar[bool] = True
    events: ClassVar[tuple[str, ...]] = ("request", "charge", "extend")
    ends_by_calls: ClassVar[bool] = False
    tool_settings: ClassVar[tuple[str, ...] | None] = ()

    max_calls_per_second: Annotated[int, Gt(0)] | None = None
    """Tool calls that start in a second."""
    max_requests_per_second: Annotated[int, Gt(0)] | None = None
    """Model requests that start in a second."""
    max_tokens_per_minute: Annotated[int, Gt(0)] | None = None
    """Tokens of model responses."""

    def applies(self, tool: Tool) -> bool:
        return any(getattr(self, name) for name, *_ in CAPS)

    def check(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Verdict:
        if mine is None:
            return None
        limit = self.max_calls_per_second
        # The same as by `gcra`, with nothing made.
        if limit is not None and (limit - 1) * 1_000 < mine[CALLS] - facts.now_ms * limit < DAY_MS * limit:
            return self._blown(CALLS)
        return self.spent(state, mine, facts) if BLOWN in mine else None

    def admit(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Any:
        limit = self.max_calls_per_second
        if limit is None:
            return mine
        calls, requests, tokens = mine or (0, 0, 0)
        now = facts.now_ms * limit
        return [(calls if now < calls < now + DAY_MS * limit else now) + 1_000, requests, tokens]

    def spent(self, state: SessionState, mine: Any, facts: Facts) -> Denial | None:
        return next((self._blown(place) for place, level in enumerate(mine or ()) if level == BLOWN), None)

    def event(self, event: Event, state: SessionState, mine: Any, facts: Facts) -> Any:
        made = [*(mine or (0, 0, 0))]
        if event.name == "extend":
            made = made if event.values.get("asked") else [max(0, level) for level in made]
        else:
            place, amount = (REQUESTS, 1) if event.name == "request" else (TOKENS, event.values["tokens"])
            name, period_ms, _ = CAPS[place]
            limit = getattr(self, name)
            if limit is not None and made[place] != BLOWN:
                level, wait = gcra(level_of(made[place], facts.now_ms, limit), facts.now_ms, limit, period_ms, amount)
                made[place] = BLOWN if wait else level
        return made if any(made) else None

    def _blown(self, place: int) -> Denial:
        name, _, what = CAPS[place]
        limit = f"{counted(getattr(self, name) or 0, what)} a {name.rpartition('_')[2]}"
        return Denial(
            code=f"growth.{name}",
            status="limit_reached",
            message=f"This session grows too fast (limit {limit}). Stopping tool loop.",
            hint=FINISH,
            ends_session=True,
            values={"limit": limit},
        )
