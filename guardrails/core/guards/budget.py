"""
Cap calls, turns, money, tokens and time; and hold back what open calls, model requests and children will use.

`Budget` is of a session. It remembers what model responses used on average, what is held for open requests, and how many responses had
no price. `Purse` is the part of it that a session shares with its children. `ToolBudget` is of one tool: the `budget` of a `tools:` rule.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple, TypedDict

from guardrails.core.envelope import Envelope
from guardrails.core.refusals import counted, end, ended, usd
from guardrails.core.state import NEVER, SessionState
from guardrails.core.values.errors import SessionError
from guardrails.core.values.schema import Ge, Gt, Le, MinLen
from guardrails.core.values.types import MICRO, Denial, Outcome, ToolCall, micro_dollars
from guardrails.core.values.units import UTC, Calendar, Duration, Glob, Period, matcher

from .approve import Approve, ask
from .base import Codes, Edge, Event, Facts, Guard, Keys, Tool, Verdict, counter, guard, map_of, overrides, respelt
from .denials import Denials


BUDGET: Final = "budget"
PURSE: Final = "purse"
"""What a session remembers of its budget, and what its family does."""
MODEL, CHILDREN = "model", "children"
BEFORE, WARNED = "before", "warned"
GRANT: Final = "grant"
"""What is in a purse."""
RESPONSES: Final = ("responses", "response_cost", "response_tokens")
"""What it remembers of model responses, for their average: numbers that add up, as a scope holds them."""
HOLDS: Final = 256
"""Open requests that are remembered; the oldest is forgotten first."""
NAME_SHOWN: Final = 80

Amount = tuple[int, int]
"""(micro-dollars, tokens)"""
WARNING: Final = "budget.warning"
TOO_DEAR: Final = "This {what} is estimated at {estimate}, {left} is left."
ALL_HELD: Final = (
    "All {counts} that are left ({held}) are held for sub-agents that still run, or for calls that wait for a person."
)
"""Words of a call that does not fit beside what is held."""


def held(state: SessionState, *, guesses: bool = False) -> Amount:
    """
    Returns what is held for model requests; with *guesses* what is only guessed of them.
    """
    holds = (state.own.get(BUDGET) or {}).get("holds")
    own = [one for one in holds.values() if one[3] is not guesses] if holds else ()
    return (sum(one[1] for one in own), sum(one[2] for one in own)) if own else (0, 0)


class Limit(NamedTuple):
    """
    One limit: its setting, its name in states and records, its words, and how much of it a session has used and holds.
    """

    setting: str
    name: str
    left: str
    """The name of what is left of it, for the model."""
    what: str
    counts: str = ""
    """The field of the state that counts what is used of it; empty: time does."""
    unit: int = 1
    """Of the state, in one of the setting."""
    few: int = 0
    """So little is always told."""

    def used(self, state: SessionState, now_ms: int) -> int:
        """
        Returns what is used of it at a time of the session.
        """
        return int(getattr(state, self.counts)) if self.counts else state.spent_ms(now_ms)

    def held(self, state: SessionState) -> int:
        """
        Returns what open calls and model requests hold of it.
        """
        if self.counts not in HELD:
            return 0
        return held(state)[HELD.index(self.counts)] + int(getattr(state, f"held_{self.counts}"))

    def amount(self, setting: float) -> int:
        """
        Returns the value of the setting as the state has it.
        """
        return micro_dollars(setting) if self.unit == MICRO else round(setting * self.unit)

    def shown(self, amount: int, *, named: bool = False) -> str:
        """
        Returns an amount for a person; with its noun if it is to be *named*.
        """
        if self.unit > 1:
            return usd(amount) if self.unit == MICRO else f"{amount / self.unit:g} s"
        return counted(amount, self.setting[len("max_") : -1]) if named else str(amount)


HELD: Final = ("cost", "tokens")
"""What open calls and requests hold."""
TABLE: Final = (
    Limit("max_calls", "max_calls", "calls_left", "Tool call limit", "calls", few=10),
    Limit("max_turns", "max_turns", "turns_left", "Tool call limit", "turns", few=10),
    Limit("max_cost_usd", "max_cost", "cost_left_usd", "Cost limit", "cost", MICRO),
    Limit("max_tokens", "max_tokens", "tokens_left", "Token limit", "tokens"),
    Limit("max_elapsed", "max_elapsed", "seconds_left", "Time limit", unit=1_000),
)
CALLS, TURNS, COST, TOKENS, TIME = TABLE
LIMITS: Final = {limit.setting: limit for limit in TABLE}
OF_TOOLS: Final = tuple(name for name in LIMITS if name != TURNS.setting)
"""Those that a tool, or a scope, can have."""
OF_SCOPES: Final = ("mode", *OF_TOOLS, "final_answer_reserve_usd", "on_unpriced", "per", "zone", "warn_at")
SEEDS: Final = {
    "max_tool_calls": "max_calls",
    "max_tool_turns": "max_turns",
    "max_tool_iterations": "max_turns",
    "max_total_cost_usd": "max_cost_usd",
}
"""Other names of limits."""


class Limits:
    """
    The limits that a *budget* sets: they can be raised, shared with a child, and named to the model.
    """

    def __init__(self, budget: "Budget") -> None:
        given = [(limit, getattr(budget, limit.setting)) for limit in TABLE]
        self.budget = budget
        self.caps = [(limit, limit.amount(value)) for limit, value in given if value is not None]
        self.own = {limit.name: amount for limit, amount in self.caps}
        self.period = Period(budget.per, budget.zone)
        self.reserve = micro_dollars(budget.final_answer_reserve_usd)
        rows = [(one, self.own.get(one.name, NEVER), self.reserve if one is COST else 0) for one in TABLE]
        self.ends = tuple(most - reserve for _, most, reserve in rows)
        """As long as less of each is used, none is used up."""
        self.far = tuple(min(most - reserve - one.few + 1, most * 4 // 5 - reserve) for one, most, reserve in rows)
        """As long as less is, none is near."""
        self.priced = COST.name in self.own
        """Money is limited."""
        self.reserves = self.priced or TOKENS.name in self.own
        """Money or tokens are, so that estimates are held."""

    def below(self, bounds: Sequence[int], state: SessionState, now_ms: int) -> bool:
        """
        Returns whether less than *bounds* is used of each, and nobody has moved a limit.
        """
        calls, turns, cost, tokens, time = bounds
        near = state.calls >= calls or state.turns >= turns or state.cost >= cost or state.tokens >= tokens
        moved = self.budget.per or state.limits or GRANT in state.own
        return not (near or moved or now_ms - state.started_ms >= time)

    def amounts(self, state: SessionState, now_ms: int) -> list[tuple[Limit, int, int]]:
        """
        Returns (limit, the most, what is used) of each that is set, in the present period; as it was raised, by `extend` or as often as a
        person said yes.
        """
        rows = [(limit, own, limit.used(state, now_ms)) for limit, own in self.caps]
        if self.budget.per is None and not state.limits and GRANT not in state.own:
            return rows
        past, yes, raised = self.before(state, now_ms), self.grant(state, now_ms).get("granted", 0), state.limits
        return [(one, raised.get(one.name, own) + own * yes, used - past[TABLE.index(one)]) for one, own, used in rows]

    def grant(self, state: SessionState, now_ms: int) -> dict[str, Any]:
        """
        Returns what is beyond a used-up limit of the present period; that of an earlier one was for that alone.
        """
        mine, since = state.own.get(GRANT, {}), self.period.since(now_ms)
        return mine if mine.get("since") == since else {"since": since}

    def before(self, state: SessionState, now_ms: int) -> Sequence[int]:
        """
        Returns what was used of the five before the present period.
        """
        if self.budget.per is None:
            return (0,) * len(TABLE)
        start, *before = (state.own.get(BUDGET) or {}).get(BEFORE, (-1,))
        now = state.calls, state.turns, state.cost, state.tokens, 0
        return before if start == self.period.since(now_ms) else now

    def taken(self, state: SessionState) -> dict[str, int]:
        """
        Returns by the name of a limit what of it is held: for open calls and model requests, for the final answer, and for children.
        """
        cost, tokens = held(state)
        made = {COST.name: cost + state.held_cost + self.reserve, TOKENS.name: tokens + state.held_tokens}
        for each in state.reserved.values():
            # Time passes for all of a family at once.
            made |= {name: made.get(name, 0) + amount for name, amount in each.items() if name != TIME.name}
        return made

    def rest(self, state: SessionState, now_ms: int) -> list[tuple[Limit, int, int]]:
        """
        Returns (limit, the most, what is left of it beside what is held) of each that is set.
        """
        taken = self.taken(state) if self.reserves or state.reserved else {}
        return [(one, most, most - used - taken.get(one.name, 0)) for one, most, used in self.amounts(state, now_ms)]

    def left(self, state: SessionState, name: str, now_ms: int) -> int | None:
        """
        Returns what is left of the limit *name*, None without one.
        """
        return next((left for limit, _, left in self.rest(state, now_ms) if limit.name == name), None)

    def no_child(self, state: SessionState, depth: int) -> Denial | None:
        """
        Returns why a sub-agent, so many levels below the root, is to make no call; None: it may.
        """
        budget, there = self.budget, (state.own.get(PURSE) or {}).get(CHILDREN, 0)
        below = "Limit of sub-agents below each other", budget.max_depth, depth - 1
        for what, most, used in (below, ("Sub-agent limit", budget.max_children, there)):
            if most is not None and used >= most:
                return ended("budget.max_children", what, str(most), used)
        return None

    def progress(self, state: SessionState, now_ms: int, *, near: bool = False) -> dict[str, Any]:
        """
        Returns the used amounts, and the rest of the limits that are set; with *near* only if that is no more than a fifth, or of calls and
        turns below ten. Money is in USD, time in seconds.
        """
        shown: dict[str, Any] = {"calls_used": state.calls}
        holds = state.reserved or (self.reserves and (state.pending or BUDGET in state.own))
        if near and not holds and self.below(self.far, state, now_ms):
            return shown
        for limit, most, left in self.rest(state, now_ms):
            if not near or left * 5 <= most or left < limit.few:
                shown[limit.left] = max(0, left) / limit.unit if limit is COST else max(0, left) // limit.unit
        return shown


def unpriced(state: SessionState) -> int:
    """
    Returns how many responses had no price.
    """
    return int((state.own.get(BUDGET) or {}).get("unpriced", 0))


class MoreCalls(TypedDict, total=False):
    """
    What a further message of the user opens.
    """

    max_calls: Annotated[int, Ge(1)] | None
    max_turns: Annotated[int, Ge(1)] | None


@guard
class Purse(Guard):
    """
    The part of a budget that a family shares: the fuse of a response without a price, which ends its sessions until `extend`, and how many
    sub-agents there were, those of sub-agents included. It remembers the model, and the number.
    """

    name: ClassVar[str] = PURSE
    family: ClassVar[bool] = True
    events: ClassVar[tuple[str, ...]] = ("charge", "extend", "reserve")

    closes: bool = False

    def event(self, event: Event, state: SessionState, mine: Any, facts: Facts) -> Any:
        values, made = event.values, dict(mine or {})
        if event.name == "charge":
            paid = values["cost"] is not None or not (values["tokens"] or values.get("untold"))
            if self.closes and not paid and not values.get("unasked"):
                made.setdefault(MODEL, (values.get("model") or "")[:NAME_SHOWN])
        elif event.name == "reserve":
            made[CHILDREN] = made.get(CHILDREN, 0) + (not values.get("more"))
        elif not values.get("asked"):
            made.pop(MODEL, None)
        return made or None


class AtLimit(TypedDict):
    """
    The tools that may still be called once a limit is used up, and how often; a refused call counts too.
    """

    allow: Annotated[tuple[Glob, ...], MinLen(1)]
    calls: Annotated[int, Ge(1)]


@guard
class Grant(Guard):
    """
    What is beyond a used-up limit of *budget*: the calls that its `at_limit` allows, or the question to a person and the answer.

    It remembers `used`, calls beyond it; `asked`, the number of the call that a person decides; `ended`, that a person said no;
    `granted`, how often one said yes; `responses` since; of a budget with a period its beginning, `since`.
    """

    name: ClassVar[str] = GRANT
    events: ClassVar[tuple[str, ...]] = ("refusal", "charge", "unpark", "extend")

    budget: Any = None

    def admit(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Any:
        return self._more(state, mine, facts, "used", asked=facts.seq)

    def event(self, event: Event, state: SessionState, mine: Any, facts: Facts) -> Any:
        made, values = self.budget.limits.grant(state, facts.now_ms), event.values
        yes = made.get("granted", 0)
        if event.name in ("refusal", "charge"):
            return self._more(state, mine, facts, "used" if event.name == "refusal" else "responses")
        if event.name == "extend":
            return {"granted": yes, "since": made["since"]} if yes else None
        if made.get("asked") != values["seq"]:
            return mine
        return {"granted": yes + 1, "since": made["since"]} if values["approved"] else made | {"ended": 1}

    def _more(self, state: SessionState, mine: Any, facts: Facts, name: str, **more: int) -> Any:
        if self.budget.cause(state, state.own.get(BUDGET), facts) is None:
            return mine
        made = self.budget.limits.grant(state, facts.now_ms)
        return made | ({} if made.get("asked") in state.pending else more) | {name: made.get(name, 0) + 1}


@guard
class ToolBudget(Guard):
    """
    Deny a tool that has used *amount* of one *limit* in the session; money in micro-dollars, time in milliseconds.

    It remembers the amount by limit and tool.
    """

    codes: ClassVar[Codes] = {"tools.budget.limit": ("limit", "used")}
    name: ClassVar[str] = "tools.budget"
    family: ClassVar[bool] = True
    events: ClassVar[tuple[str, ...]] = ("withdraw",)

    limit: str = CALLS.setting
    amount: int = 0

    def check(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Verdict:
        used = mine.get(self._place(call.tool, mine), 0) if mine else 0
        if used + max(1, self._takes(facts)) <= self.amount:
            return None
        shown, most = (LIMITS[self.limit].shown(amount, named=True) for amount in (used, self.amount))
        message = f"`{call.tool}` has used {shown} of its {most} in this session."
        hint = "Use another tool, or go on with what you have."
        return Denial("tools.budget.limit", message, hint, values={"used": shown, "limit": most})

    def admit(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Any:
        return self._more(call.tool, mine, self._takes(facts))

    def settle(self, call: ToolCall, outcome: Outcome, state: SessionState, mine: Any, facts: Facts) -> Any:
        actual = {COST.setting: outcome.cost, TOKENS.setting: outcome.tokens, TIME.setting: facts.duration_ms}
        used = None if facts.late else actual.get(self.limit)
        return mine if used is None else self._more(call.tool, mine, used - self._takes(facts))

    def event(self, event: Event, state: SessionState, mine: Any, facts: Facts) -> Any:
        return self._more(event.values["tool"], mine, -self._takes(facts))

    def _takes(self, facts: Facts) -> int:
        return {CALLS.setting: 1, COST.setting: facts.cost, TOKENS.setting: facts.tokens}.get(self.limit, 0)

    def _place(self, tool: str, mine: Any) -> str:
        return counter(mine, tool, f"{LIMITS[self.limit].name}:")

    def _more(self, tool: str, mine: Any, amount: int) -> Any:
        place = self._place(tool, mine)
        return {**(mine or {}), place: (mine or {}).get(place, 0) + amount} if amount else mine


@guard
class Budget(Guard):
    """
    End the session at a limit.

    Money and tokens are held when a call is admitted, and charged when it is over. Limits that are raised by `extend`, and shares of
    children, are in the state. `final_answer_reserve_usd` of `max_cost_usd` is held back for the model's final answer.
    """

    codes: ClassVar[Codes] = {
        **{f"budget.{name}": ("limit", "used", "held", "estimate", "left") for name in LIMITS},
        "budget.max_children": ("limit", "used"),
        "budget.unpriced": ("limit", "model"),
        WARNING: ("limit", "left"),
        **ToolBudget.codes,
    }
    aliases: ClassVar[dict[str, str]] = SEEDS
    events: ClassVar[tuple[str, ...]] = ("charge", "request", "release")
    needs: ClassVar[Mapping[str, str]] = dict.fromkeys(("max_turns", "max_cost_usd", "max_tokens"), "response")
    tool_settings: ClassVar[tuple[str, ...] | None] = ("mode", *OF_TOOLS)
    scope_settings: ClassVar[tuple[str, ...] | None] = OF_SCOPES

    max_calls: Annotated[int, Ge(0)] | None = None
    max_turns: Annotated[int, Ge(0)] | None = None
    """Model responses with tool calls."""
    max_cost_usd: Annotated[float, Ge(0)] | None = None
    """Tool calls and model responses together."""
    max_tokens: Annotated[int, Ge(0)] | None = None
    max_elapsed: Annotated[Duration, Gt(0)] | None = None
    """Seconds from the session's first event, without those in which all that is open waits for a person."""
    max_children: Annotated[int, Ge(0)] | None = None
    """Sub-agents below a session, those of sub-agents included, however long they live; a further one makes no call."""
    max_depth: Annotated[int, Ge(0)] | None = None
    """Levels of sub-agents below a session."""
    go_on: Annotated[MoreCalls, Keys()] = map_of()
    """Calls and turns that a further message of the user opens once those are used up, `{max_turns: 10}`; none by default."""
    final_answer_reserve_usd: Annotated[float, Ge(0)] = 0.0
    """Held back from `max_cost_usd` for the model's final answer."""
    on_unpriced: Literal["deny", "warn"] = "deny"
    """The effect of a model response of unknown price on a session with `max_cost_usd`: it ends it, or is only logged."""
    per: Calendar | None = None
    """The limits but `max_elapsed` hold for each `day`, `week` or `month` of the calendar, and what was ended goes on in the next; none: for good."""
    zone: str = UTC
    """The time zone of the calendar, such as `Europe/Berlin`."""
    at_limit: Literal["ask"] | Annotated[AtLimit, Keys()] | None = None
    """Before a used-up limit ends the session, `ask` lets the next call wait for a person, whose yes gives as much again, and
    `{allow: [write_file], calls: 2}` lets a few calls of some tools run."""
    warn_at: Annotated[float, Gt(0), Le(1)] | None = None
    """The share of a limit, such as `0.8`, from which on the model is told once, and the operator by `on_warning`."""

    def __post_init__(self) -> None:
        # Settings that are no amounts are told when a policy is made of it.
        with suppress(TypeError, ValueError, ArithmeticError):
            object.__setattr__(self, "_bound", Limits(self))

    @property
    def limits(self) -> Limits:
        return self._bound  # type: ignore[no-any-return]

    def companions(self) -> tuple[Guard, ...]:
        closes = self._bound.priced and self.on_unpriced == "deny" and self.mode == "enforce"
        # Once it is over, a host stops a model that only repeats what is refused.
        made = Purse(closes=closes, mode=self.mode), Denials(max_turns_in_a_row=None, mode=self.mode)
        asks = Approve(mode=self.mode), Grant(budget=self, mode=self.mode)
        return made if self.at_limit is None else (*made, *asks)

    def applies(self, tool: Tool) -> bool:
        return bool(self._bound.own)

    @classmethod
    def check_settings(cls, settings: Mapping[str, Any]) -> None:
        Period(settings.get("per"), settings.get("zone", UTC))
        cost, reserve = settings.get("max_cost_usd"), settings.get("final_answer_reserve_usd", 0.0)
        if cost is not None and 0 < reserve >= cost:
            shown = f"({usd(micro_dollars(reserve))}) must be below max_cost_usd ({usd(micro_dollars(cost))})"
            raise ValueError(f"final_answer_reserve_usd {shown}: nothing is left for calls")

    @classmethod
    def ruled(cls, own: Guard | None, settings: Mapping[str, Any]) -> tuple[Guard, ...]:
        mode, named = settings.get("mode", "enforce"), respelt(settings, cls.aliases).items()
        caps = ((LIMITS[name], most) for name, most in named if name in LIMITS and most is not None)
        made = (ToolBudget(limit=limit.setting, amount=limit.amount(most), mode=mode) for limit, most in caps)
        return (*(() if own is None else (own,)), *made)

    def check(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Verdict:
        begins = state.present.admitted == 0
        cause = self.cause(state, mine, facts, begins=begins)
        if cause is not None:
            return self._beyond(call, state, facts, cause)
        holds = state.reserved or state.pending or facts.cost or facts.tokens
        return self._unfit(state, mine, facts, turns=int(begins)) if holds else None

    def _beyond(self, call: ToolCall, state: SessionState, facts: Facts, cause: Denial) -> Verdict:
        """
        Returns what becomes of a call once a limit is used up, as `at_limit` says.
        """
        left = self._left_beyond(state, facts)
        if not left:
            return cause
        if not isinstance(self.at_limit, Mapping):
            reason = f"{cause.message.removesuffix(' Stopping tool loop.')} Yes gives as much again"
            return ask(call, state, facts, reason)
        if matcher(tuple(self.at_limit["allow"]))(call.tool):
            return None
        return replace(cause, hint=self._only(left - 1) if left > 1 else cause.hint, ends_session=False)

    def _left_beyond(self, state: SessionState, facts: Facts) -> int:
        """
        Returns how many calls may come beyond a used-up limit; while a person is asked, or has said no, none.
        """
        if self.at_limit is None:
            return 0
        mine = self._bound.grant(state, facts.now_ms)
        if isinstance(self.at_limit, Mapping):
            return max(0, int(self.at_limit["calls"]) - int(mine.get("used", 0)))
        return not (mine.get("asked") in state.pending or mine.get("ended") or mine.get("responses", 0) > 1)

    def _only(self, left: int) -> str:
        names = ", ".join(f"`{name}`" for name in (self.at_limit or {})["allow"])  # type: ignore[index]
        return f"Only {names} may still be called ({counted(left, 'call')}); then write the final answer."

    def spent(self, state: SessionState, mine: Any, facts: Facts) -> Denial | None:
        cause = self.cause(state, mine, facts)
        return None if cause is None or self._left_beyond(state, facts) else cause

    def cause(self, state: SessionState, mine: Any, facts: Facts, *, begins: bool = False) -> Denial | None:
        """
        Returns the limit that is used up, or that a model request would pass; *begins*: it is about a call that begins a turn.
        """
        bound, now = self._bound, facts.now_ms
        asks = facts.request or facts.ahead or facts.least or PURSE in state.own
        if not asks and bound.below(bound.ends, state, now):
            return None
        for limit, most, used in bound.amounts(state, now):
            if (limit is CALLS and facts.over) or (limit is TURNS and not (begins or facts.turn_over)):
                continue
            left = most - used + (_waiting(state) if limit is CALLS else -bound.reserve if limit is COST else 0)
            if left <= 0:
                return self._ended(limit, most, used)
            if limit is COST and (cause := self._unpayable(state, most, left, mine, facts)) is not None:
                return cause
        return self._unfit(state, mine, facts) if facts.request and bound.reserves else None

    def hears(self, hook: str) -> bool:
        needed = {"admit": self.per, "settle": self.warn_at, "shape": self.warn_at or self.at_limit}
        return needed[hook] is not None if hook in needed else overrides(self, hook)

    def admit(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Any:
        return self._in_period(state, mine or {}, facts)

    def settle(self, call: ToolCall, outcome: Outcome, state: SessionState, mine: Any, facts: Facts) -> Any:
        """
        It remembers, by the name of each limit that is near, the call that crossed the share.
        """
        before, key = (mine or {}).get(WARNED, {}), _key(facts.holder, facts.seq)
        crossed = {limit.name: before.get(limit.name, key) for limit, *_ in self._near(state, facts)}
        return mine if crossed == before else {**(mine or {}), WARNED: crossed}

    def shape(
        self, envelope: Envelope, call: ToolCall, outcome: Outcome, state: SessionState, mine: Any, facts: Facts
    ) -> None:
        if _key(facts.holder, facts.seq) in (mine or {}).get(WARNED, {}).values():
            near = self._near(state, facts)
            amounts = (f"{limit.shown(left, named=True)} of {limit.shown(most)}" for limit, most, left in near)
            text = f"Left: {' and '.join(amounts)}{self._bound.period}. Do what matters most first."
            facts.hints = (*facts.hints, (WARNING, text))
        left = self._left_beyond(state, facts) if isinstance(self.at_limit, Mapping) else 0
        if left and self.cause(state, mine, facts) is not None:
            facts.hints = (*facts.hints, (WARNING, self._only(left)))

    def _near(self, state: SessionState, facts: Facts) -> list[tuple[Limit, int, int]]:
        rows = self._bound.rest(state, facts.now_ms)
        return [one for one in rows if 0 < one[2] <= one[1] - one[1] * (self.warn_at or 1)]

    def _in_period(self, state: SessionState, mine: Any, facts: Facts, cost: int = 0, tokens: int = 0) -> Any:
        """
        Returns *mine* with what was used before the present period, without a *cost* and *tokens* that were just counted.
        """
        start = self._bound.period.since(facts.now_ms)
        if self.per is None or mine.get(BEFORE, (-1,))[0] == start:
            return mine
        used = state.calls, state.turns, state.cost - cost, state.tokens - tokens, 0
        return mine | {BEFORE: [start, *used], WARNED: {}}

    def event(self, event: Event, state: SessionState, mine: Any, facts: Facts) -> Any:
        values, charged = event.values, event.name == "charge"
        used = (values["cost"] or 0, values["tokens"]) if charged else (0, 0)
        made = dict(self._in_period(state, mine or {}, facts, *used))
        holds = dict(made.pop("holds", ()))
        if event.name == "request":
            holds = {key: one for key, one in holds.items() if one[3] or one[0] > facts.now_ms}
            estimate = values.get("estimate")
            if self._bound.reserves and not values.get("refused"):
                # One that holds nothing is known too: its response must not give back what another holds.
                until, needs = facts.now_ms + values["lasts_ms"], estimate or _average(mine)
                holds[_key(facts.holder, values["n"])] = [until, *needs, estimate is not None]
                holds = dict([*holds.items()][-HOLDS:])
        else:
            holds.pop(_of_response(holds, facts.holder, values.get("request"), charged and used), None)
            if any(used) and self._bound.reserves:
                made |= {name: made.get(name, 0) + more for name, more in zip(RESPONSES, (1, *used), strict=True)}
            if charged and values["cost"] is None:
                made["unpriced"] = made.get("unpriced", 0) + 1
        return made | {"holds": holds} if holds else made or None

    def edges(self, state: SessionState, mine: Any, now_ms: int) -> Sequence[Edge] | None:
        bound, held_cost, held_tokens = self._bound, *map(sum, zip(held(state), held(state, guesses=True), strict=True))
        # What is left may be too little for a turn before it is nothing.
        names = {"calls": ("calls",), "cost": ("cost", "held_cost"), "tokens": ("tokens", "held_tokens")}
        ahead = {"cost": held_cost + bound.reserve + _average(mine)[0], "tokens": held_tokens}
        rows = ((limit.counts, most - used) for limit, most, used in bound.amounts(state, now_ms))
        return [Edge(names[own], getattr(state, own) + left - ahead.get(own, 0)) for own, left in rows if own in names]

    def _unpayable(self, state: SessionState, most: int, left: int, mine: Any, facts: Facts) -> Denial | None:
        """
        Returns why no more can be paid of *most* money, of which something is *left*: a response had no price, or that pays no tool or, if a
        model request is next, no usual one.
        """
        limit, purse = usd(most), state.own.get(PURSE) or {}
        if MODEL in purse and self.on_unpriced == "deny":
            message = f"The cost limit ({limit}) cannot be held any more."
            return end("budget.unpriced", message, limit=limit, model=purse[MODEL])
        # The cheapest tool costs nothing where one is free, or nobody lists them.
        if left >= facts.least and left >= (_average(mine)[0] if facts.ahead else 0):
            return None
        message = f"{usd(left)} of the cost limit ({limit}) is left, less than a tool or a usual model turn costs."
        used = usd(most - left - self._bound.reserve)
        return self._lasting(COST, end(f"budget.{COST.setting}", message, limit=limit, used=used, left=usd(left)))

    def _ended(self, limit: Limit, most: int, used: int) -> Denial:
        shown = limit.shown(most) if limit is TIME else f"{limit.shown(most)}{self._bound.period}"
        return self._lasting(limit, ended(f"budget.{limit.setting}", limit.what, shown, limit.shown(used)))

    def _lasting(self, limit: Limit, denial: Denial) -> Denial:
        """
        Returns *denial* as one that ends the session for good, unless a person may say yes, or the next period begins anew.
        """
        lasts = self.at_limit != "ask" and (self.per is None or limit is TIME)
        return denial if lasts else replace(denial, ends_session=False)

    def _unfit(self, state: SessionState, mine: Any, facts: Facts, turns: int = 0) -> Denial | None:
        """
        Returns why a call, with which so many *turns* begin, or a model request needs more than is left beside what is held. A guess is
        refused only beside what is held: by itself such a request may always be made.
        """
        what, guessed = "call", facts.request and not (facts.cost or facts.tokens)
        cost, tokens = _average(mine) if guessed else (facts.cost, facts.tokens)
        needs, guesses = {"calls": 1, "turns": turns, "cost": cost, "tokens": tokens}, dict[str, int]()
        if facts.request:
            what, needs["calls"], guesses = "model request", 0, dict(zip(HELD, held(state, guesses=True), strict=True))
        for limit, _, rest in self._bound.rest(state, facts.now_ms):
            need, guess = needs.get(limit.counts, 0), guesses.get(limit.counts, 0)
            left = max(0, rest - guess)
            if need <= left or (guessed and not guess and not limit.held(state)):
                continue
            amount = state.reserved_by_children(limit.name) + (_waiting(state) if limit is CALLS else 0)
            values = {"held": amount, "estimate": limit.shown(need, named=True), "left": limit.shown(left)}
            dear = limit.counts in HELD
            message = (TOO_DEAR if dear else ALL_HELD).format(what=what, counts=limit.counts, **values)
            instead = "Use a cheaper tool" if dear else "Wait for their results"
            hint = f"{instead}, or write the final answer from what you have."
            return Denial(f"budget.{limit.setting}", message, hint, "limit_reached", values=values)
        return None


NO_LIMITS: Final = Budget().limits


def _waiting(state: SessionState) -> int:
    return sum(one.question is not None for one in state.pending.values()) if state.pending else 0


def _average(mine: Any) -> Amount:
    """
    Returns what responses have used on average.
    """
    count, cost, tokens = [mine.get(name, 0) for name in RESPONSES] if mine else (0, 0, 0)
    return (-(-cost // count), -(-tokens // count)) if count else (0, 0)


def _key(holder: str, name: object) -> str:
    return f"{holder}#{name}" if holder else str(name)


def _of_response(holds: Mapping[str, Any], holder: str, request: object, used: Amount | Literal[False]) -> str | None:
    """
    Returns the open *request* of a session that a response is of. If that has no name, the least that it fits by what it *used*, else the
    largest; without *used* it is one of those that nobody estimated.
    """
    if request is not None:
        return _key(holder, request)
    own = {key: one[1:3] for key, one in holds.items() if key.rpartition("#")[0] == holder and (used or not one[3])}
    enough = [key for key, has in own.items() if not any(0 < h < n for h, n in zip(has, used or (), strict=False))]
    return (min if enough else max)(enough or own, key=own.__getitem__, default=None)


class Amounts(TypedDict, total=False):
    """
    Amounts of the limits of `Budget`, by each of their names, as `extend` and `child` take them. None says that a limit
    is not named.
    """

    max_calls: int | None
    max_turns: int | None
    max_cost_usd: float | str | Decimal | None
    max_tokens: int | None
    max_elapsed: float | None
    """Seconds."""
    max_tool_iterations: int | None
    max_tool_calls: int | None
    max_tool_turns: int | None
    max_total_cost_usd: float | str | Decimal | None


ITERATIONS: Final = "max_tool_iterations"
"""The limit that each loop has for itself: a state holds what all may do more."""


def internal(amounts: Mapping[str, object]) -> dict[str, int]:
    """
    Returns amounts as a caller names them (USD, seconds, the seeds' names) in the units of the state.

    Raises SessionError for a name that is no limit or an amount that is no number.
    """
    made: dict[str, int] = {}
    for key, value in amounts.items():
        name = key if key == ITERATIONS else SEEDS.get(key, key)
        if name not in LIMITS and name != ITERATIONS:
            raise SessionError(f"`{key}` is no limit: use {', '.join(LIMITS)} or {ITERATIONS}")
        if value is not None:
            made[COST.name if name == COST.setting else name] = amount(key, name, value)
    return made


def amount(key: str, name: str, value: Any) -> int:
    """
    Returns *value*, which a caller gave as *key*, in units of the limit *name*; a missing amount is 0.

    Raises SessionError if it is no amount of that limit.
    """
    limit, made = LIMITS.get(name, CALLS), -1
    with suppress(TypeError, ValueError, OverflowError):
        if not isinstance(value, bool) and (limit.unit > 1 or isinstance(value, int)):
            made = limit.amount(value)
    if made < 0 and value is not None:
        unit = {1: "a whole number", MICRO: "an amount in USD"}.get(limit.unit, "an amount of seconds")
        raise SessionError(f"`{key}` takes {unit} of at least 0, not `{value}`")
    return max(0, made)


def settings_of(amounts: Mapping[str, int]) -> dict[str, Any]:
    """
    Returns the *amounts* that a child holds, as settings of its `Budget`.
    """
    own = ((limit, amounts.get(limit.name)) for limit in TABLE)
    # No time at all is no setting.
    made = {one.setting: n if n is None or one.unit == 1 else max(n, one is TIME) / one.unit for one, n in own}
    return {**made, "final_answer_reserve_usd": 0.0, "per": None, "at_limit": None}
