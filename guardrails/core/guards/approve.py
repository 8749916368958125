"""
Let a person approve calls before they run.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final

from guardrails.core.refusals import in_flight
from guardrails.core.state import OPEN, SessionState
from guardrails.core.values.errors import AMBIGUOUS
from guardrails.core.values.schema import Gt
from guardrails.core.values.units import Duration, Glob, matcher

from .base import Codes, Denial, Event, Facts, Guard, Tool, ToolCall, Verdict, guard


ANSWERS: Final = 16
"""What a person said about calls, as long as so many later answers did not replace it."""


@guard
class Approve(Guard):
    """
    Let calls of the tools that match a glob of *tools* wait until a person has approved them.

    A matching call is admitted and parked: its estimates stay reserved, and it does not run. After an approval the same
    call runs once, with the same arguments. After a refusal it is refused for good. If nobody answers in time, it may
    be asked for again. Equal calls are asked for once. In a policy file a list stands for *tools*.
    """

    codes: ClassVar[Codes] = {f"approve.{answer}": ("tool", "reason") for answer in ("pending", "refused", "expired")}
    tool_settings: ClassVar[tuple[str, ...] | None] = ("mode", "reason", "expires")
    listed: ClassVar[str | None] = "tools"

    tools: tuple[Glob, ...] = ()
    """Globs of the tools that a person has to approve."""
    reason: str = ""
    """The reason, for the person who is asked and for the model."""
    expires: Annotated[Duration, Gt(0)] | None = None
    """The time that a question waits for its answer, and that an approval holds. Without it a question waits for good, and an
    approval holds for a day."""

    events: ClassVar[tuple[str, ...]] = ("unpark", "expire", "refusal", "extend")

    @classmethod
    def check_settings(cls, settings: Mapping[str, Any]) -> None:
        if not settings.get("tools"):
            raise ValueError("without `tools` nobody is asked: name those that a person has to approve")

    @classmethod
    def implied(cls, tool: Tool) -> Guard | None:
        return cls() if tool.repeats == "ask" else None

    @classmethod
    def ruled(cls, own: Guard | None, settings: Mapping[str, Any]) -> tuple[Guard, ...]:
        return ((own or cls()).but({**settings, "tools": ("*",)}),)

    def asks(self, tool: str) -> bool:
        return matcher(self.tools)(tool) is not None

    def checks_fresh(self, tool: str, known: frozenset[str] | None) -> bool:
        return self.asks(tool)

    def check(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Verdict:
        last = state.last(call.sig)
        again = facts.tool.repeats == "ask" and last is not None and last.status == "ok"
        if not again and not self.asks(call.tool):
            return None
        answer, why = next(((answer, why) for sig, answer, why in mine or () if sig == call.sig), ("", ""))
        if answer:
            return _answer(call, answer, WORDS[answer], why if answer == "refused" else self.reason)
        twin = next((one for one in state.pending.values() if one.sig == call.sig is not None), None)
        if twin is not None:
            waits = "This exact `{}` call waits for a person already", _WAIT
            return in_flight(call.tool) if twin.stage in OPEN else _answer(call, "pending", waits, self.reason)
        unknown = last is not None and last.changes and (last.status == "expired" or last.error_type in AMBIGUOUS)
        why = "; ".join(filter(None, (self.reason or _DONE * again, _TWICE * unknown)))
        return _answer(call, "pending", WORDS["pending"], why, round(1_000 * (self.expires or 0)))

    def event(self, event: Event, state: SessionState, mine: Any, facts: Facts) -> Any:
        """
        It remembers (signature, answer, reason) of what a person refused, or did not answer in time.
        """
        values = event.values
        if event.name == "extend":
            return mine if values.get("asked") else None
        sig = values["sig"]
        others, lapsed = [one for one in mine or () if one[0] != sig], [sig, "expired", ""]
        if event.name == "refusal":
            # That nobody answered is said once; then the same call asks again.
            return (others or None) if lapsed in (mine or ()) else mine
        refused = event.name == "unpark" and not values["approved"]
        if sig is None or not (refused or (event.name == "expire" and values["waited"])):
            return mine
        return [*others, [sig, "refused", values["reason"]] if refused else lapsed][-ANSWERS:]


def ask(call: ToolCall, state: SessionState, facts: Facts, reason: str) -> Verdict:
    """
    Returns the question to a person about *call*, or what came of it.
    """
    return Approve(tools=("*",), reason=reason).check(call, state, state.own.get(Approve.name), facts)


def _answer(call: ToolCall, answer: str, words: tuple[str, str], reason: str, parks: int | None = None) -> Denial:
    shown, why = call.tool[:64], f" ({reason})" if reason else ""
    message, values = f"{words[0].format(shown)}{why}. It was not made.", {"tool": shown, "reason": reason}
    strike, runs = answer == "refused", answer == "pending"
    return Denial(f"approve.{answer}", message, words[1], strike=strike, running=runs, parks=parks, values=values)


_WAIT = (
    "A person has to approve this call. Go on with other work, or finish and say what waits; look for no way around it."
)
_TWICE = "the same call was made before and may have happened"
_DONE = "the same call was made before and worked"
_NEVER = "Do not repeat it, and look for no way around it. Do what the person says, or ask."
_LAPSED = "Go on without it, or say that nobody answered. If it is still needed, the same call asks again."
WORDS: Final = {
    "pending": ("`{}` needs a person's approval", _WAIT),
    "refused": ("A person refused this `{}` call", _NEVER),
    "expired": ("Nobody approved this `{}` call in time", _LAPSED),
}
