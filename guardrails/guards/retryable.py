"""
Say of a failure whether, when and how often the same call is worth repeating.
"""

from typing import Annotated, ClassVar, Final

from annotated_types import Ge, Gt

from ..envelope import Envelope
from ..state import SessionState
from ..types import Denial, ErrorType, NextAction, Outcome, ToolCall
from ..units import Duration
from .base import Codes, Facts, Guard, Verdict, guard


TRANSIENT: Final[frozenset[ErrorType]] = frozenset(
    {"rate_limit", "timeout", "connection", "unavailable", "server_error"}
)
"""Kinds of failure that may pass by themselves."""
NEVER: Final[frozenset[ErrorType]] = frozenset(
    {"auth", "permission", "validation", "not_found", "tool_missing", "invalid_path", "too_large"}
)
"""Kinds that the same arguments always meet again, whatever is declared."""
AMBIGUOUS: Final[frozenset[ErrorType]] = frozenset({"timeout", "connection", "cancelled"})
"""Kinds after which the call may have taken effect all the same."""
NEXT: Final[dict[ErrorType, tuple[NextAction, str]]] = {
    "auth": ("ask_user", "The credentials were refused. Ask the user; the same call will fail again."),
    "permission": ("ask_user", "This is not permitted. Ask the user or choose another way; do not repeat the call."),
    "validation": ("fix_arguments", "Correct the arguments; the same call will fail again."),
    "not_found": ("fix_arguments", "What was asked for is not there. Check the name or id before calling again."),
    "invalid_path": ("fix_arguments", "Correct the path; the same call will fail again."),
    "too_large": ("fix_arguments", "Ask for less at a time."),
    "tool_missing": ("give_up", "Use one of the tools that are listed."),
    "conflict": ("fix_precondition", "Something else is in the way. Resolve it, then the same call can work."),
    "precondition": ("fix_precondition", "Do what is missing first, then repeat the same call."),
    "exec_nonzero": ("fix_precondition", "Find and repair the cause, then run it again."),
    "code_error": ("fix_arguments", "Read the error, correct the code, then run it again."),
    "cancelled": ("ask_user", "The call was cancelled. Do not repeat it unless it is still wanted."),
    "other": ("give_up", "Read the error and try another way."),
}


@guard
class Retryable(Guard):
    """
    Judge failures by their kind, the tool's declarations and what this session has seen.

    Failures of a kind that passes are retryable up to *max_retries* times with the same arguments, after the wait that
    the server named or an exponential one. After *max_same_error* failures of one kind in a row by one tool, the next
    says no. A call that comes before its wait is over is refused with the rest of the wait.
    """

    codes: ClassVar[Codes] = {"retryable.wait": ("wait_ms",)}

    shapes_successes: ClassVar[bool] = False

    max_retries: Annotated[int, Ge(0)] = 3
    max_same_error: Annotated[int, Ge(1)] = 3
    backoff: Annotated[Duration, Gt(0)] = 1.0
    """Seconds before the first retry; doubles with each further one."""
    max_wait: Annotated[Duration, Gt(0)] = 60.0
    """Seconds; a server that asks for more is not waited for."""

    def checks_fresh(self, tool: str, known: frozenset[str] | None) -> bool:
        return False

    def check(self, call: ToolCall, state: SessionState, facts: Facts) -> Verdict:
        for entry in state.earlier(call.sig, len(state.window))[:1]:
            wait = entry.retry_at_ms - facts.now_ms
            if entry.retries_left > 0 and wait > 0:
                return Denial(
                    code="retryable.wait",
                    message=f"The last attempt failed ({entry.error_type}); a retry makes sense in {wait / 1000:g} s.",
                    hint=f"Wait {wait / 1000:g} s, then repeat the call, or do something else meanwhile.",
                    retryable=True,
                    retry_after_ms=wait,
                    strike=False,
                    values={"wait_ms": wait},
                )
        return None

    def shape(
        self, envelope: Envelope, call: ToolCall, outcome: Outcome, state: SessionState, facts: Facts
    ) -> Envelope:
        kind = outcome.error_type
        if kind is None:
            return envelope
        prior = _claim(envelope)
        if prior is None:
            prior = facts.tool.retryable
        passing = kind in TRANSIENT if prior is None else prior and kind not in NEVER
        unsafe = kind in AMBIGUOUS and facts.tool.idempotent is False and not facts.tool.read_only
        attempts = _failed_attempts(call, state)
        left = max(0, self.max_retries + 1 - attempts)
        if envelope.max_retries_remaining is not None:
            left = min(left, envelope.max_retries_remaining)
        wait = self._wait_ms(outcome, attempts)
        too_long = wait > self.max_wait * 1000
        stuck = _same_error_run(call, kind, state) > self.max_same_error
        if passing and left and not (unsafe or too_long or stuck):
            envelope.retryable = True
            envelope.retry_after_ms = wait
            envelope.max_retries_remaining = left
            _advise(envelope, "retry", f"Wait {wait / 1000:g} s, then repeat the same call.")
            return envelope
        envelope.retryable = False
        envelope.max_retries_remaining = 0
        envelope.retry_after_ms = wait if passing and too_long else None
        if unsafe:
            _advise(envelope, "ask_user", "It may have taken effect. Check before repeating it, or ask the user.")
        elif passing or kind in TRANSIENT:
            _advise(
                envelope,
                "give_up",
                "It does not pass by waiting. Use another tool, or tell the user what does not work.",
            )
        else:
            _advise(envelope, *NEXT[kind])
            envelope.retryable_after_correction = envelope.next_action in ("fix_arguments", "fix_precondition")
        return envelope

    def _wait_ms(self, outcome: Outcome, attempts: int) -> int:
        if outcome.retry_after_ms is not None:
            return outcome.retry_after_ms
        return int(min(self.backoff * 2 ** min(attempts - 1, 30), self.max_wait) * 1000)


def _claim(envelope: Envelope) -> bool | None:
    """
    Whether a tool's own envelope says that the same call may work; None where it says nothing of it.
    """
    if envelope.retryable is not None:
        return envelope.retryable
    return None if envelope.next_action is None else envelope.next_action == "retry"


def _advise(envelope: Envelope, action: NextAction, hint: str) -> None:
    # What a tool says of its own failure is better informed.
    if envelope.next_action is None:
        envelope.next_action = action
        envelope.hint(hint)


def _failed_attempts(call: ToolCall, state: SessionState) -> int:
    """
    Failures of this very call in a row, the present one included.
    """
    attempts = 0
    for entry in state.earlier(call.sig, len(state.window)):
        if entry.status != "error":
            break
        attempts += 1
    return max(attempts, 1)


def _same_error_run(call: ToolCall, kind: ErrorType, state: SessionState) -> int:
    """
    Failures of one kind in a row by one tool, the present one included.
    """
    run = 0
    for entry in reversed(state.window):
        if entry.tool != call.tool or entry.status == "running":
            continue
        if entry.error_type != kind:
            break
        run += 1
    return run
