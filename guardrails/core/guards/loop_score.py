"""
Score, by a model learned from calls, how likely a call brings nothing new; tell it from a threshold on.
"""

from itertools import pairwise, takewhile
from typing import Annotated, Any, ClassVar, Final, NamedTuple

from guardrails.core.retries.serving import LOOPS
from guardrails.core.retries.trail import Crosses
from guardrails.core.state import EMPTY
from guardrails.core.values.schema import Ge, Le, MinLen

from .base import Codes, Facts, Guard, Nudge, SessionState, ToolCall, Verdict, guard
from .evidence import Evidence, again_of, is_evidence, outdated, past
from .similarity import same_but_numbers, same_words, sketch_of


HINT: Final = "Use what there is, ask something else of another tool, or say what is missing."


class Prospect(NamedTuple):
    """
    What a session did before a call, counted up to 3.
    """

    tool: str
    same: str
    """Latest calls equal to it that ended alike, and not by an acknowledgement or a wait; `old` if work may have been done since."""
    near: int
    """Calls of the tool that asked the same, or nearly so in other words or numbers."""
    stale: int
    """Latest calls of the tool, one after the other, that brought what the one before had brought, or nothing."""
    failed: int
    """Latest calls of the tool that failed, one after the other."""

    def keys(self) -> Crosses:
        """
        Returns the names of its weights.
        """
        return tuple((f"{name} {n}", 1.0) for name, n in zip(self._fields[1:], self[1:], strict=True)), (("all", 0.5),)


def prospect_of(call: ToolCall, state: SessionState) -> Prospect:
    """
    Returns the counts for *call* before it runs; its sketch is kept for the calls after it.
    """
    sketch = call.sketch = sketch_of(call.arguments)
    own = [*past(state, call.tool)]
    equal = [one for one in own if one.sig == call.sig]
    old = bool(equal) and outdated(state, equal[0])
    same = takewhile(bool, (is_evidence(one, equal[0]) for one in equal))
    near = (same_but_numbers(one.sketch, sketch) or same_words(one.sketch, sketch) for one in own)
    stale = takewhile(bool, (one.came == EMPTY or is_evidence(one, older) for one, older in pairwise(own)))
    failed = takewhile(bool, (one.status == "error" for one in own))
    counts = [min(sum(those), 3) for those in (same, near, stale, failed)]
    return Prospect(call.tool, f"{counts[0]} old" if old else f"{counts[0]}", *counts[1:])


@guard
class LoopScore(Guard):
    """
    Nudge from a learned chance on that a call brings nothing new. It refuses nothing.

    The *model* is what `guardrails train --loops` writes; until it is there nothing is said. A retry that was advised is let
    through, and so is a tool with `repeats: allow`.
    """

    codes: ClassVar[Codes] = {"loop_score.likely": ("tool", "score")}
    files: ClassVar[tuple[str, ...]] = ("model",)
    model_kind: ClassVar[str | None] = LOOPS
    remembers: ClassVar[int] = 20

    model: Annotated[str, MinLen(1)] | None = None
    """A model file, relative to the policy file."""
    nudge: Annotated[float, Ge(0), Le(1)] = 0.5
    """The chance from which on the call is told."""

    def companions(self) -> tuple[Guard, ...]:
        return (Evidence(mode=self.mode),)

    def check(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Verdict:
        model = (facts.models or {}).get(self.model or "")
        chance = model.probability(prospect_of(call, state)) if model else 0.0
        again = again_of(call, state, facts)
        if not model or chance < self.nudge or facts.tool.repeats == "allow" or (again and again.retry):
            return None
        from guardrails.core.retries.model import times

        hint = f"{times(chance).capitalize()} a call of `{call.tool}` like this one brought nothing new. {HINT}"
        return Nudge(code="loop_score.likely", hint=hint, values={"tool": call.tool, "score": round(chance, 3)})
