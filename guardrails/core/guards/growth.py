"""
A fuse against a session that grows too fast: calls, model requests, tokens, money, context.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final

from guardrails.core.refusals import counted, end, usd
from guardrails.core.values.schema import Gt
from guardrails.core.values.types import Outcome, micro_dollars

from .base import Codes, Denial, Edge, Event, Facts, Guard, SessionState, Tool, ToolCall, Verdict, guard, overrides
from .rate import DAY_MS, caps_of, edges_of, gcra


BLOWN: Final = -1
CAPS: Final = {
    "max_calls_per_second": "call",
    "max_requests_per_second": "model request",
    "max_tokens_per_minute": "token",
    "max_usd_per_minute": "USD",
}
"""By its setting, what each cap counts."""
CALLS, REQUESTS, TOKENS, USD = CAPS
CONTEXT: Final = "max_context_growth"
PARTS: Final = 100_000
"""Of the money of a minute, in which it is counted, rounded up."""


@guard
class Growth(Guard):
    """
    End a session, and all of its family, that makes too many calls or requests a second, uses too many tokens or too much money a
    minute, or whose context grows too much at once.

    Requests count when they start, failed ones too. It remembers the level of each cap; a blown fuse stays so until `extend`.
    """

    codes: ClassVar[Codes] = {f"growth.{name}": ("limit",) for name in (*CAPS, CONTEXT)}
    family: ClassVar[bool] = True
    events: ClassVar[tuple[str, ...]] = ("request", "charge", "extend")
    ends_by_calls: ClassVar[bool] = False
    needs: ClassVar[Mapping[str, str]] = {REQUESTS: "request", **dict.fromkeys((TOKENS, USD, CONTEXT), "response")}
    tool_settings: ClassVar[tuple[str, ...] | None] = ()
    scope_settings: ClassVar[tuple[str, ...] | None] = ("mode", *CAPS)

    max_calls_per_second: Annotated[int, Gt(0)] | None = None
    """Tool calls that start in a second."""
    max_requests_per_second: Annotated[int, Gt(0)] | None = None
    """Model requests that start in a second."""
    max_tokens_per_minute: Annotated[int, Gt(0)] | None = None
    """Tokens of model responses."""
    max_usd_per_minute: Annotated[float, Gt(0)] | None = None
    """Money of model responses and tool calls."""
    max_context_growth: Annotated[int, Gt(0)] | None = None
    """Input tokens by which a model response may be above the largest one before it in its session."""

    def __post_init__(self) -> None:
        caps = caps_of(self, CAPS)
        object.__setattr__(self, "_bound", caps | ({USD: (PARTS, 60_000)} if USD in caps else {}))

    def applies(self, tool: Tool) -> bool:
        return bool(self._bound) or self.max_context_growth is not None

    def hears(self, hook: str) -> bool:
        return overrides(self, hook) and (hook != "settle" or self.max_usd_per_minute is not None)

    def check(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Verdict:
        if mine is None:
            return None
        limit, level, now = self.max_calls_per_second, mine.get(CALLS, 0), facts.now_ms
        if limit is not None and (now + 1_000) * limit - 1_000 < level < (now + DAY_MS) * limit:
            return self._blown(CALLS)
        return self.spent(state, mine, facts) if BLOWN in mine.values() else None

    def admit(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Any:
        limit, before = self.max_calls_per_second, mine or {}
        return mine if limit is None else before | {CALLS: gcra(before.get(CALLS, 0), facts.now_ms, limit, 1_000)[0]}

    def settle(self, call: ToolCall, outcome: Outcome, state: SessionState, mine: Any, facts: Facts) -> Any:
        return self._counted(mine, USD, self._money(facts.cost if outcome.cost is None else outcome.cost), facts.now_ms)

    def spent(self, state: SessionState, mine: Any, facts: Facts) -> Denial | None:
        return next((self._blown(name) for name in (*CAPS, CONTEXT) if mine.get(name) == BLOWN), None) if mine else None

    def event(self, event: Event, state: SessionState, mine: Any, facts: Facts) -> Any:
        values = event.values
        if event.name == "extend":
            return {name: level for name, level in (mine or {}).items() if values["asked"] or level != BLOWN} or None
        if event.name == "request":
            return self._counted(mine, REQUESTS, 1, facts.now_ms)
        mine = self._counted(mine, TOKENS, values["tokens"], facts.now_ms)
        mine = self._counted(mine, USD, self._money(values["cost"] or 0), facts.now_ms)
        if self.max_context_growth is None:
            return mine
        # Small requests beside the conversation do not make its next one look grown.
        place, size = f"{CONTEXT}:{state.name}", values.get("input_tokens", 0)
        largest = (mine or {}).get(place, size)
        grown = {CONTEXT: BLOWN} if size - largest > self.max_context_growth else {}
        return {**(mine or {}), place: max(largest, size), **grown}

    def _counted(self, mine: Any, name: str, amount: int, now_ms: int) -> Any:
        levels = mine or {}
        level = levels.get(name, 0)
        if name not in self._bound or level == BLOWN or not amount:
            return mine
        limit, period_ms = self._bound[name]
        level, wait = gcra(level, now_ms, limit, period_ms, amount)
        return {**levels, name: BLOWN if wait else level}

    def _money(self, cost: int) -> int:
        return 0 if self.max_usd_per_minute is None else -(-cost * PARTS // micro_dollars(self.max_usd_per_minute))

    def edges(self, state: SessionState, mine: Any, now_ms: int) -> Sequence[Edge] | None:
        return None if mine and BLOWN in mine.values() else edges_of(self._bound, now_ms)

    def _blown(self, name: str) -> Denial:
        cap: Any = getattr(self, name)
        amount = usd(micro_dollars(cap)) if name == USD else counted(cap, CAPS.get(name, "token"))
        if name == CONTEXT:
            return end(f"growth.{name}", f"The context grew by more than {amount} at once.", limit=amount)
        limit = f"{amount} a {name.rpartition('_')[2]}"
        return end(f"growth.{name}", f"This session grows too fast (limit {limit}).", limit=limit)
