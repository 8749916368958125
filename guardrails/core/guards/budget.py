"""
Cap calls, turns, money, tokens and time of a session; and hold back what open calls, model requests and children will use.

`Budget` remembers what undeclared tools and model responses used on average, what is held for open requests, and how many responses had
no price. `Purse` is the part of it that a session shares with its children: the fuse of an unpriced response, and how many children
there were.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, TypedDict

from guardrails.core.guards.settings import Keys, map_of, respelt
from guardrails.core.state import SessionState
from guardrails.core.tools.tool import Tool
from guardrails.core.values.bounds import Ge, Gt
from guardrails.core.values.types import MICRO, Denial, Outcome, ToolCall, micro_dollars
from guardrails.core.values.units import Duration
from guardrails.core.words import FINISH, counted, ended, usd

from .base import Codes, Event, Facts, Guard, Limits, Verdict, guard
from .denials import Denials
from .tool_budget import ToolBudget, tool_budgets


LIMITS: Final = ("max_calls", "max_turns", "max_cost_usd", "max_tokens", "max_elapsed")
SEEDS: Final = {
    "max_tool_calls": "max_calls",
    "max_tool_turns": "max_turns",
    "max_tool_iterations": "max_turns",
    "max_total_cost_usd": "max_cost_usd",
}
"""Other names of limits."""
RESPONSES: Final = ""
"""Stands for a tool's name among averages."""
AVERAGED: Final = 32
"""Tools of which the average is kept."""
HOLDS: Final = 256
LOST: Final = "lost"
NAME_SHOWN: Final = 80
_LEFT: Final = (
    ("max_calls", "max_calls", "calls_left", 1, 10),
    ("max_turns", "max_turns", "turns_left", 1, 10),
    ("max_tokens", "max_tokens", "tokens_left", 1, 0),
    ("max_cost_usd", "max_cost", "cost_left_usd", MICRO, 0),
    ("max_elapsed", "max_elapsed", "seconds_left", 1000, 0),
)
"""Of each limit: its setting, the state's name, that of what is left, the unit, and how little is always told."""
PURSE: Final = "purse"

Amount = tuple[int, int]
NOTHING: Final[Amount] = (0, 0)


class MoreCalls(TypedDict, total=False):
    """
    What a further message of the user opens.
    """

    max_calls: Annotated[int, Ge(1)] | None
    max_turns: Annotated[int, Ge(1)] | None


GoOn = Annotated[MoreCalls, Keys()]


@guard
class Purse(Guard):
    """
    What a family shares of its budget.
    """

    name: ClassVar[str] = PURSE
    codes: ClassVar[Codes] = {}
    family: ClassVar[bool] = True
    events: ClassVar[tuple[str, ...]] = ("charge", "reserve", "extend")

    closes: bool = False
    """A response without a price ends the session."""
    counts: bool = False
    """Children are counted."""

    def event(self, event: Event, state: SessionState, mine: Any, facts: Facts) -> Any:
        said, values = mine or {}, event.values
        if event.name == "charge":
            cost, model = values["cost"], values.get("model") or ""
            untold = values.get("untold", False)
            if (
                cost is None
                and not values.get("unasked")
                and self.closes
                and "by" not in said
                and (values["tokens"] or untold)
            ):
                said = {**said, "by": [model[:NAME_SHOWN], untold]}
        elif event.name == "reserve":
            if self.counts and not values.get("more"):
                said = {**said, "children": said.get("children", 0) + 1}
        elif not values.get("asked"):
            more = values["limits"].get("max_children")
            said = {key: one for key, one in said.items() if key != "by"} | ({"max_children": more} if more else {})
        return said or None


@guard
class Budget(Guard):
    """
    End the session at a limit.

    Money and tokens are held when a call is admitted, and charged when it is over. Limits that are raised by `extend`, and shares of
    children, are in the state. `final_answer_reserve_usd` of `max_cost_usd` is held back for the model's final answer.
    """

    codes: ClassVar[Codes] = {
        "budget.max_calls": ("limit", "used", "held"),
        "budget.max_turns": ("limit", "used", "held"),
        "budget.max_cost_usd": ("limit", "used", "estimate", "left"),
        "budget.max_tokens": ("limit", "used", "estimate", "left"),
        "budget.max_elapsed": ("limit", "used"),
        "budget.unpriced": ("limit", "model"),
        **ToolBudget.codes,
        f"{ToolBudget.name}.error": (),
    }
    aliases: ClassVar[dict[str, str]] = SEEDS
    events: ClassVar[tuple[str, ...]] = ("charge", "request", "release", "withdraw", "expire")
    tool_settings: ClassVar[tuple[str, ...] | None] = ("mode", *LIMITS)
    scope_settings: ClassVar[tuple[str, ...] | None] = (
        "mode",
        *(name for name in LIMITS if name != "max_turns"),
        "final_answer_reserve_usd",
        "on_unpriced",
    )

    max_calls: Annotated[int, Ge(0)] | None = None
    max_turns: Annotated[int, Ge(0)] | None = None
    """Model responses with tool calls."""
    max_cost_usd: Annotated[float, Ge(0)] | None = None
    """Tool calls and model responses together."""
    max_tokens: Annotated[int, Ge(0)] | None = None
    max_elapsed: Annotated[Duration, Gt(0)] | None = None
    """Seconds from the session's first event, without those in which all that is open waits for a person."""
    max_children: Annotated[int, Ge(0)] | None = None
    """Sub-agents below a root session, those of sub-agents included, however long they live."""
    max_depth: Annotated[int, Ge(0)] | None = None
    """Levels of sub-agents below a root session."""
    go_on: GoOn = map_of()
    """Calls and turns that a further message of the user opens once those are used up, `{max_turns: 10}`; none by default."""
    final_answer_reserve_usd: Annotated[float, Ge(0)] = 0.0
    """Held back from `max_cost_usd` for the model's final answer."""
    on_unpriced: Literal["deny", "warn"] = "deny"
    """The effect of a model response of unknown price on a session with `max_cost_usd`: it ends it, or is only logged."""

    @property
    def limits(self) -> Limits:
        return self

    def companions(self) -> tuple[Guard, ...]:
        closes = self.max_cost_usd is not None and self.on_unpriced == "deny" and self.mode == "enforce"
        purse = Purse(closes=closes, counts=self.max_children is not None, mode=self.mode)
        # Once it is over, a host stops a model that only repeats what is refused.
        return purse, Denials(max_turns_in_a_row=None, mode=self.mode)

    def applies(self, tool: Tool) -> bool:
        return any(getattr(self, name) is not None for name in LIMITS)

    @classmethod
    def check_settings(cls, settings: Mapping[str, Any]) -> None:
        cost, reserve = settings.get("max_cost_usd"), settings.get("final_answer_reserve_usd", 0.0)
        if cost is not None and 0 < reserve >= cost:
            shown = f"({usd(micro_dollars(reserve))}) must be below max_cost_usd ({usd(micro_dollars(cost))})"
            raise ValueError(f"final_answer_reserve_usd {shown}: nothing is left for calls")

    @classmethod
    def ruled(cls, own: Guard | None, settings: Mapping[str, Any]) -> tuple[Guard, ...]:
        named, _ = respelt(settings, cls.aliases)
        return (*(() if own is None else (own,)), *tool_budgets(named))

    # Hooks

    def check(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Verdict:
        cause = self.spent(state, mine, facts)
        if cause is not None or not (self.reserves or self.max_turns is not None or state.reserved or state.pending):
            return cause
        if self.max_turns is not None and state.turn_admitted == 0:
            cause = self._turns(state) or self._reserved(state, "max_turns", "turns", 0)
        if cause is None and self.max_calls is not None:
            waiting = _waiting(state)
            cause = self._reserved(state, "max_calls", "calls", waiting) if state.reserved or waiting else None
        if cause is None and self.reserves:
            declared = facts.cost, facts.tokens
            cause = self._fits(state, mine, declared, _average(mine, call.tool, declared), "call")
        return cause

    def admit(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Any:
        guess = _average(mine, call.tool, (facts.cost, facts.tokens)) if mine else NOTHING
        return mine if guess == NOTHING else _holding(mine, _key(facts.holder, f"c{facts.seq}"), [0, *guess, False])

    def settle(self, call: ToolCall, outcome: Outcome, state: SessionState, mine: Any, facts: Facts) -> Any:
        if mine:
            mine = _without(mine, _key(facts.holder, f"c{facts.seq}"))
        if facts.late or not self.reserves or not (outcome.cost or outcome.tokens):
            return mine
        cost = 0 if facts.cost else outcome.cost or 0
        return _using(mine, call.tool, cost, 0 if facts.tokens else outcome.tokens or 0)

    def spent(self, state: SessionState, mine: Any, facts: Facts) -> Denial | None:
        most, lasts = self.max_calls, self.max_elapsed
        if most is not None and not facts.over and state.calls >= state.limits.get("max_calls", most):
            limit = state.limits.get("max_calls", most)
            if state.calls - _waiting(state) >= limit:
                return ended("budget.max_calls", "Tool call limit", str(limit), state.calls)
        # The exact limit is found where it may be near.
        if lasts is not None and (state.limits or facts.now_ms - state.started_ms >= lasts * 999):
            limit = self.limit(state, "max_elapsed") or 0
            if state.spent_ms(facts.now_ms) >= limit:
                used = state.spent_ms(state.now_ms) / 1000
                return ended("budget.max_elapsed", "Time limit", f"{limit / 1000:g} s", used)
        if self.max_cost_usd is not None or self.max_tokens is not None:
            cause = self._money(state, mine, facts)
            if cause is not None:
                return cause
        if facts.turn_over and self.max_turns is not None:
            cause = self._turns(state)
            if cause is not None:
                return cause
        return self._request(state, mine, facts) if facts.request and self.reserves else None

    def event(self, event: Event, state: SessionState, mine: Any, facts: Facts) -> Any:
        values, holder = event.values, facts.holder
        match event.name:
            case "withdraw" | "expire":
                return _without(mine, _key(holder, f"c{values['seq']}")) if mine else mine
            case "release":
                guess = "guess" in values
                key = _fitting(mine, holder, 0, 0, guesses=True) if guess else _key(holder, values["request"])
                return _without(mine, key) if mine else mine
            case "request":
                return self._requested(values, mine or {}, facts) or None
        cost, tokens = values["cost"], values["tokens"]
        said: dict[str, Any] = dict(mine or {})
        if said.get("holds"):
            request = values.get("request")
            key = _key(holder, request) if request is not None else _fitting(said, holder, cost or 0, tokens)
            said = _without(said, key) or {}
        if self.reserves and (cost or tokens):
            said = _using(said, RESPONSES, cost or 0, tokens)
        if cost is None:
            said = {**said, "unpriced": said.get("unpriced", 0) + 1}
        return said or None

    # Its limits, for the session and the envelope

    @property
    def reserves(self) -> bool:
        return self.max_cost_usd is not None or self.max_tokens is not None

    @property
    def priced(self) -> bool:
        return self.max_cost_usd is not None

    def limit(self, state: SessionState, name: str) -> int | None:
        if name == "max_cost":
            own = None if self.max_cost_usd is None else micro_dollars(self.max_cost_usd)
        elif name == "max_elapsed":
            own = None if self.max_elapsed is None else round(self.max_elapsed * 1000)
        elif name == "max_children":
            more: int | None = _purse(state).get("max_children", self.max_children)
            return more
        else:
            own = getattr(self, name)
        return state.limit(name, own)

    def left(self, state: SessionState, name: str, now_ms: int) -> int | None:
        limit = self.limit(state, name)
        if limit is None:
            return None
        match name:
            case "max_calls":
                used = state.calls
            case "max_turns":
                used = state.turns
            case "max_tokens":
                used = state.tokens + state.held_tokens + held(state)[1]
            case "max_cost":
                used = state.cost + state.held_cost + held(state)[0] + micro_dollars(self.final_answer_reserve_usd)
            case _:
                return limit if state.started_ms < 0 else limit - state.spent_ms(now_ms)
        return limit - used - state.reserved_by_children(name)

    def progress(self, state: SessionState, now_ms: int, *, near: bool = False) -> dict[str, object]:
        """
        Returns the used amounts, and the rest of the limits that are set; money in USD, time in seconds. With *near* a rest is left out
        that is more than a fifth, and of calls and turns ten or more.
        """
        shown: dict[str, object] = {"calls_used": state.calls}
        for setting, name, key, unit, few in _LEFT:
            limit = getattr(self, setting)
            if limit is None:
                continue
            left = max(0, self.left(state, name, now_ms) or 0)
            if near and left >= few:
                most = (self.limit(state, name) or 0) if state.limits else limit * unit
                if left * 5 > most:
                    continue
            shown[key] = left / unit if unit == MICRO else left // unit
        return shown

    def held(self, state: SessionState) -> Amount:
        return held(state)

    def children(self, state: SessionState) -> int:
        return children(state)

    def crowded(self, state: SessionState, depth: int) -> str | None:
        deepest, most = self.max_depth, self.limit(state, "max_children")
        if deepest is not None and depth > deepest:
            return f"sub-agents are at most {counted(deepest, 'level')} deep (`budget.max_depth`)"
        there = children(state)
        if most is not None and there >= most:
            return f"there were {counted(there, 'sub-agent')} already (`budget.max_children` is {most})"
        return None

    # Parts

    def _money(self, state: SessionState, mine: Any, facts: Facts) -> Denial | None:
        micro = self.limit(state, "max_cost")
        if micro is not None:
            reserve = micro_dollars(self.final_answer_reserve_usd)
            if state.cost >= micro - reserve:
                return ended("budget.max_cost_usd", "Cost limit", usd(micro), usd(state.cost))
            purse = state.own.get(PURSE)
            if purse and "by" in purse and self.on_unpriced == "deny":
                return _unpriced(usd(micro), purse["by"][0])
            left = micro - state.cost - reserve
            if nearly_spent(left, facts.least, _average(mine, RESPONSES, NOTHING)[0] if facts.ahead else 0):
                return _outgrown(micro, state.cost, left)
        if self.max_tokens is not None:
            limit = state.limit("max_tokens", self.max_tokens)
            if limit is not None and state.tokens >= limit:
                return ended("budget.max_tokens", "Token limit", str(limit), state.tokens)
        return None

    def _turns(self, state: SessionState) -> Denial | None:
        limit = state.limit("max_turns", self.max_turns)
        if limit is None or state.turns < limit:
            return None
        return ended("budget.max_turns", "Tool call limit", str(limit), state.turns)

    def _reserved(self, state: SessionState, name: str, what: str, waiting: int) -> Denial | None:
        left = self.left(state, name, state.now_ms)
        if left is None or left > 0:
            return None
        amount = state.reserved_by_children(name)
        named = (("sub-agents that still run", amount or not waiting), ("calls that wait for a person", waiting))
        whose, amount = " and ".join(who for who, holds in named if holds), amount + waiting
        return Denial(
            code=f"budget.{name}",
            status="limit_reached",
            message=f"All {what} that are left ({amount}) are reserved for {whose}.",
            hint="Wait for their results, or write the final answer from what you have.",
            values={"held": amount},
        )

    def _fits(self, state: SessionState, mine: Any, said: Amount, guess: Amount, what: str) -> Denial | None:
        guesses = held(state, guesses=True) if mine else NOTHING
        for place, name in enumerate(("max_cost", "max_tokens")):
            other = (state.held_cost, state.held_tokens)[place] + held(state)[place] + guesses[place]
            # What nobody estimates is refused only beside what is held: by itself it may always run.
            need = said[place] or (guess[place] if other else 0)
            left = self.left(state, name, state.now_ms) if need else None
            if left is None:
                continue
            if what != "call" or not said[place]:
                left -= guesses[place]
            if need > max(left, 0):
                money = name == "max_cost"
                shown = usd(need) if money else counted(need, "token")
                rest = usd(max(left, 0)) if money else str(max(left, 0))
                return Denial(
                    code="budget.max_cost_usd" if money else "budget.max_tokens",
                    status="limit_reached",
                    message=f"This {what} is estimated at {shown}, {rest} is left.",
                    hint="Use a cheaper tool, or write the final answer from what you have.",
                    values={"estimate": shown, "left": rest},
                )
        return None

    def _request(self, state: SessionState, mine: Any, facts: Facts) -> Denial | None:
        said = facts.cost, facts.tokens
        guess = NOTHING if said != NOTHING else _average(mine, RESPONSES, NOTHING)
        return self._fits(state, mine, said, guess, "model request")

    def _requested(self, values: Mapping[str, Any], mine: dict[str, Any], facts: Facts) -> Any:
        ends = facts.now_ms + values["lasts_ms"]
        for key in [key for key, one in mine.get("holds", {}).items() if 0 < one[0] <= facts.now_ms and not one[3]]:
            mine = _without(mine, key) or {}
        if values.get("refused") or not self.reserves:
            return mine
        said = values.get("estimate")
        amount = tuple(said) if said is not None else _average(mine, RESPONSES, NOTHING)
        if amount == NOTHING:
            return mine
        return _holding(mine, _key(facts.holder, values["n"]), [ends, *amount, said is not None])


def nearly_spent(left: int, tool: int, turn: int) -> bool:
    """
    Returns whether the money that is *left* pays no more work: the cheapest *tool* (0: one is free, or nobody lists them) does not fit, or
    the usual *turn* (0: unknown, or no request is next) does not.
    """
    return left < tool or left < turn


def _waiting(state: SessionState) -> int:
    return sum(one.question is not None for one in state.pending.values()) if state.pending else 0


def held(state: SessionState, *, guesses: bool = False) -> Amount:
    """
    Returns (micro-dollars, tokens) that are held for model requests; with *guesses* what is only guessed, of calls too.
    """
    mine = state.own.get("budget")
    holds = [one for one in mine.get("holds", {}).values() if one[3] is not guesses] if mine else ()
    return (sum(one[1] for one in holds), sum(one[2] for one in holds)) if holds else NOTHING


def holds_request(state: SessionState, n: int | None, holder: str = "") -> bool:
    """
    Returns whether the model request *n* of the session *holder* holds something; None: whether one does that nobody estimated.
    """
    mine = state.own.get("budget") or {}
    if n is None:
        return _fitting(mine, holder, 0, 0, guesses=True) is not None
    return _key(holder, n) in mine.get("holds", {})


def children(state: SessionState) -> int:
    """
    Returns how many children a family has had.
    """
    return int(_purse(state).get("children", 0))


def unpriced(state: SessionState) -> int:
    """
    Returns how many responses had no price.
    """
    return int((state.own.get("budget") or {}).get("unpriced", 0))


def _purse(state: SessionState) -> Mapping[str, Any]:
    return state.own.get(PURSE) or {}


def _average(mine: Any, name: str, declared: Amount) -> Amount:
    """
    Returns what calls of a tool, or responses, have used on average, where nothing is *declared*.
    """
    used = mine["used"].get(name) if mine and "used" in mine else None
    if used is None:
        return NOTHING
    count, cost, tokens = used
    return 0 if declared[0] else -(-cost // count), 0 if declared[1] else -(-tokens // count)


def _using(mine: Any, name: str, cost: int, tokens: int) -> Any:
    used: Mapping[str, Any] = (mine or {}).get("used", {})
    if not (cost or tokens) or (name not in used and len(used) >= AVERAGED):
        return mine
    count, costs, all_tokens = used.get(name, (0, 0, 0))
    return {**(mine or {}), "used": {**used, name: [count + 1, costs + cost, all_tokens + tokens]}}


def _holding(mine: Any, key: str, held: list[Any]) -> dict[str, Any]:
    holds = {**(mine or {}).get("holds", {}), key: held}
    while len(holds) > HOLDS:
        oldest = next(name for name in holds if name != LOST)
        gone, lost = holds.pop(oldest), holds.get(LOST, [0, 0, 0, True])
        if gone[3]:
            # Nobody says any more which it was, and it stays held.
            holds[LOST] = [0, lost[1] + gone[1], lost[2] + gone[2], True]
    return {**(mine or {}), "holds": holds}


def _without(mine: Any, key: str | None) -> Any:
    holds = mine.get("holds", {})
    if key is None or key not in holds:
        return mine
    left = {name: one for name, one in holds.items() if name != key}
    rest = {name: one for name, one in mine.items() if name != "holds"}
    return ({**rest, "holds": left} if left else rest) or None


def _key(holder: str, name: object) -> str:
    return f"{holder}#{name}" if holder else str(name)


def _fitting(mine: Any, holder: str, cost: int, tokens: int, *, guesses: bool = False) -> str | None:
    """
    Returns the open request that a response fits, the least one; else the largest. With *guesses* of those without an estimate.
    """
    holds, prefix = (mine or {}).get("holds", {}), _key(holder, "")
    open_ = {
        key: one
        for key, one in holds.items()
        if key.startswith(prefix) and key[len(prefix) :].isdigit() and not (guesses and one[3])
    }
    enough = [key for key, of in open_.items() if of[1] >= cost * (of[1] > 0) and of[2] >= tokens * (of[2] > 0)]
    return (min if enough else max)(enough or open_, key=lambda key: (open_[key][2], open_[key][1]), default=None)


def _unpriced(limit: str, model: str) -> Denial:
    message = f"The cost limit ({limit}) cannot be held any more. Stopping tool loop."
    values: dict[str, object] = {"limit": limit, "model": model}
    return Denial(
        code="budget.unpriced", status="limit_reached", message=message, hint=FINISH, ends_session=True, values=values
    )


def _outgrown(limit: int, used: int, left: int) -> Denial:
    return Denial(
        code="budget.max_cost_usd",
        status="limit_reached",
        message=f"{usd(left)} of the cost limit ({usd(limit)}) is left, less than a tool or a usual model turn costs. Stopping tool loop.",
        hint=FINISH,
        ends_session=True,
        values={"limit": usd(limit), "used": usd(used), "left": usd(left)},
    )
