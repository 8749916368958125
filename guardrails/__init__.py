"""
Guards for the tool calls of an LLM agent: budgets, duplicates, validation, self-describing results.

    from guardrails import Budget, Duplicates, Policy

Everything is imported when it is first used, so that importing the package costs next to nothing.
"""

import importlib
import os

from typing import TYPE_CHECKING, Any


if TYPE_CHECKING:
    from .arguments import Arguments as Arguments
    from .arguments import arguments_of as arguments_of
    from .chain import Chain as Chain
    from .chain import Rule as Rule
    from .conversations import Conversations as Conversations
    from .decide import Decision as Decision
    from .envelope import Envelope as Envelope
    from .errors import CallDenied as CallDenied
    from .errors import CallFailed as CallFailed
    from .errors import GuardrailsError as GuardrailsError
    from .errors import LoopLimitExceeded as LoopLimitExceeded
    from .errors import PolicyError as PolicyError
    from .errors import ResponseFailed as ResponseFailed
    from .errors import SessionError as SessionError
    from .errors import StoreError as StoreError
    from .guards.base import Facts as Facts
    from .guards.base import Guard as Guard
    from .guards.base import guard as guard
    from .guards.budget import Budget as Budget
    from .guards.denials import Denials as Denials
    from .guards.duplicates import Duplicates as Duplicates
    from .guards.growth import Growth as Growth
    from .guards.loops import Loops as Loops
    from .guards.rate import Rate as Rate
    from .guards.retryable import Retryable as Retryable
    from .guards.shell import Shell as Shell
    from .guards.streak import Streak as Streak
    from .guards.summary import Summary as Summary
    from .guards.tool_filter import ToolFilter as ToolFilter
    from .guards.truncate import Truncate as Truncate
    from .guards.validation import Validation as Validation
    from .guards.workspace import Workspace as Workspace
    from .merged import limit_fields as limit_fields
    from .outcome import FailureRule as FailureRule
    from .outcome import ResultClassifier as ResultClassifier
    from .policy import Policy as Policy
    from .registry import Registry as Registry
    from .session import Session as Session
    from .sinks import JsonLines as JsonLines
    from .sinks import MemorySink as MemorySink
    from .sinks import OnRecord as OnRecord
    from .sinks import by_session as by_session
    from .sinks import read as read
    from .state import SessionState as SessionState
    from .stores.memory import MemoryStore as MemoryStore
    from .stores.sqlite import SqliteStore as SqliteStore
    from .tool import Tool as Tool
    from .types import Denial as Denial
    from .types import Nudge as Nudge
    from .types import Outcome as Outcome
    from .types import Success as Success
    from .types import ToolCall as ToolCall
    from .usage import Price as Price

__version__ = "0.1.0"

_HOME = {
    "Arguments": "arguments",
    "Budget": "guards.budget",
    "CallDenied": "errors",
    "CallFailed": "errors",
    "Chain": "chain",
    "Conversations": "conversations",
    "Decision": "decide",
    "Denial": "types",
    "Denials": "guards.denials",
    "Duplicates": "guards.duplicates",
    "Envelope": "envelope",
    "Facts": "guards.base",
    "Growth": "guards.growth",
    "Loops": "guards.loops",
    "Guard": "guards.base",
    "FailureRule": "outcome",
    "GuardrailsError": "errors",
    "JsonLines": "sinks",
    "LoopLimitExceeded": "errors",
    "MemorySink": "sinks",
    "OnRecord": "sinks",
    "MemoryStore": "stores.memory",
    "Nudge": "types",
    "Outcome": "types",
    "Policy": "policy",
    "PolicyError": "errors",
    "Price": "usage",
    "Rate": "guards.rate",
    "Registry": "registry",
    "ResponseFailed": "errors",
    "ResultClassifier": "outcome",
    "Retryable": "guards.retryable",
    "Rule": "chain",
    "Session": "session",
    "SessionError": "errors",
    "SessionState": "state",
    "SqliteStore": "stores.sqlite",
    "StoreError": "errors",
    "Shell": "guards.shell",
    "Streak": "guards.streak",
    "Success": "types",
    "Summary": "guards.summary",
    "Tool": "tool",
    "ToolCall": "types",
    "ToolFilter": "guards.tool_filter",
    "Truncate": "guards.truncate",
    "Validation": "guards.validation",
    "Workspace": "guards.workspace",
    "arguments_of": "arguments",
    "by_session": "sinks",
    "guard": "guards.base",
    "limit_fields": "merged",
    "read": "sinks",
}

__all__ = sorted(_HOME)  # noqa: PLE0605

# The distribution guardrails-ai installs a package of this very name; pip lets either overwrite the other.
if os.path.exists(os.path.join(os.path.dirname(__file__), "hub")) and os.path.exists(  # noqa: PTH110, PTH118, PTH120
    os.path.join(os.path.dirname(__file__), "guard.py")  # noqa: PTH118, PTH120
):
    raise ImportError(
        "the package `guardrails` here holds files of the distribution guardrails-ai as well as of toolcall-guardrails: "
        "both install a package of this name. Uninstall both, then install the one you want in this environment"
    )


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module `guardrails` has no attribute `{name}`")
    value = getattr(importlib.import_module(f"guardrails.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
