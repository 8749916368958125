"""
Rules that people write about single tools: refused, asked, limited by a sum, in an order.

Promises, each with a test:

* A call that no rule names or watches has no part in it.
* A sum counts a call from its admission on. A call that surely failed, or never ran, gives back; one whose end nobody knows does not. So a
  sum is never over.
* `after` counts what worked. `after_not` counts what may have happened, and what still runs.
"""

import re

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

import orjson

from xxhash import xxh3_64_hexdigest

from guardrails.core.result.content import at
from guardrails.core.state import SessionState
from guardrails.core.text.signature import canonical
from guardrails.core.tool import Tool
from guardrails.core.values.errors import AMBIGUOUS, PolicyError
from guardrails.core.values.schema import Ge, Gt, MinLen
from guardrails.core.values.types import MICRO, Denial, Mode, Nudge, Outcome, ToolCall
from guardrails.core.values.units import UTC, Duration, Glob, Per, Period, matcher

from .approve import Approve, ask
from .base import Codes, Edge, Event, Facts, Guard, Verdict, guard, overrides


if TYPE_CHECKING:
    from guardrails.core.values.cel import Expression

Globs = Glob | Annotated[tuple[Glob, ...], MinLen(1)]
Some = Annotated[str, MinLen(1)]
SESSION: Final = "session"
ACTIONS: Final = ("deny", "ask", "nudge", "limit", "after", "after_not")
MANY: Final = 1_000
"""What a session remembers for one rule: values that are the same, and open calls."""
MAY_HAVE_WORKED: Final = AMBIGUOUS | {"server_error", "unavailable"}
"""Failures whose amounts are not given back: behind a gateway that failed the payment may stand."""
ANY: Final = "*"
"""Stands for all values that were too many."""

Trace = Sequence[Any]
"""
What is remembered for a rule: what is over, [when, amount in millionths] by the part of the period or the value that is to be the same; and
what is open, [when, amount, value] by session and call.
"""
NOTHING: Final[Trace] = ({}, {})
Given = tuple[bytes, str, frozenset[str]]
"""What an expression sees: arguments as JSON, the tool, and the names of those that are numbers, not whole ones alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SumLimit:
    """
    At most so much, of a sum or of calls.
    """

    max: Annotated[float, Ge(0)]
    """Of the sum; without a `sum` of calls."""
    sum: Some | None = None
    """An amount of each call in CEL: `args.amount`."""
    per: Per | None = None
    """`1h` is the last hour; `day`, `week` and `month` are of the calendar; without it all time counts."""
    zone: str = UTC
    """The time zone of the calendar, such as `Europe/Berlin`."""
    scope: str = SESSION
    """Whose calls are counted together: those of a `session`, or of a scope such as `user`, `tenant` or `global`."""

    def __post_init__(self) -> None:
        Period(self.per, self.zone)
        if not re.fullmatch("[a-z][a-z0-9_]{0,31}", self.scope):
            raise ValueError(f"`{self.scope}` is no scope: write `session`, or a name such as `user` or `global`")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RuleSettings:
    """
    One rule: the tools that it is about, and one of `deny`, `ask`, `nudge`, `limit`, `after` and `after_not`.
    """

    tools: Globs
    """Globs of tools."""
    when: Some | None = None
    """Only calls of which this is true, in CEL: `args.amount > 100`."""
    deny: Some | None = None
    """They are refused; the text says why."""
    ask: Some | None = None
    """A person decides; the text says why."""
    nudge: Some | None = None
    """They run, and the model reads this text."""
    limit: SumLimit | None = None
    """They run up to a sum or a number of calls."""
    after: Globs | None = None
    """They run only after a call of one of these tools that worked."""
    after_not: Globs | None = None
    """They run only as long as no call of one of these tools was made."""
    same: Some | None = None
    """Of `after` and `after_not`: the argument that has the same value in both calls."""
    within: Annotated[Duration, Gt(0)] | None = None
    """Of `after` and `after_not`: only so long after."""

    def __post_init__(self) -> None:
        given = [name for name in ACTIONS if getattr(self, name) is not None]
        if len(given) != 1:
            both = " and ".join(f"`{name}`" for name in given) or "none"
            raise ValueError(f"a rule has one of {', '.join(ACTIONS[:-1])} or {ACTIONS[-1]}, got {both}")
        lone = next((name for name in ("same", "within") if getattr(self, name) is not None), None)
        if lone and not given[0].startswith("after"):
            raise ValueError(f"`{lone}` goes with `after` and `after_not`, not with `{given[0]}`")

    def __repr__(self) -> str:
        given = ((field.name, getattr(self, field.name)) for field in fields(self))
        return f"{{{', '.join(f'{name}: {value}' for name, value in given if value is not None)}}}"

    @property
    def scope(self) -> str:
        """
        Whose calls it counts together.
        """
        return self.limit.scope if self.limit else SESSION

    @property
    def timed(self) -> bool:
        """
        Whether it goes by time.
        """
        return bool(self.within or (self.limit and self.limit.per))

    def is_about(self, tool: str) -> bool:
        return matcher(_tuple(self.tools))(tool) is not None

    def expressions(self) -> "list[tuple[tuple[str, ...], Expression]]":
        """
        Returns what it says in CEL, each with its setting. Raises MissingExtra without the package.
        """
        from guardrails.core.values.cel import Expression

        made = [(("when",), Expression(self.when, "true or false"))] if self.when else []
        total = self.limit.sum if self.limit else None
        return made + ([(("limit", "sum"), Expression(total, "a number"))] if total else [])

    def faults(self, schemas: Sequence[Mapping[str, Any]]) -> Iterator[tuple[tuple[str, ...], str]]:
        """
        Returns what is wrong with what it says of arguments, each with its setting: by itself, and for tools whose arguments have one of the
        *schemas*. Raises MissingExtra without the package.
        """
        from guardrails.core.values.cel import unknown_names

        for place, one in self.expressions():
            of_tools = (text for schema in schemas for text in one.faults_for(schema))
            yield from ((place, text) for text in dict.fromkeys([*one.faults, *of_tools]))
        unknown = [next(unknown_names(f"args.{self.same}", schema), "") for schema in schemas if self.same]
        if unknown and all(unknown):
            yield ("same",), unknown[0]


class Law:
    """
    A rule ready to decide. Raises MissingExtra without the package for CEL.
    """

    def __init__(self, rule: RuleSettings) -> None:
        self.rule, limit = rule, rule.limit
        self.action = next(name for name in ACTIONS if getattr(rule, name) is not None)
        self.judge: Callable[..., Verdict] = getattr(self, self.action)
        self.rank = self.action == "nudge", self.action == "ask"
        """Of the rules that object the first counts: those that ask a person stand behind those that deny, and hints come last."""
        self.names = matcher(_tuple(rule.tools))
        others = _tuple(rule.after or rule.after_not or ())
        self.watches = self.names if limit else matcher(others)
        self.others = " or ".join(f"`{one}`" for one in others) + (f" with the same `{rule.same}`" if rule.same else "")
        named = dict(rule.expressions())
        self.when, self.sum, self.expressions = named.get(("when",)), named.get(("limit", "sum")), [*named.values()]
        self.most = int(Decimal(str(limit.max)) * MICRO) if limit else 0
        self.period = Period(limit.per, limit.zone) if limit else Period(rule.within)
        counted = (rule.tools, rule.when, limit.sum, limit.per, limit.zone) if limit else (rule.after, rule.same)
        self.key = f"{self.action}:{xxh3_64_hexdigest(repr((*counted, rule.within, rule.after_not)).encode())}"
        """Of what it remembers: it stays if only its limit changes."""
        self.faults = [f"`{one.text}`: {fault}" for one in self.expressions for fault in one.faults]

    def amount(self, given: Given) -> int:
        """
        Returns the amount of a call in millionths.
        """
        return MICRO if self.sum is None else _value(self.sum, *given)

    def part(self, call: ToolCall, now_ms: int = 0) -> str | None:
        """
        Returns the part of the period of a sum, or a hash of the value that is to be the same, as JSON; None: there is none, which is the same
        as no other.
        """
        if self.rule.limit:
            return str(self.period.part(now_ms))
        if self.rule.same is None:
            return ""
        value = at(orjson.loads(_text(call)), self.rule.same)
        if value is None:
            return None
        from hashlib import blake2b  # and with it OpenSSL: 5 ms

        return blake2b(canonical(value) or b"", digest_size=16).hexdigest()

    def begun(self, trace: Trace, now_ms: int, place: str, amount: int, part: str) -> Trace:
        """
        Returns *trace* with a call that was admitted, as *place*.
        """
        over, open_ = trace[0], {**trace[1], place: [now_ms, amount, part]}
        # Of too many open calls the oldest counts as one whose end nobody knows.
        spilled = next(iter(open_)) if len(open_) > MANY else None
        return self.ended((over, open_), now_ms, spilled, counts=self.action != "after") if spilled else (over, open_)

    def ended(self, trace: Trace, now_ms: int, place: str, *, counts: bool) -> Trace:
        """
        Returns *trace* once the call of *place* is over.
        """
        over, open_ = trace
        at_ms, amount, part = open_[place]
        # Most often no other is open.
        open_ = {other: one for other, one in open_.items() if other != place} if len(open_) > 1 else {}
        if not counts:
            return over, open_
        # In an order the end of the first call counts, and of a sum the time at which it was asked for.
        at_ms = at_ms if self.rule.limit else now_ms
        over = over.copy()
        # The latest is the last.
        latest_ms, before = over.pop(part, (at_ms, 0))
        over[part] = [max(at_ms, latest_ms), before + amount]
        while len(over) > 1 and next(iter(over.values()))[0] < self.period.since(now_ms):
            del over[next(iter(over))]
        if len(over) > MANY:
            spilled = over.pop(next(iter(over)))
            # What is too much to be known one by one counts, except as a permission.
            if self.action != "after":
                over = {ANY: max(spilled, over.pop(ANY, spilled)), **over}
        return over, open_

    # The verdicts, each by the action of a rule

    def deny(self, call: ToolCall, *_: Any) -> Denial:
        text = str(self.rule.deny).rstrip(".")
        message, hint = f"`{call.tool}` is not made here: {text}.", "Do it in a way that this allows, or ask the user."
        return Denial("rules.deny", message, hint, values={"tool": call.tool, "reason": text})

    def ask(self, call: ToolCall, state: SessionState, trace: Any, facts: Facts, *_: Any) -> Verdict:
        return ask(call, state, facts, str(self.rule.ask))

    def nudge(self, call: ToolCall, *_: Any) -> Nudge:
        return Nudge(code="rules.nudge", hint=str(self.rule.nudge), values={"tool": call.tool})

    def limit(self, call: ToolCall, _: Any, trace: Trace, facts: Facts, given: Given) -> Verdict:
        since, asked = self.period.since(facts.now_ms), self.amount(given)
        used = sum([one[1] for each in trace for one in each.values() if one[0] >= since])
        if used + asked <= self.most:
            return None
        left = max(0, self.most - used)
        figures = {"limit": self.most, "used": used, "left": left, "asked": asked}
        shown = {name: f"{Decimal(amount) / MICRO:f}" for name, amount in figures.items()}
        what = f"of `{self.sum.text}`" if self.sum else "calls"
        message = f"`{call.tool}` may use {shown['limit']} {what}{self.period}: {shown['used']} are used"
        message += f", {shown['left']} are left, and this call is for {shown['asked']}."
        go = f"Stay within {shown['left']}, or go" if left else "Go"
        return Denial("rules.limit", message, f"{go} on without it and say so.", values={"tool": call.tool, **shown})

    def after(self, call: ToolCall, _: Any, trace: Trace, facts: Facts, __: Any) -> Verdict:
        one = trace[0].get(self.part(call))
        if one and one[0] >= self.period.since(facts.now_ms):
            return None
        message = f"`{call.tool}` comes after a call of {self.others} that worked{self.period}. There was none."
        hint = f"Call {self.others} first, then make this call again."
        return Denial("rules.after", message, hint, values={"tool": call.tool, "after": self.others})

    def after_not(self, call: ToolCall, _: Any, trace: Trace, facts: Facts, __: Any) -> Verdict:
        (over, open_), value, since = trace, self.part(call), self.period.since(facts.now_ms)
        others = over.get(value), over.get(ANY), *(one for one in open_.values() if one[2] == value)
        if not any(one and one[0] >= since for one in others):
            return None
        message = f"`{call.tool}` is not made after a call of {self.others}{self.period}, and there was one."
        hint = "Go on without it, or ask the user."
        return Denial("rules.after_not", message, hint, values={"tool": call.tool, "after": self.others})


@guard
class Rules(Guard):
    """
    Hold calls to rules about single tools. In a policy file a list stands for *rules*.

    Of the rules that object to a call the first denial counts, else the first question to a person, else the first nudge.
    It remembers by rule what was counted.
    """

    codes: ClassVar[Codes] = {
        "rules.deny": ("tool", "reason"),
        "rules.nudge": ("tool",),
        "rules.limit": ("tool", "limit", "used", "left", "asked"),
        "rules.after": ("tool", "after"),
        "rules.after_not": ("tool", "after"),
    }
    family: ClassVar[bool] = True
    events: ClassVar[tuple[str, ...]] = ("withdraw", "expire")
    tool_settings: ClassVar[tuple[str, ...] | None] = ("mode",)
    scope_settings: ClassVar[tuple[str, ...] | None] = ()
    listed: ClassVar[str | None] = "rules"

    rules: tuple[RuleSettings, ...] = ()
    """The rules."""

    def __post_init__(self) -> None:
        # For a tool: the rules about it, those that watch it, and its arguments that are numbers, not whole ones alone.
        object.__setattr__(self, "_bound", ((), (), frozenset()))

    @property
    def timed(self) -> bool | None:
        """
        Whether it goes by time.
        """
        return any(one.timed for one in self.rules) or None

    def misfits(self, tools: Mapping[str, Tool]) -> Iterator[str]:
        """
        Returns what in its expressions does not fit the parameters of *tools*.
        """
        for law in _laws_of(self.rules):
            for one in law.expressions:
                for tool in tools.values():
                    spec = tool.arguments() if law.names(tool.name) else None
                    faults = one.faults_for(spec.schema()) if spec else ()
                    yield from (f"{self.name}: `{one.text}` for `{tool.name}`: {fault}" for fault in faults)

    def prepare(self) -> None:
        # A rule with a mistake is told now.
        _laws_of(self.rules)

    def companions(self) -> tuple[Guard, ...]:
        return (Approve(mode=self.mode),) if any(one.ask for one in self.rules) else ()

    def for_tool(self, tool: Tool) -> "Rules | None":
        laws = _laws_of(self.rules)
        judging = tuple(sorted((law for law in laws if law.names(tool.name)), key=lambda law: law.rank))
        watching = tuple(law for law in laws if law.watches(tool.name))
        spec = tool.arguments() if any(law.expressions for law in judging + watching) else None
        known = (spec.schema().get("properties") or {}).items() if spec else ()
        numbers = (name for name, one in known if isinstance(one, Mapping) and one.get("type") == "number")
        return _alone(self.mode, judging, watching, frozenset(numbers)) if judging or watching else None

    def asks(self, tool: str) -> bool:
        return any(law.rule.ask for law in self._bound[0])

    def hears(self, hook: str) -> bool:
        judging, watching, _ = self._bound
        return overrides(self, hook) and bool(judging if hook == "check" else watching)

    def edges(self, state: SessionState, mine: Any, now_ms: int) -> Sequence[Edge]:
        # What it remembers is no sum of the store: steps that change it are done one after the other.
        return ()

    def check(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Verdict:
        traces, (judging, _, doubles) = mine or {}, self._bound
        given = call.canonical or _text(call), call.tool, doubles
        for law in judging:
            # Each question costs a call that no rule objects to, so what a rule does not have is not asked.
            if not law.when or _value(law.when, *given):
                verdict: Verdict = law.judge(call, state, traces.get(law.key, NOTHING), facts, given)
                if verdict is not None:
                    return verdict
        return None

    def admit(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Any:
        made, place, (_, watching, doubles) = dict(mine or {}), _place(state, facts), self._bound
        now, given = facts.now_ms, (call.canonical or _text(call), call.tool, doubles)
        for law in watching:
            limit, part = law.rule.limit, law.part(call, now)
            # Its `when` is about the calls that it counts if it is a limit, and about those that come later if it is an order.
            if part is not None and (not limit or not law.when or _value(law.when, *given)):
                amount = law.amount(given) if limit else 0
                made[law.key] = law.begun(made.get(law.key, NOTHING), now, place, amount, part)
        return made or None

    def settle(self, call: ToolCall, outcome: Outcome, state: SessionState, mine: Any, facts: Facts) -> Any:
        if facts.late or not mine:
            return mine
        unknown = outcome.error_type in MAY_HAVE_WORKED or getattr(outcome, "unknown", False)
        return self._over(state, mine, facts, worked=outcome.error_type is None, sure=not unknown)

    def event(self, event: Event, state: SessionState, mine: Any, facts: Facts) -> Any:
        return self._over(state, mine, facts, worked=False, sure=event.name == "withdraw")

    def _over(self, state: SessionState, mine: Any, facts: Facts, *, worked: bool, sure: bool) -> Any:
        made, place, now = mine or {}, _place(state, facts), facts.now_ms
        for law in self._bound[1]:
            before: Trace = made.get(law.key, NOTHING)
            if place in before[1]:
                counts = worked or (not sure and law.action != "after")
                made = {**made, law.key: law.ended(before, now, place, counts=counts)}
        return made or None


@lru_cache(maxsize=64)
def _laws_of(rules: tuple[RuleSettings, ...]) -> tuple[Law, ...]:
    """
    Returns *rules* ready to decide. Raises PolicyError with all mistakes in what they say in CEL, MissingExtra without the package.
    """
    laws = tuple(map(Law, rules))
    if faults := [fault for law in laws for fault in law.faults]:
        raise PolicyError(faults)
    return laws


@lru_cache(maxsize=256)
def _alone(mode: Mode, judging: tuple[Law, ...], watching: tuple[Law, ...], doubles: frozenset[str]) -> Rules:
    """
    Returns the guard of all tools that have the same rules.
    """
    made = Rules(rules=tuple(dict.fromkeys(law.rule for law in judging + watching)), mode=mode)
    object.__setattr__(made, "_bound", (judging, watching, doubles))
    return made


def _text(call: ToolCall) -> bytes:
    """
    Returns the arguments of a call in the form in which they are recorded, so that a replay says the same: 1.0 is 1.
    """
    return call.canonical or canonical(call.arguments) or b"{}"


@lru_cache(maxsize=8)  # A call is judged, and then counted; its arguments may be long.
def _value(one: "Expression", text: bytes, tool: str, doubles: frozenset[str]) -> int:
    """
    Returns the value of an expression: whether it is true, or an amount in millionths, rounded up; less than nothing counts as nothing.
    """
    given = orjson.loads(text)
    made = one.fit(at(given, one.path)) if one.path else one.value(given, tool, doubles)
    if type(made) in (bool, int):
        return made if made is True else max(0, made * MICRO)
    return max(0, int((Decimal(str(made)) * MICRO).to_integral_value(ROUND_CEILING)))


def _tuple(names: str | tuple[str, ...]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _place(state: SessionState, facts: Facts) -> str:
    return f"{facts.holder or state.name}#{facts.seq}"
