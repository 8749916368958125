"""
The declarations of a policy for some tools, and those that apply to one tool.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from guardrails.core.arguments import Arguments
from guardrails.core.guards.access.approve import Approve
from guardrails.core.guards.base import Guard
from guardrails.core.guards.results.retry_budget import RetryBudget
from guardrails.core.guards.results.retryable import Retryable
from guardrails.core.result import Source
from guardrails.core.tools.tool import Tool, renewed
from guardrails.core.values.types import Mode


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
    tokens: int
    known: bool | None
    """Whether the tools that are named hold it; None: none are named."""
    deny_on_error: bool
    enforced: tuple[str, ...]
    """Names of the guards that do something for it."""
    locates: tuple[tuple[str, Callable[..., Any]], ...]
    """Guards that name the paths whose real places are looked up before the decision."""
    unfit_checks: tuple[tuple[str, bool, Callable[..., Any]], ...]
    """Those of a call whose arguments do not fit: without what need not look at what is refused anyhow."""
    unfit_locates: tuple[tuple[str, Callable[..., Any]], ...]
    retry_budgets: tuple[tuple[bool, RetryBudget], ...]
    """(enforced, budget)"""
    source: Source
    """What is known of the tool, for the reading of its results."""
    auto_ms: int | None = field(init=False)
    """The longest wait, in milliseconds, after which the library makes a failed call again by itself; None: it never does."""

    def __post_init__(self) -> None:
        tool, self.auto_ms = self.tool, None
        # What a person is asked about is none of it.
        safe = (tool.read_only or tool.repeats == "evidence" or tool.idempotent) and tool.idempotent is not False
        if safe and not any(isinstance(each, Approve) and each.asks(tool.name) for each in self.guards):
            for each in self.guards:
                if isinstance(each, Retryable) and each.auto and each.name in self.enforced:
                    self.auto_ms = round(each.auto_max_wait * 1000)
