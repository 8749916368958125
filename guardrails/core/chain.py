"""
A policy ready to decide: guards, the declarations of tools, and for each tool the hooks that apply to it, bound once.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar

import orjson

from guardrails.core.envelope import Form
from guardrails.core.guards import GUARDS, IMPLIED, LIMITING
from guardrails.core.guards.base import Guard, laid, overrides
from guardrails.core.refusals import ALIASES, filled
from guardrails.core.retries.serving import NO_MODELS, Models
from guardrails.core.state import ADMISSION_MS, NEVER
from guardrails.core.tool import Tool, renewed, source_of
from guardrails.core.values.names import look_by_name
from guardrails.core.values.types import Denial, Mode, Nudge
from guardrails.core.values.units import SIGNS, matcher


if TYPE_CHECKING:
    from guardrails.core.guards.budget import Limits


PLANS: Final = 4_096
"""Tools whose plans are kept; names come from the model. The oldest goes first."""
HOOKED: Final = 64
"""Sets of guards whose hooks are kept."""
WINDOW: Final = 20
"""Executed calls that a session remembers at least."""
FAR_MS: Final = 86_400_000
"""A session whose time is up in more than that is not told so."""

Hook = tuple[str, str, bool, Callable[..., Any]]
"""(name of the guard, key of what it remembers, enforced, method)"""
Hooks = Mapping[str, tuple[Hook, ...]]
"""By event."""
ACTS: Final = ("check", "shape", "spent")
KEEPS: Final = ("admit", "settle")
LOOKS: Final = (("read_only", True), ("repeats", "evidence"))
_OWN: Final = Guard.__module__.rpartition(".")[0]
_PLAIN: Final = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS


T = TypeVar("T")
Words = TypeVar("Words", Denial, Nudge)


def changed(one: T, **others: Any) -> T:
    """
    Returns a copy of *one* with *others* of its attributes.
    """
    made = copy(one)
    vars(made).update(others)
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """
    One entry of a policy's `tools:` list: what is declared and overridden for the tools that *match*.

    *match* is a glob of tool names, or several; *guards* has settings by guard: `{"budget": {"max_calls": 3}}`.
    """

    match: str | tuple[str, ...]
    declared: Mapping[str, Any] = field(default_factory=dict)
    guards: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    mode: Mode | None = None
    on_error: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.match, str):
            object.__setattr__(self, "match", (self.match,))
        if isinstance(self.declared, Mapping):
            object.__setattr__(self, "declared", renewed(self.declared))


class Hooked:
    """
    The hooks of *guards* in a *mode*, bound once for all tools that have the same.
    """

    def __init__(self, guards: Sequence[Guard], mode: Mode) -> None:
        self.there, whole = tuple(guards), with_companions(guards)
        self.acting = [g for g in guards if mode == g.mode == "enforce"]
        self.checking = [g for g in guards if g.hears("check")]
        self.checks = _hooks(guards, "check", mode)
        self.family_admits, self.family_settles = (_hooks(whole, hook, mode) for hook in KEEPS)
        alone = ([g for g in whole if hook not in g.in_families] for hook in KEEPS)
        self.admits, self.settles = map(_hooks, alone, KEEPS, (mode, mode))
        self.shapes = _hooks(self.acting, "shape", mode)
        self.success_shapes = _hooks([g for g in self.acting if not g.only_failures], "shape", mode)
        self.on = _events(whole, mode)
        self.max_bytes = min((g.result_bytes for g in self.acting if g.result_bytes is not None), default=NEVER)
        self.enforced = tuple(dict.fromkeys(g.name for g in self.acting if any(overrides(g, act) for act in ACTS)))
        """Names of the guards that do something."""
        self.locates = tuple((g.name, g.paths) for g in guards if overrides(g, "paths"))
        """Guards that name the paths whose real places are looked up before the decision."""


class Plan(Hooked):
    """
    Everything that applies to one tool, worked out once: the hooks of those of its *guards* that are about it, and what is declared.

    *known* are the tools that are named, None if none are. *on_error*: what follows if a guard fails.
    """

    def __init__(
        self, tool: Tool, guards: Sequence[Guard], hooked: Hooked, on_error: str, known: frozenset[str] | None
    ) -> None:
        vars(self).update(vars(hooked))
        name = tool.name
        checks = zip(self.checking, self.checks, strict=True)
        asks = any(g.asks(name) for g in self.acting)
        if tool.idempotent is None and asks:
            tool = replace(tool, idempotent=False)
        waits = [g.auto_ms for g in self.acting if g.auto_ms is not None]
        safe = (not tool.changes or tool.idempotent) and tool.idempotent is not False
        self.tool = tool
        self.arguments = tool.arguments()
        self.guards = tuple(guards)
        self.fresh_checks = tuple(hook for g, hook in checks if g.checks_fresh(name, known))
        """Those that may say something of a fresh call."""
        self.timeout_ms = None if tool.timeout is None else max(1, round(tool.timeout * 1000))
        self.lasts_ms = self.timeout_ms or ADMISSION_MS
        """How long an admission lasts."""
        self.changes = tool.changes
        self.once = tool.read_only is not True and (tool.idempotent is False or tool.destructive is True)
        """A call whose end is unknown is not made again."""
        self.cost, self.tokens = tool.cost, tool.tokens
        self.known = None if known is None else name in known
        """Whether the tools that are named hold it; None: none are named."""
        self.deny_on_error = asks or on_error == "deny"
        self.source = source_of(tool)
        """What is known of the tool, for the reading of its results."""
        # What a person is asked about is none of it.
        self.auto_ms = waits[0] if waits and safe and not asks else None
        """The longest wait after which the library makes a failed call again by itself; None: it never does."""
        self.recorded: dict[str, Any] | None = None
        """Its part of the record of each call, once there is one."""

    def but(self, **others: Any) -> "Plan":
        """
        Returns the same with *others* of its attributes.
        """
        return changed(self, **others, recorded=None)


@dataclass(eq=False, repr=False)
class Chain:
    """
    Guards and the declarations of tools by their names, with a plan for each tool.

    *messages* are a policy's own words, by code. *models* are learned, and may be loaded again.
    """

    guards: Sequence[Guard]
    tools: Mapping[str, Tool] = field(default_factory=dict)
    rules: Sequence[Rule] = ()
    _: KW_ONLY
    mode: Mode = "enforce"
    on_error: str = "deny"
    form: Form | None = None
    left_out: frozenset[str] = frozenset()
    messages: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    models: Models = NO_MODELS
    by_name: bool = False
    kinds: Sequence[type[Guard]] = GUARDS
    offered: frozenset[str] = frozenset()
    """Tools that a host has listed, whatever it said of them."""
    source: str | None = field(default=None, init=False)
    """The digest of the files that it was made of."""
    least_cost: int | None = field(default=None, init=False)
    """Found once, or given by a replay."""

    def __post_init__(self) -> None:
        self.guards = tuple(self.guards)
        self.messages = {ALIASES.get(code, code): words for code, words in self.messages.items()}
        named = [name for rule in self.rules for name in rule.match if SIGNS.isdisjoint(name)]
        self.known = frozenset([*self.tools, *named]) if self.tools else None
        self.plans: dict[str, Plan] = {}
        self.hooked: dict[tuple[Any, ...], Hooked] = {}
        ruled = self.ruled()
        self.window = max([WINDOW, *(guard.remembers for guard in (*self.guards, *ruled))])
        self.limits: Limits | None = next((g.limits for g in self.guards if g.limits is not None), None)
        enforced = with_companions([g for g in self.guards if self.mode == g.mode == "enforce"])
        self.budget: Limits | None = next((g.limits for g in enforced if g.limits is not None), None)
        self.reserves = self.limits is not None and self.limits.reserves
        lasts_ms = None if self.budget is None else self.budget.own.get("max_elapsed")
        self.soon_ms = NEVER if lasts_ms is None else lasts_ms - FAR_MS
        """From which age on a session is told that its time is soon up."""
        by_calls = [g for g in enforced if g.ends_by_calls]
        self.spenders = _hooks(enforced, "spent", self.mode)
        self.call_spenders = _hooks(by_calls, "spent", self.mode)
        self.end_spenders = _hooks([g for g in by_calls if g.hears("settle")], "spent", self.mode)
        """Those that may find an end in how a call ended, though it cost nothing and time is far."""
        self.turn_spenders = _hooks([g for g in enforced if g.ends_by_turns], "spent", self.mode)
        counting = with_companions([g for g in self.guards if "off" not in (g.mode, self.mode)])
        if all(g.limits is None for g in counting):
            # Responses without a price are counted all the same.
            counting.append(LIMITING())
        others = {g.key: g for g in (*(cls() for cls in IMPLIED), *ruled) if g.mode != "off"}
        there = {g.key for g in counting}
        self.on = _events([*counting, *(g for key, g in others.items() if key not in there)], self.mode)
        self.family = tuple(dict.fromkeys(g.key for g in (*counting, *with_companions(ruled)) if g.family))
        """Keys of what a whole family remembers together."""

    def with_tools(self, tools: Iterable[Tool]) -> "Chain":
        """
        Returns the same with more *tools*; those of a known name are replaced.
        """
        return replace(self, tools={**self.tools, **{tool.name: tool for tool in tools}})

    def with_limits(self, **limits: Any) -> "Chain":
        """
        Returns the same with other *limits*, settings of the guard that has those of a session.
        """
        own = next((g for g in self.guards if g.limits is not None), None)
        guards = [replace(g, **limits) if g is own else g for g in self.guards]
        return self.with_guards(guards if own is not None else [LIMITING(**limits), *guards], self.rules)

    def with_guards(self, guards: Sequence[Guard], rules: Sequence[Rule]) -> "Chain":
        """
        Returns the same of other *guards* and *rules*.
        """
        return replace(self, guards=guards, rules=rules).knowing(self.known)

    def knowing(self, known: frozenset[str] | None, offered: Iterable[str] = ()) -> "Chain":
        """
        Returns the same in which there are no tools but those *known*, and a host has listed those *offered* too.
        """
        plans = self.plans if known == self.known else {}
        return changed(self, known=known, plans=plans, offered=self.offered.union(offered), least_cost=None)

    @property
    def least(self) -> int:
        """
        Micro-dollars of the cheapest tool; 0 if one is free, or nobody lists the tools.
        """
        if self.least_cost is None:
            names = self.offered if self.known is None else self.offered.union(self.tools) & self.known
            self.least_cost = min((self.plan(name).cost for name in names), default=0)
        return self.least_cost

    def plan(self, name: str) -> Plan:
        """
        Returns the plan of the tool *name*.
        """
        plan = self.plans.get(name)
        if plan is None:
            while len(self.plans) >= PLANS:
                self.plans.pop(next(iter(self.plans)), None)
            plan = self.plans[name] = self._make(name)
        return plan

    def _make(self, name: str) -> Plan:
        rules = [rule for rule in self.rules if matcher(tuple(rule.match))(name)]
        tool, settings = self._ruled(self.tools.get(name) or Tool(name=name), rules)
        mode = next((rule.mode for rule in rules if rule.mode), self.mode)
        on_error = next((rule.on_error for rule in rules if rule.on_error), self.on_error)
        guards = self._guards(settings)
        implied = [kind.implied(tool) for kind in IMPLIED if not any(isinstance(g, kind) for g in guards)]
        guards = [*filter(None, implied), *guards]
        own = [g.for_tool(tool) for g in guards if mode != "off" and g.mode != "off"]
        there = [g for g in own if g is not None]
        key = (mode, *map(id, there))
        hooked = self.hooked.get(key)
        if hooked is None:
            if len(self.hooked) >= HOOKED:
                self.hooked.clear()
            # The guards are held by it, so that no other has the same place.
            hooked = self.hooked[key] = Hooked(there, mode)
        return Plan(tool, guards, hooked, on_error, self.known)

    def _ruled(self, own: Tool, rules: Sequence[Rule]) -> tuple[Tool, dict[str, dict[str, Any]]]:
        """
        Returns the tool *own* as it and *rules* declare it, and their settings by guard; the first rule counts.
        """
        declared: dict[str, Any] = {}
        settings: dict[str, dict[str, Any]] = {}
        for rule in reversed(rules):
            # A tool that says that it acts is not made a look by a glob that happens to match.
            acts = own.read_only is False and own.name not in rule.match
            declared |= {key: one for key, one in rule.declared.items() if not (acts and (key, one) in LOOKS)}
            for guard, given in rule.guards.items():
                below = settings.get(guard, {})
                settings[guard] = below | {key: laid(value, below.get(key)) for key, value in given.items()}
        tool = own.override(declared) if declared else own
        if self.by_name and tool.read_only is None:
            tool = replace(tool, read_only=look_by_name(tool.name))
        return tool, settings

    def _guards(self, settings: Mapping[str, Mapping[str, Any]]) -> list[Guard]:
        """
        Returns the guards of a tool for which rules have *settings*.
        """
        guards: list[Guard] = []
        for guard in self.guards:
            guards += guard.ruled(guard, settings[guard.name]) if guard.name in settings else (guard,)
        others = settings.keys() - {guard.name for guard in self.guards} if settings else ()
        for cls in self.kinds if others else ():
            guards += cls.ruled(None, settings[cls.name]) if cls.name in others else ()
        return guards

    def ruled(self) -> list[Guard]:
        """
        Returns the guards that only rules of tools make.
        """
        made = (guard for rule in self.rules if rule.guards for guard in self._guards(rule.guards))
        return [guard for guard in made if guard not in self.guards]

    def needs(self) -> set[tuple[str, str, Any]]:
        """
        Returns (setting, what it needs, value) of the limits that not every host can hold, as `Guard.needs` has them.
        """
        guards = [g for g in (*self.guards, *self.ruled()) if g.mode != "off"]
        made = {(f"{g.name}.{s}", g.needs[s], v) for g in guards for s, v in g.settings().items() if s in g.needs}
        timed = [one.declared.get("timeout") for one in self.rules] + [one.timeout for one in self.tools.values()]
        return made | {("timeout", "run", True)} if any(timed) else made

    def worded(self, verdict: Words) -> Words:
        """
        Returns *verdict* in the policy's own words, where it has some.
        """
        own = self.messages.get(verdict.code)
        if own is None:
            return verdict
        texts: dict[str, Any] = {key: text for key, text in own.items() if hasattr(verdict, key)}
        texts = {key: filled(text, verdict.values, getattr(verdict, key)) for key, text in texts.items()}
        return replace(verdict, **texts)

    def __str__(self) -> str:
        width = len(str(len(self.guards)))
        return "\n".join(f"{i:>{width}}. {guard}" for i, guard in enumerate(self.guards, 1)) or "(no guards)"


def least_of(*chains: Chain) -> int:
    """
    Returns the micro-dollars of the cheapest tool of a session, whose chain is the first, if it or one of its scopes limits money.
    """
    return chains[0].least if any(one.budget is not None and one.budget.priced for one in chains) else 0


def with_companions(guards: Iterable[Guard]) -> list[Guard]:
    """
    Returns *guards*, and after them those that remember something for them and that they do not hold.
    """
    made = [*guards]
    for guard in made:
        there = {each.key for each in made}
        made += [each for each in guard.companions() if each.key not in there]
    return made


def _hooks(guards: Iterable[Guard], method: str, mode: Mode) -> tuple[Hook, ...]:
    there = (g for g in guards if g.hears(method))
    return tuple((g.name, g.key, mode == g.mode == "enforce", _plain(g, method)) for g in there)


def _plain(guard: Guard, method: str) -> Callable[..., Any]:
    """
    Returns the hook *method*, which raises TypeError if a guard of one's own would remember what cannot be packed.
    """
    hook: Callable[..., Any] = getattr(guard, method)
    if method in ACTS or type(guard).__module__.startswith(_OWN):
        return hook

    @wraps(hook)
    def plain(*asked: Any) -> Any:
        mine = hook(*asked)
        orjson.dumps(mine, option=_PLAIN)
        return mine

    return plain


def _events(guards: Sequence[Guard], mode: Mode) -> dict[str, tuple[Hook, ...]]:
    names = dict.fromkeys(name for guard in guards for name in guard.events)
    return {name: _hooks([guard for guard in guards if name in guard.events], "event", mode) for name in names}
