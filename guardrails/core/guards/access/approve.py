"""
Let a person approve calls before they run.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from guardrails.core.guards.base import Codes, Facts, Guard, Verdict, guard, latest
from guardrails.core.guards.duplicates import in_flight
from guardrails.core.guards.results.retryable import AMBIGUOUS
from guardrails.core.state.state import SessionState
from guardrails.core.values.bounds import Gt
from guardrails.core.values.types import Denial, ToolCall
from guardrails.core.values.units import Duration, Glob, matcher


@guard
class Approve(Guard):
    """
    Let calls of the tools that match a glob of *tools* wait until a person has approved them.

    A matching call is admitted and parked: its estimates stay reserved, and it does not run. After an approval the same
    call runs once, with the same arguments. After a refusal it is refused for good. If nobody answers in time, it may
    be asked for again. Equal calls are asked for once. In a policy file a list stands for *tools*.
    """

    codes: ClassVar[Codes] = {
        "approve.pending": ("tool", "reason"),
        "approve.refused": ("tool", "reason"),
        "approve.expired": ("tool", "reason"),
    }
    tool_settings: ClassVar[tuple[str, ...] | None] = ("mode", "reason", "expires")
    scope_settings: ClassVar[tuple[str, ...] | None] = ()
    listed: ClassVar[str | None] = "tools"

    tools: tuple[Glob, ...] = ()
    """Globs of the tools that a person has to approve."""
    reason: str = ""
    """The reason, for the person who is asked and for the model."""
    expires: Annotated[Duration, Gt(0)] | None = None
    """The time that a question waits for its answer, and that an approval holds. Without it a question waits for good, and an
    approval holds for a day."""

    @classmethod
    def check_settings(cls, settings: Mapping[str, Any]) -> None:
        if not settings.get("tools"):
            raise ValueError("without `tools` nobody is asked: name those that a person has to approve")

    @classmethod
    def ruled(cls, own: Guard | None, settings: Mapping[str, Any]) -> tuple[Guard, ...]:
        made = cls(**settings) if own is None else own.but(settings)
        return (made.but({"tools": ("*",)}),)

    def asks(self, tool: str) -> bool:
        """
        Returns whether a person has to approve calls of *tool*.
        """
        return matcher(self.tools)(tool) is not None

    def checks_fresh(self, tool: str, known: frozenset[str] | None) -> bool:
        return self.asks(tool)

    def check(self, call: ToolCall, state: SessionState, facts: Facts) -> Verdict:
        last = latest(state, call.sig)
        again = facts.tool.repeats == "ask" and last is not None and last.status == "ok"
        if not again and not self.asks(call.tool):
            return None
        answer, why = state.answers.get(call.sig, ("", "")) if state.answers else ("", "")
        if answer == "refused":
            return self._said(call, "refused", "A person refused this `{}` call", why, _NEVER)
        if answer == "expired":
            return self._said(call, "expired", "Nobody approved this `{}` call in time", self.reason, _LAPSED)
        for pending in state.pending.values() if call.sig is not None else ():
            if pending.sig == call.sig:
                if pending.parked is None or pending.parked.begun:
                    return in_flight(call)
                return self._said(
                    call, "pending", "This exact `{}` call waits for a person already", self.reason, _WAIT
                )
        why = self.reason or (_DONE if again else "")
        if last is not None and last.changes and (last.status == "expired" or last.error_type in AMBIGUOUS):
            why = f"{why}; {_TWICE}" if why else _TWICE
        lasts = 0 if self.expires is None else round(self.expires * 1000)
        return self._said(call, "pending", "`{}` needs a person's approval", why, _WAIT, parks=lasts)

    def _said(self, call: ToolCall, answer: str, what: str, reason: str, hint: str, parks: int | None = None) -> Denial:
        why = f" ({reason})" if reason else ""
        return Denial(
            code=f"approve.{answer}",
            message=f"{what.format(call.tool[:64])}{why}. It was not made.",
            hint=hint,
            strike=answer == "refused",
            running=answer == "pending",
            parks=parks,
            values={"tool": call.tool[:64], "reason": reason},
        )


_WAIT = (
    "A person has to approve this call. Go on with other work, or finish and say what waits; look for no way around it."
)
_TWICE = "the same call was made before and may have happened"
_DONE = "the same call was made before and worked"
_NEVER = "Do not repeat it, and look for no way around it. Do what the person says, or ask."
_LAPSED = "Go on without it, or say that nobody answered. If it is still needed, the same call asks again."
