"""
Guards for the tool calls of an LLM agent: budgets, duplicates, validation, self-describing results.

    from guardrails import Budget, Duplicates, Policy

Everything is imported when it is first used, so that importing the package costs next to nothing.
"""

import os


TYPE_CHECKING = False
"""True to type checkers, as that of `typing`, whose import takes longer than all else here."""

if TYPE_CHECKING:
    from typing import Any

    from guardrails.core.decision import Decision as Decision
    from guardrails.core.envelope import CallDenied as CallDenied
    from guardrails.core.envelope import Envelope as Envelope
    from guardrails.core.envelope import limit_fields as limit_fields
    from guardrails.core.guards.approve import Approve as Approve
    from guardrails.core.guards.base import Guard as Guard
    from guardrails.core.guards.base import guard as guard
    from guardrails.core.guards.budget import Budget as Budget
    from guardrails.core.guards.denials import Denials as Denials
    from guardrails.core.guards.duplicates import Duplicates as Duplicates
    from guardrails.core.guards.growth import Growth as Growth
    from guardrails.core.guards.loops import Loops as Loops
    from guardrails.core.guards.rate import Rate as Rate
    from guardrails.core.guards.retry_budget import RetryBudget as RetryBudget
    from guardrails.core.guards.retryable import Retryable as Retryable
    from guardrails.core.guards.rules import Rules as Rules
    from guardrails.core.guards.shell import Shell as Shell
    from guardrails.core.guards.streak import Streak as Streak
    from guardrails.core.guards.summary import Summary as Summary
    from guardrails.core.guards.tool_filter import ToolFilter as ToolFilter
    from guardrails.core.guards.truncate import Truncate as Truncate
    from guardrails.core.guards.validation import Validation as Validation
    from guardrails.core.guards.workspace import Workspace as Workspace
    from guardrails.core.tool import Tool as Tool
    from guardrails.core.values.errors import GuardrailsError as GuardrailsError
    from guardrails.core.values.errors import PolicyError as PolicyError
    from guardrails.core.values.types import Denial as Denial
    from guardrails.core.values.types import Failed as Failed
    from guardrails.core.values.types import Nudge as Nudge
    from guardrails.core.values.types import Outcome as Outcome
    from guardrails.core.values.types import Success as Success
    from guardrails.core.values.version import __version__ as __version__
    from guardrails.policy.policy import Policy as Policy
    from guardrails.policy.tools import Registry as Registry
    from guardrails.session.session import Session as Session
    from guardrails.stores.memory import MemoryStore as MemoryStore
    from guardrails.stores.postgres import PostgresStore as PostgresStore
    from guardrails.stores.redis import RedisStore as RedisStore
    from guardrails.stores.sqlite import SqliteStore as SqliteStore

    from .sinks import JsonLines as JsonLines
    from .sinks import MemorySink as MemorySink

_NAMES = {
    "core.decision": "Decision",
    "core.envelope": "CallDenied Envelope limit_fields",
    "core.guards.approve": "Approve",
    "core.guards.shell": "Shell",
    "core.guards.tool_filter": "ToolFilter",
    "core.guards.validation": "Validation",
    "core.guards.workspace": "Workspace",
    "core.guards.base": "Guard guard",
    "core.guards.budget": "Budget",
    "core.guards.denials": "Denials",
    "core.guards.growth": "Growth",
    "core.guards.rate": "Rate",
    "core.guards.streak": "Streak",
    "core.guards.duplicates": "Duplicates",
    "core.guards.loops": "Loops",
    "core.guards.retry_budget": "RetryBudget",
    "core.guards.retryable": "Retryable",
    "core.guards.rules": "Rules",
    "core.guards.summary": "Summary",
    "core.guards.truncate": "Truncate",
    "core.tool": "Tool",
    "core.values.errors": "GuardrailsError PolicyError",
    "core.values.types": "Denial Failed Nudge Outcome Success",
    "core.values.version": "__version__",
    "policy.policy": "Policy",
    "policy.tools": "Registry",
    "session.session": "Session",
    "sinks": "JsonLines MemorySink",
    "stores.memory": "MemoryStore",
    "stores.postgres": "PostgresStore",
    "stores.redis": "RedisStore",
    "stores.sqlite": "SqliteStore",
}
"""Of each module, what is imported from here."""
_ELSEWHERE = {
    "agent.conversations": "Conversations",
    "core.arguments": "Arguments arguments_of",
    "core.chain": "Chain Rule",
    "core.guards.base": "Edge Facts SessionState ToolCall",
    "core.guards.loop_score": "LoopScore",
    "core.tool": "FailureRule ResultClassifier",
    "core.values.names": "session_name",
    "core.values.usage": "Price",
    "errors": "CallFailed LoopLimitExceeded ResponseFailed SessionError StoreError",
    "session.calls": "ParkedCall",
    "session.final_answer": "FinalAnswer",
    "session.session": "scoped",
    "session.steps": "current_session",
    "sinks": "OnRecord by_session read",
}
"""Of each module, what fewer programs need, and import from there."""

_HOME = {name: home for home, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_HOME.keys() - {"__version__"})  # noqa: PLE0605

# The distribution guardrails-ai installs a package of this very name; pip lets either overwrite the other.
if os.path.exists(os.path.join(os.path.dirname(__file__), "hub")) and os.path.exists(  # noqa: PTH110, PTH118, PTH120
    os.path.join(os.path.dirname(__file__), "guard.py")  # noqa: PTH118, PTH120
):
    raise ImportError(
        "the package `guardrails` here holds files of the distribution guardrails-ai as well as of toolcall-guardrails: "
        "both install a package of this name. Uninstall both, then install the one you want in this environment"
    )


def __getattr__(name: str) -> "Any":
    home = _HOME.get(name)
    if home is None:
        place = next((place for place, names in _ELSEWHERE.items() if name in names.split()), None)
        if place is not None:
            # An AttributeError would be told without its words by `from guardrails import ...`.
            raise ImportError(f"`{name}` is not in `guardrails`: write `from guardrails.{place} import {name}`")
        near = ""
        if name[:1].isupper():  # no module that is about to be imported
            from difflib import get_close_matches

            near = "".join(f", did you mean `{one}`?" for one in get_close_matches(name, _HOME, 1))
        raise AttributeError(f"module `guardrails` has no attribute `{name}`{near}")
    value = getattr(__import__(f"guardrails.{home}", fromlist=(name,)), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
