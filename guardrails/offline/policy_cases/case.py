"""
A policy case that was read: a session as a list of steps, each with the line it stands on.
"""

from dataclasses import dataclass
from typing import Any, Literal

from guardrails.core.tools.tool import Tool
from guardrails.core.values.types import ErrorType, Status


Said = Literal["allow", "nudge", "pending", "deny"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """
    The failure of a call.
    """

    type: ErrorType
    message: str = ""
    http_status: int | None = None
    retry_after_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """
    The outcome of an executor: a result, or a failure.
    """

    result: Any = "ok"
    result_bytes: int | None = None
    """In place of *result*: the size as JSON of a text."""
    failed: Failed | None = None
    cost_usd: float | None = None
    tokens: int | None = None
    takes_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """
    The decision expected of a call, and the text that the model is to read.
    """

    said: Said = "allow"
    code: str | None = None
    observed: frozenset[str] = frozenset()
    status: Status | None = None
    envelope: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """
    One step; *at_ms* milliseconds after the one before (*relative*) or after the start, None: at the same time.
    """

    line: int
    at_ms: int | None = None
    relative: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Step):
    """
    A call of a tool. Its *ran* is None if the call stays pending, or is *lost*: then it is given up.
    """

    tool: str
    arguments: Any
    id: str | None
    ran: Ran | None
    lost: bool
    expected: Expected


@dataclass(frozen=True, slots=True, kw_only=True)
class Settle(Step):
    """
    A pending call ends.
    """

    id: str
    ran: Ran
    expected: Expected


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn(Step):
    """
    A model response with *calls* tool calls came; 0: unknown how many.
    """

    calls: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge(Turn):
    """
    The same, and the cost of the response.
    """

    tokens: int | None = None
    """None: it did not say what it used."""
    cost_usd: float | None = None
    begins_turn: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Step):
    """
    So many model requests start.
    """

    times: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait(Step):
    """
    Nothing but time passes.
    """

    ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Extend(Step):
    """
    The session may use more.
    """

    amounts: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Step):
    """
    A person approves the call *id* that waits, or refuses it for a *reason*.
    """

    id: str
    approved: bool
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhausted(Step):
    """
    The code that has ended the session by now, or None.
    """

    code: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat(Step):
    """
    A block of steps that runs *times* times.
    """

    times: int
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """
    One session from its start, and the decision expected of each of its calls.
    """

    name: str
    file: str
    line: int
    tools: tuple[Tool, ...]
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFile:
    """
    The cases of one file.
    """

    name: str
    policy: str | None
    """The policy that the cases were written for."""
    cases: tuple[Case, ...]
