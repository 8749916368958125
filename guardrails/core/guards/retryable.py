"""
Say of a failure whether, when and how often the same call is worth repeating.
"""

from collections.abc import Mapping
from itertools import islice, takewhile
from typing import Annotated, Any, ClassVar, Final

from guardrails.core.envelope import Envelope
from guardrails.core.retries.serving import RETRIES, Advice, Stakes
from guardrails.core.retries.trail import Settled, extended, failure_of
from guardrails.core.values.caches import pattern
from guardrails.core.values.errors import AMBIGUOUS, INSTEAD, NEVER_AGAIN, TRANSIENT
from guardrails.core.values.schema import Ge, Gt, MinLen
from guardrails.core.values.types import Denial, ErrorType, NextAction, Nudge, Outcome, ToolCall
from guardrails.core.values.units import Duration

from .base import Codes, Facts, Guard, SessionState, Tool, Verdict, guard, overrides
from .evidence import failures


UNKNOWN: Final = "It may have happened: check whether it did before you make this call again, or ask the user."
TWICE: Final = "The same call was made before and never said how it ended: it may have happened twice. Check that."
CANCELLED: Final = "It was cancelled, and may have happened: check that first; repeat it only if it is still wanted."
HINTS: Final[dict[ErrorType, str]] = {
    "auth": "The credentials were refused. Ask the user; the same call will fail again.",
    "permission": "This is not permitted. Ask the user or choose another way; do not repeat the call.",
    "validation": "Correct the arguments; the same call will fail again.",
    "not_found": "What was asked for is not there. Check the name or id before calling again.",
    "invalid_path": "Correct the path; the same call will fail again.",
    "too_large": "Ask for less at a time.",
    "tool_missing": "Use one of the tools that are listed.",
    "conflict": "Something else is in the way. Resolve it, then the same call can work.",
    "precondition": "Do what is missing first, then repeat the same call.",
    "exec_nonzero": "Find and repair the cause, then run it again.",
    "code_error": "Read the error, correct the code, then run it again.",
    "cancelled": "The call was cancelled. Do not repeat it unless it is still wanted.",
}
"""The words for the usual next step after a failure, which `INSTEAD` has."""
LATER: Final = "It passes in {} s at the earliest. Use another tool meanwhile, or tell the user what does not work yet."
HOPELESS: Final = "It does not pass by waiting. Use another tool, or tell the user what does not work."
OTHERWISE: Final[dict[NextAction, str]] = {
    "fix_precondition": "Repair the cause first, then repeat the same call.",
    "fix_arguments": "Correct the arguments, then call again.",
    "ask_user": "Ask the user how to go on; trying again rarely works here.",
}
"""The words for a next step that is not the usual one for its kind of failure."""
CORRECTING: Final[dict[NextAction, str]] = {
    "fix_arguments": "The user need not be asked.",
    "ask_user": "Ask the user before you try other arguments.",
}
"""The user's part in it, if records say how often other arguments work."""
Tries = tuple[ErrorType, bool | None, int, bool]
"""(kind of a failure, what is declared of it, tries that are left, whether one was made)"""
SELDOM: Final = 1 / 3
"""Below it a retry is told with its chance."""


def repeat(advice: Advice) -> str:
    """
    Returns the hint for a retry that is advised; one that seldom works is told with its chance.
    """
    wait = f"Wait {seconds(advice.wait_ms)} s, then repeat" if advice.wait_ms else "Repeat"
    if advice.retries == 1 and 0 < advice.p < SELDOM:
        from guardrails.core.retries.model import times

        return f"{wait} the same call once: that works {times(advice.p)}. If it fails again, go another way."
    return f"{wait} the same call."


def seconds(wait_ms: int) -> str:
    """
    Returns *wait_ms* in seconds for a person: whole tenths, never less than the wait.
    """
    return f"{-(-wait_ms // 100) / 10:g}"


_TURNED_DOWN: Final = pattern(r"(?i)rejected by (?:the )?user|user (?:rejected|declined)|doesn't want to proceed")
"""Words of hosts for a call that a person did not let run."""


@guard
class Retryable(Guard):
    """
    Judge failures by their kind, the tool's declarations and what this session has seen.

    Failures of a transient kind are retryable up to *max_retries* times with the same arguments. The wait is the one
    that the server named, or an exponential one. A call is not retryable if it may have happened, and by declaration or
    name does something anew each time. The model is then told to check. After *max_same_error* failures of one kind in
    a row by one tool, the next is not retryable. A call that comes before its wait is over is refused with the rest of
    the wait.

    With a *model*, trained from records, the kind and the declarations are only the start. Success, wait and number of
    retries then follow from the past retries of this tool, by expected value.
    """

    codes: ClassVar[Codes] = {"retryable.wait": ("wait_ms",), "retryable.unknown": ()}
    only_failures: ClassVar[bool] = True
    needs: ClassVar[Mapping[str, str]] = {"auto": "run"}
    files: ClassVar[tuple[str, ...]] = ("model",)
    model_kind: ClassVar[str | None] = RETRIES

    max_retries: Annotated[int, Ge(0)] = 3
    max_same_error: Annotated[int, Ge(1)] = 3
    backoff: Annotated[Duration, Gt(0)] = 1.0
    """Seconds before the first retry; doubles with each further one."""
    max_wait: Annotated[Duration, Gt(0)] = 60.0
    """Seconds; a server that asks for more is not waited for."""
    model: Annotated[str, MinLen(1)] | None = None
    """A model file, relative to the policy file; until it is there, shipped beliefs are asked. None: fixed rules."""
    retry_cost: Annotated[float, Ge(0)] = 0.1
    """The cost of one more try, if a success is worth 1. A model advises a retry that is worth more than it costs."""
    auto: bool = False
    """The library itself makes a failed call again if that is advised. The tool must be declared `read_only`,
    `repeats: evidence` or `idempotent`. The model reads the end of the last attempt."""
    auto_max_wait: Annotated[Duration, Gt(0)] = 20.0
    """Seconds; a longer wait is for the model to decide about."""

    def checks_fresh(self, tool: str, known: frozenset[str] | None) -> bool:
        return False

    def check(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Verdict:
        entry = state.last(call.sig)
        if entry is None or entry.retries_left == 0:
            # What was parked and never ran changed nothing.
            lost = entry is not None and entry.status == "expired" and entry.changes and facts.tool.acts
            return Nudge(code="retryable.unknown", hint=TWICE) if lost else None
        wait = entry.retry_at_ms - facts.now_ms
        if wait <= 0:
            return None
        message = f"The last attempt failed ({entry.error_type}); a retry makes sense in {seconds(wait)} s."
        hint = f"Wait {seconds(wait)} s, then repeat the call, or do something else meanwhile."
        values: dict[str, object] = {"wait_ms": wait}
        return Denial("retryable.wait", message, hint, retryable=True, retry_after_ms=wait, strike=False, values=values)

    def hears(self, hook: str) -> bool:
        return overrides(self, hook) and (hook != "settle" or self.model is not None)

    @property
    def auto_ms(self) -> int | None:
        return round(self.auto_max_wait * 1000) if self.auto else None

    def settle(self, call: ToolCall, outcome: Outcome, state: SessionState, mine: Any, facts: Facts) -> Any:
        """
        It remembers the session's trail, if there is a model to ask about it.
        """
        if facts.late:
            return mine
        return extended(mine, Settled(call.tool, call.sig, outcome.error_type, state.now_ms), outcome.retry_after_ms)

    def shape(
        self, envelope: Envelope, call: ToolCall, outcome: Outcome, state: SessionState, mine: Any, facts: Facts
    ) -> None:
        kind, tool, claim = outcome.error_type or "other", facts.tool, envelope.retryable
        if claim is None and envelope.next_action is not None:
            claim = envelope.next_action == "retry"
        # What a tool says of its own failure is better informed.
        prior = tool.retryable if claim is None else claim
        passing = kind in TRANSIENT if prior is None else prior and kind not in NEVER_AGAIN
        attempts, named = max(1, failures(state, call.sig)), outcome.retry_after_ms
        unsafe = facts.unknown or _is_unsafe(outcome, tool, prior)
        too_long = named is not None and named > self.max_wait * 1000
        further = self.max_same_error + 1 - _in_a_row(state, call.tool, kind, self.max_same_error + 1)
        left = 0 if unsafe or too_long or not further else max(0, self.max_retries + 1 - attempts)
        if envelope.max_retries_remaining is not None:
            left = min(left, envelope.max_retries_remaining)
        learned = self._learned(envelope, state, mine, facts, (kind, prior, min(left, further), attempts > 1))
        wait_ms = int(min(self.backoff * 2 ** min(attempts - 1, 30), self.max_wait) * 1000) if named is None else named
        advice = learned or Advice(passing and left > 0, wait_ms, 0.0, left, INSTEAD.get(kind, "give_up"))
        if not advice.retryable and kind not in INSTEAD and kind not in TRANSIENT and prior is None:
            # Nothing is known of it, so nothing is advised.
            return
        later = named if passing and too_long else None
        envelope.retryable, envelope.max_retries_remaining = advice.retryable, advice.retries if advice.retryable else 0
        envelope.retry_after_ms = advice.wait_ms if advice.retryable else later
        if advice.retryable:
            _advise(envelope, "retry", repeat(advice))
        elif unsafe:
            _advise(envelope, "ask_user", CANCELLED if kind == "cancelled" else UNKNOWN)
        elif kind in TRANSIENT or (passing and learned is None):
            _advise(envelope, "give_up", HOPELESS if later is None else LATER.format(seconds(later)))
        else:
            _otherwise(envelope, kind, advice)

    def _learned(self, envelope: Envelope, state: SessionState, mine: Any, facts: Facts, tries: Tries) -> Advice | None:
        """
        Returns the model's answer on a failure, noted in *envelope* for the record. Returns None if there is no model.
        """
        tool, (kind, prior, left, tried) = facts.tool, tries
        if self.model is not None and facts.advised is not None:
            return facts.advised
        model = None if self.model is None else (facts.models or {}).get(self.model)
        if model is None:
            return None
        from guardrails.core.retries.decision import advise

        trail = mine if mine and not facts.late else extended(mine, Settled(tool.name, None, kind, state.now_ms))
        failure = failure_of(trail, state.now_ms - state.started_ms)
        stakes = Stakes(self.retry_cost, max_wait_ms=round(self.max_wait * 1000))
        advice = advise(model, stakes, failure, declared=prior, cost=tool.cost, left=left, tried=tried)
        envelope.judged, envelope.retry_success_probability = model.name, round(advice.p, 3)
        return advice


def _is_unsafe(outcome: Outcome, tool: Tool, prior: bool | None) -> bool:
    """
    Returns whether a call may have happened that does something anew each time.
    """
    if outcome.error_type not in AMBIGUOUS or not tool.acts or not (prior is None or tool.idempotent is False):
        return False
    return outcome.error_type != "cancelled" or not _TURNED_DOWN.search(outcome.error_message or "")


def _in_a_row(state: SessionState, tool: str, kind: ErrorType, most: int) -> int:
    """
    Returns how many of the latest calls of *tool* failed by *kind*, one after the other; at most *most*.
    """
    own = (one.error_type == kind for one in reversed(state.window) if one.tool == tool and one.status != "running")
    return sum(takewhile(bool, islice(own, most)))


def _advise(envelope: Envelope, action: NextAction, hint: str) -> None:
    """
    Say a next step, unless the tool named one itself.
    """
    if envelope.next_action is None:
        envelope.next_action = action
        envelope.hint(hint)


def _otherwise(envelope: Envelope, kind: ErrorType, advice: Advice) -> None:
    """
    Say the next step after a failure that does not pass by itself, and how often correcting it works.
    """
    action = advice.next_action
    hint = HINTS[kind] if INSTEAD.get(kind) == action else OTHERWISE.get(action, HOPELESS)
    if advice.corrected is not None and envelope.next_action is None and action in CORRECTING:
        envelope.user_facing_hint = envelope.user_facing_hint or CORRECTING[action]
        from guardrails.core.retries.model import times

        hint = f"{hint} Other arguments work {times(advice.corrected)} here."
    _advise(envelope, action, hint)
    if envelope.retryable_after_correction is None:
        envelope.retryable_after_correction = envelope.next_action in ("fix_arguments", "fix_precondition")
