"""
A policy ready to decide: the guards in order, and what applies to each tool.
"""

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import replace
from typing import Any, Final

from guardrails.core.envelope.envelope import Form
from guardrails.core.guards import GUARDS
from guardrails.core.guards.access.approve import Approve
from guardrails.core.guards.access.held import Held
from guardrails.core.guards.access.validation import Validation
from guardrails.core.guards.base import Guard, overrides
from guardrails.core.guards.limits.budget import Budget
from guardrails.core.guards.limits.tool_budget import ToolBudget
from guardrails.core.guards.results.retry_budget import RetryBudget
from guardrails.core.guards.session_limits import Far
from guardrails.core.guards.settings import filled, laid
from guardrails.core.retries.serving import NO_MODELS, Models
from guardrails.core.state.state import NEVER, SessionState
from guardrails.core.tools.names import look_by_name
from guardrails.core.tools.tool import Tool, source_of
from guardrails.core.values.types import Denial, Mode, Nudge
from guardrails.core.values.units import matcher

from .plan import Plan, Rule


def far_of(guards: Iterable[Guard]) -> Far | None:
    """
    Returns the test that the limits of all *guards* are far. Returns None if there are none, or one of them has no
    test.
    """
    tests = [guard.far() for guard in guards]
    known = [test for test in tests if test is not None]
    if not tests or len(known) < len(tests):
        return None
    if len(known) == 1:
        return known[0]
    return lambda state, now_ms, estimate: all(test(state, now_ms, estimate) for test in known)


PLANS: Final = 1_024
"""Tools whose plan is kept; a model that makes up names cannot fill the memory."""
ACTS: Final = ("check", "shape", "shape_failure", "spent", "blown", "turn_spent", "turn_refused")
SHAPES: Final = ("shape", "shape_failure")
FAR_MS: Final = 86_400_000
"""No call is held to an end of its session that is as far away: a day."""
WINDOW: Final = 20
"""Executed calls that every session remembers at least."""


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
        form: Form | None = None,
        left_out: frozenset[str] = frozenset(),
        messages: Mapping[str, Mapping[str, str]] | None = None,
        models: Models = NO_MODELS,
        by_name: bool = False,
        kinds: Iterable[type[Guard]] = GUARDS,
    ) -> None:
        self.kinds = tuple(kinds)
        """The guards that a rule may set, in their order."""
        self.models = models
        """Learned models; what is loaded may be replaced while the chain is used."""
        self.guards = tuple(guards)
        self.tools = {tool.name: tool for tool in tools}
        self.rules = tuple(rules)
        self.mode: Mode = mode
        self.on_error = on_error
        self.form, self.left_out, self.by_name = form, left_out, by_name
        self.messages = dict(messages or {})
        self.known = self._known()
        self.source: str | None = None  # what stands for the contents of the files that it was read from again
        self.least: int | None = None
        """The cheapest tool, as records tell it; None: to be found. See `exhaustion`."""
        self.window = max([WINDOW, *(guard.remembers for guard in (*self.guards, *self.ruled("remembers")))])
        self.limits = next((g.limits for g in self.guards if g.limits is not None), None)
        """Those of the session, even if they are only observed."""
        enforced = [g for g in self.guards if self._enforced(g)]
        self.budget = next((g.limits for g in enforced if g.limits is not None), None)
        lasts_ms = None if self.budget is None else self.budget.limit(SessionState(), "max_elapsed")
        self.soon_ms = NEVER if lasts_ms is None else lasts_ms - FAR_MS
        """When its end is near, in milliseconds from the session's first event."""
        self.spenders = _methods(enforced, "spent", "blown")
        self.turn_spenders = _methods(enforced, "turn_spent", "turn_refused")
        self.refusal_spenders = _methods(enforced, "turn_refused")
        """The questions at the end of a turn that nobody told of."""
        self.call_spenders = _methods(enforced, "spent")
        self.call_turn_spenders = _methods(enforced, "turn_spent")
        self.enders = tuple(g for g in enforced if overrides(g, "spent") or overrides(g, "turn_spent"))
        """The guards by which a call may end the session."""
        self.far = far_of(self.enders)
        held = [*(g.limits for g in self.guards), *(g for g in self.ruled("limits") if isinstance(g, ToolBudget))]
        self.reserves = any(limits.reserves for limits in held if limits is not None)
        """Whether money or tokens are limited, of the session or of a tool."""
        # What only observes keeps its counters too, else it would see nothing.
        counting = [g for g in self.guards if g.mode != "off" and mode != "off"]
        self.requests = _methods(counting, "request")
        self.usages = _methods(counting, "usage")
        self.responses = _methods([g for g in counting if g.limits is None or g.limits.closes], "response")
        self.repeating = tuple(f"{cls.name}." for cls in self.kinds if cls.nudges_repeats)
        """Beginnings of the codes of nudges that are left out if an argument is new."""
        self.plans: dict[str, Plan] = {}
        """Those made so far; `plan` makes one."""

    def with_tools(self, tools: Iterable[Tool]) -> "Chain":
        """
        Returns the same chain that knows more tools.
        """
        return self._again(self.guards, {**self.tools, **{tool.name: tool for tool in tools}}.values())

    def with_budget(self, **limits: Any) -> "Chain":
        """
        Returns the same chain with other session limits.
        """
        own = next((g for g in self.guards if g.limits is not None), None)
        guards = [replace(g, **limits) if g is own else g for g in self.guards]
        made = self._again(guards if own is not None else [Budget(**limits), *guards], self.tools.values())
        return made.knowing(self.known)

    def knowing(self, known: frozenset[str] | None) -> "Chain":
        """
        Returns the same chain with the tools *known* as all there are; None says that they are not listed.
        """
        made = copy(self)
        made.known, made.plans = known, {}
        return made

    def with_guards(self, guards: Iterable[Guard], rules: Iterable[Rule]) -> "Chain":
        """
        Returns the same chain with other settings of its guards and rules.
        """
        return self._again(guards, self.tools.values(), rules=tuple(rules)).knowing(self.known)

    def with_least(self, least: int | None) -> "Chain":
        """
        Returns the same chain with *least* as the cost of the cheapest tool; see `exhaustion.least`.
        """
        made = copy(self)
        made.least = least
        return made

    def _again(self, guards: Iterable[Guard], tools: Iterable[Tool], **other: Any) -> "Chain":
        same = ("rules", "mode", "on_error", "form", "left_out", "messages", "models", "by_name", "kinds")
        return Chain(guards, tools=tools, **{name: getattr(self, name) for name in same} | other)

    def plan(self, name: str) -> Plan:
        """
        Returns the declarations that apply to the tool *name*.
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
        if self.by_name and tool.read_only is None:
            tool = replace(tool, read_only=look_by_name(name))
        guards: list[Guard] = []
        for guard in self.guards:
            said = settings.pop(guard.name, None)
            guards += (guard,) if said is None else guard.ruled(guard, said)
        for cls in self.kinds:
            if cls.name in settings:
                guards += cls.ruled(None, settings[cls.name])
        if tool.held:
            # First, as no other reason is of use then.
            guards.insert(0, Held())
        if tool.repeats == "ask" and not any(isinstance(g, Approve) for g in guards):
            guards.insert(0, Approve())
        heard = [g for g in guards if g.mode != "off" and g.applies(tool)]
        present = [] if (mode or self.mode) == "off" else [(g, self._enforced(g, mode)) for g in heard]
        checking = [(g, (g.name, enforced, g.check)) for g, enforced in present if overrides(g, "check")]
        fresh = [(g, check) for g, check in checking if g.checks_fresh(name, self.known)]
        locating = [(g, (g.name, g.paths)) for g, _ in present if overrides(g, "paths")]
        acting = [g for g, enforced in present if enforced]
        # What validation refuses need not be looked at by what looks long.
        refused = any(isinstance(g, Validation) for g in acting)
        asks = any(isinstance(g, Approve) and g.asks(name) for g in acting)
        if tool.idempotent is None and asks:
            # What a person is asked about does something each time.
            tool = replace(tool, idempotent=False)
        shapes = [(g, shape, (g.name, getattr(g, shape))) for g in acting for shape in SHAPES if overrides(g, shape)]
        return Plan(
            tool=tool,
            arguments=tool.arguments(),
            guards=tuple(guards),
            checks=tuple(check for _, check in checking),
            fresh_checks=tuple(check for _, check in fresh),
            far_checks=tuple(check for g, check in fresh if not any(g is ender for ender in self.enders)),
            charges=tuple((g.name, enforced, g.charge) for g, enforced in present if overrides(g, "charge")),
            settles=tuple((g.name, g.settle) for g, _ in present if overrides(g, "settle")),
            shapes=tuple(shape for _, _, shape in shapes),
            success_shapes=tuple(shape for _, method, shape in shapes if method == "shape"),
            max_bytes=min((g.result_bytes for g in acting if g.result_bytes is not None), default=NEVER),
            timeout_ms=None if tool.timeout is None else max(1, round(tool.timeout * 1000)),
            changes=not (tool.read_only or tool.repeats == "evidence"),
            cost=tool.cost,
            tokens=tool.tokens,
            known=None if self.known is None else name in self.known,
            deny_on_error=asks or on_error == "deny",
            enforced=tuple(dict.fromkeys(g.name for g in acting if any(overrides(g, method) for method in ACTS))),
            retry_budgets=tuple((enforced, g) for g, enforced in present if isinstance(g, RetryBudget)),
            source=source_of(tool),
            locates=tuple(paths for _, paths in locating),
            unfit_checks=tuple(check for g, check in checking if g.sees_unfit or not refused),
            unfit_locates=tuple(paths for g, paths in locating if g.sees_unfit or not refused),
        )

    def _ruled(self, name: str, tool: Tool) -> tuple[dict[str, Any], dict[str, dict[str, Any]], Mode | None, str]:
        """
        Returns the declarations and guard settings of the rules that match *name*: first match wins, key by key.
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
                if not (acts and (key, value) in (("read_only", True), ("repeats", "evidence"))):
                    declared.setdefault(key, value)
            for guard, own in rule.guards.items():
                held = settings.get(guard, {})
                added = {key: laid(held[key], value) if key in held else value for key, value in own.items()}
                settings[guard] = {**held, **added}
            mode = mode or rule.mode
            on_error = on_error or rule.on_error
        return declared, settings, mode, on_error or self.on_error

    def _enforced(self, guard: Guard, mode: Mode | None = None) -> bool:
        return guard.mode == "enforce" and (mode or self.mode) == "enforce"

    def _known(self) -> frozenset[str] | None:
        named = [pattern for rule in self.rules for pattern in rule.match if not set(pattern) & set("*?[")]
        return frozenset([*self.tools, *named]) if self.tools else None

    def ruled(self, method: str | None = None) -> list[Guard]:
        """
        Returns the guards that rules set; those that have a *method* of their own.
        """
        own = {guard.name: guard for guard in self.guards}
        there = (*self.kinds, *(type(guard) for guard in self.guards))
        kinds = {cls.name: cls for cls in there if method is None or overrides(cls, method)}
        return [
            guard
            for rule in self.rules
            for name, settings in rule.guards.items()
            if name in kinds
            for guard in kinds[name].ruled(own.get(name), settings)
        ]

    def worded(self, said: Denial) -> Denial:
        """
        Returns a denial in the policy's own words, each if the numbers it uses are there.
        """
        own = self.messages.get(said.code)
        if own is None:
            return said
        words: dict[str, Any] = {key: filled(text, said.values, getattr(said, key)) for key, text in own.items()}
        return replace(said, **words)

    def worded_hint(self, said: Nudge) -> str:
        """
        Returns a nudge's hint in the policy's own words.
        """
        own = self.messages.get(said.code, {}).get("hint")
        return said.hint if own is None else filled(own, said.values, said.hint)

    def __str__(self) -> str:
        width = len(str(len(self.guards)))
        return "\n".join(f"{i:>{width}}. {guard}" for i, guard in enumerate(self.guards, 1)) or "(no guards)"

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


def _methods(guards: Iterable[Guard], *names: str) -> tuple[Callable[..., Any], ...]:
    return tuple(getattr(guard, name) for guard in guards for name in names if overrides(guard, name))
