"""
A policy ready to decide: the guards in order, and what applies to each tool.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from guardrails.core.arguments import Arguments
from guardrails.core.guards.base import Guard, filled, overrides
from guardrails.core.guards.limits.budget import Budget
from guardrails.core.guards.limits.denials import Denials
from guardrails.core.guards.limits.rate import Rate
from guardrails.core.guards.limits.tool_budget import added, tool_budgets
from guardrails.core.guards.repeats.duplicates import Duplicates
from guardrails.core.guards.results.truncate import Truncate
from guardrails.core.retries.serving import NO_MODELS, Models
from guardrails.core.state.state import NEVER
from guardrails.core.tools.tool import Tool
from guardrails.core.values.types import Denial, Mode, Nudge
from guardrails.core.values.units import matcher

from .far import far_of


PLANS: Final = 1_024
"""Tools whose plan is kept; a model that makes up names cannot fill the memory."""
ACTS: Final = ("check", "shape", "spent", "turn_spent")
WINDOW: Final = 20
"""Executed calls that every session remembers at least."""


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


@dataclass(slots=True)
class Plan:
    """
    Everything that applies to one tool, worked out once.
    """

    tool: Tool
    arguments: Arguments | None
    guards: tuple[Guard, ...]
    checks: tuple[tuple[str, bool, Callable[..., Any]], ...]
    """(name, enforced, check)"""
    fresh_checks: tuple[tuple[str, bool, Callable[..., Any]], ...]
    """Those that may say something of a fresh call; see `Guard.checks_fresh`."""
    far_checks: tuple[tuple[str, bool, Callable[..., Any]], ...]
    """Those of them that do not ask for the session's limits; see `far`."""
    charges: tuple[tuple[str, bool, Callable[..., Mapping[str, int]]], ...]
    settles: tuple[tuple[str, Callable[..., Mapping[str, int]]], ...]
    shapes: tuple[tuple[str, Callable[..., Any]], ...]
    success_shapes: tuple[tuple[str, Callable[..., Any]], ...]
    max_bytes: int
    timeout_ms: int | None
    changes: bool
    cost: int
    known: bool | None
    """Whether the tools that are named hold it; None: none are named."""
    deny_on_error: bool
    enforced: tuple[str, ...]
    """Names of the guards that do something for it."""
    locates: tuple[tuple[str, Callable[..., Any]], ...]
    """What names the paths whose real places are to be looked up before it is decided."""


class Chain:
    """
    The guards of a policy as a list in order; printing it shows that list.
    """

    def __init__(
        self,
        guards: Iterable[Guard],
        *,
        tools: Iterable[Tool] = (),
        rules: Iterable[Rule] = (),
        mode: Mode = "enforce",
        on_error: str = "deny",
        merged: bool = False,
        left_out: frozenset[str] = frozenset(),
        messages: Mapping[str, Mapping[str, str]] | None = None,
        models: Models = NO_MODELS,
    ) -> None:
        self.models = models
        """Learned models; what is loaded may be replaced while the chain is used."""
        self.guards = tuple(guards)
        self.tools = {tool.name: tool for tool in tools}
        self.rules = tuple(rules)
        self.mode: Mode = mode
        self.on_error = on_error
        self.merged = merged
        self.left_out = left_out
        self.messages = dict(messages or {})
        self.known = self._known()
        self.least: int | None = None
        """The cheapest tool, as records tell it; None: to be found. See `exhaustion`."""
        self.window = max(
            [WINDOW, *(g.window for g in self.guards if isinstance(g, Duplicates)), *self._rule_windows()]
        )
        self.budget = next((g for g in self.guards if isinstance(g, Budget) and self._enforced(g)), None)
        enforced = [g for g in self.guards if g.active and self._enforced(g)]
        self.spenders = tuple(g.spent for g in enforced if overrides(g, "spent"))
        self.turn_spenders = tuple(g.turn_spent for g in enforced if overrides(g, "turn_spent"))
        self.refusal_spenders = tuple(g.turn_spent for g in enforced if isinstance(g, Denials))
        """What is asked where a turn is over that nobody told of."""
        spending = [g for g in enforced if "spent" in g.calls_spend]
        self.call_spenders = tuple(g.spent for g in spending if overrides(g, "spent"))
        spending = [g for g in enforced if "turn_spent" in g.calls_spend]
        self.call_turn_spenders = tuple(g.turn_spent for g in spending if overrides(g, "turn_spent"))
        self.far = far_of(self.budget, (*self.call_spenders, *self.call_turn_spenders))
        # What only observes keeps its counters too, else it would see nothing.
        counting = [g for g in self.guards if g.active and g.mode != "off" and mode != "off"]
        self.requests = tuple(g.request for g in counting if overrides(g, "request"))
        self.usages = tuple(g.usage for g in counting if overrides(g, "usage"))
        self.responses = tuple(g.response for g in counting if isinstance(g, Budget) and g.closes)
        self.plans: dict[str, Plan] = {}
        """Those made so far; `plan` makes one."""

    def with_tools(self, tools: Iterable[Tool]) -> "Chain":
        """
        The same chain that knows more tools.
        """
        return self._again(self.guards, {**self.tools, **{tool.name: tool for tool in tools}}.values())

    def with_budget(self, **limits: Any) -> "Chain":
        """
        The same chain with other session limits.
        """
        own = next((g for g in self.guards if isinstance(g, Budget)), None)
        if own is None:
            return self._again((Budget(**limits), *self.guards), self.tools.values())
        return self._again([replace(g, **limits) if g is own else g for g in self.guards], self.tools.values())

    def _again(self, guards: Iterable[Guard], tools: Iterable[Tool]) -> "Chain":
        return Chain(
            guards,
            tools=tools,
            rules=self.rules,
            mode=self.mode,
            on_error=self.on_error,
            merged=self.merged,
            left_out=self.left_out,
            messages=self.messages,
            models=self.models,
        )

    def plan(self, name: str) -> Plan:
        """
        What applies to the tool *name*.
        """
        plan = self.plans.get(name)
        if plan is None:
            if len(self.plans) >= PLANS:
                self.plans.clear()
            plan = self.plans[name] = self._make(name)
        return plan

    def _make(self, name: str) -> Plan:
        own = self.tools.get(name) or Tool(name=name)
        declared, settings, mode, on_error = self._ruled(name, own)
        tool = own.override(declared)
        guards: list[Guard] = []
        for guard in self.guards:
            said = settings.pop(guard.name, None)
            guards.append(guard)
            if said is None:
                continue
            if isinstance(guard, Budget):
                guards.extend(tool_budgets(said))
            elif isinstance(guard, Rate):
                guards.append(Rate(**said, per_tool=True))
            else:
                guards[-1] = replace(guard, **said)
        guards.extend(added(settings))
        heard = [g for g in guards if g.mode != "off" and g.active and g.applies(tool)]
        present = [] if (mode or self.mode) == "off" else [(g, self._enforced(g, mode)) for g in heard]
        checking = [(g, (g.name, enforced, g.check)) for g, enforced in present if overrides(g, "check")]
        fresh = [(g, check) for g, check in checking if g.checks_fresh(name, self.known)]
        shaped = [g for g, enforced in present if enforced and overrides(g, "shape")]
        return Plan(
            tool=tool,
            arguments=tool.arguments(),
            guards=tuple(guards),
            checks=tuple(check for _, check in checking),
            fresh_checks=tuple(check for _, check in fresh),
            far_checks=tuple(check for g, check in fresh if g is not self.budget),
            charges=tuple((g.name, enforced, g.charge) for g, enforced in present if overrides(g, "charge")),
            settles=tuple((g.name, g.settle) for g, _ in present if overrides(g, "settle")),
            shapes=tuple((g.name, g.shape) for g in shaped),
            success_shapes=tuple((g.name, g.shape) for g in shaped if g.shapes_successes),
            max_bytes=min((g.max_bytes for g in shaped if isinstance(g, Truncate)), default=NEVER),
            timeout_ms=None if tool.timeout is None else max(1, round(tool.timeout * 1000)),
            changes=not (tool.read_only or tool.stable),
            cost=tool.cost,
            known=None if self.known is None else name in self.known,
            deny_on_error=on_error == "deny",
            enforced=tuple(
                dict.fromkeys(
                    g.name for g, enforced in present if enforced and any(overrides(g, method) for method in ACTS)
                )
            ),
            locates=tuple((g.name, g.paths) for g, _ in present if overrides(g, "paths")),
        )

    def _ruled(self, name: str, tool: Tool) -> tuple[dict[str, Any], dict[str, dict[str, Any]], Mode | None, str]:
        """
        The declarations and guard settings of the rules that match *name*: first match wins, key by key.
        """
        declared: dict[str, Any] = {}
        settings: dict[str, dict[str, Any]] = {}
        mode: Mode | None = None
        on_error: str | None = None
        for rule in self.rules:
            if not matcher(tuple(rule.match))(name):
                continue
            # A glob only guesses: it makes no look of a tool that was declared to change something.
            acts = tool.read_only is False and name not in rule.match
            for key, value in rule.declared.items():
                if not (acts and value is True and key in ("read_only", "stable")):
                    declared.setdefault(key, value)
            for guard, own in rule.guards.items():
                for key, value in own.items():
                    settings.setdefault(guard, {}).setdefault(key, value)
            mode = mode or rule.mode
            on_error = on_error or rule.on_error
        return declared, settings, mode, on_error or self.on_error

    def _enforced(self, guard: Guard, mode: Mode | None = None) -> bool:
        return guard.mode == "enforce" and (mode or self.mode) == "enforce"

    def _known(self) -> frozenset[str] | None:
        named = [pattern for rule in self.rules for pattern in rule.match if not set(pattern) & set("*?[")]
        return frozenset([*self.tools, *named]) if self.tools else None

    def _rule_windows(self) -> list[int]:
        return [int(rule.guards.get("duplicates", {}).get("window", 0)) for rule in self.rules]

    def worded(self, said: Denial) -> Denial:
        """
        A denial in the policy's own words, each where the numbers it uses are there.
        """
        own = self.messages.get(said.code)
        if own is None:
            return said
        words: dict[str, Any] = {key: filled(text, said.values, getattr(said, key)) for key, text in own.items()}
        return replace(said, **words)

    def worded_hint(self, said: Nudge) -> str:
        """
        A nudge's hint in the policy's own words.
        """
        own = self.messages.get(said.code, {}).get("hint")
        return said.hint if own is None else filled(own, said.values, said.hint)

    def __str__(self) -> str:
        if not self.guards:
            return "(no guards)"
        width = len(str(len(self.guards)))
        return "\n".join(f"{i:>{width}}. {guard}" for i, guard in enumerate(self.guards, 1))

    def __repr__(self) -> str:
        shown = [", ".join(str(guard) for guard in self.guards)] if self.guards else []
        shown += [f"mode={self.mode}"] if self.mode != "enforce" else []
        shown += [f"tools: {len(self.tools)}"] if self.tools else []
        shown += [f"rules: {len(self.rules)}"] if self.rules else []
        return f"Chain({'; '.join(shown)})"

    def __iter__(self) -> Any:
        return iter(self.guards)

    def __len__(self) -> int:
        return len(self.guards)
