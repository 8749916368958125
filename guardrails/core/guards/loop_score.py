"""
Score, by a model learned from calls, how likely a call brings nothing new; tell or refuse what is above a threshold.
"""

from itertools import pairwise, takewhile
from typing import Annotated, Any, ClassVar, Final, NamedTuple

from guardrails.core.retries.model import LOOPS
from guardrails.core.retries.shrinkage import times
from guardrails.core.retries.trail import Crosses
from guardrails.core.state import Entry, SessionState
from guardrails.core.values.schema import Ge, Le, MinLen
from guardrails.core.values.types import Denial, Nudge, ToolCall

from .base import Codes, Facts, Guard, Verdict, guard
from .evidence import Evidence, again_of, is_evidence, past
from .similarity import same_but_numbers, same_words, sketch_of


HINT: Final = "Use what there is, ask something else of another tool, or say what is missing."
Share = Annotated[float, Ge(0), Le(1)] | None


class Prospect(NamedTuple):
    """
    What a session did before a call, in levels; counts are at most 3.
    """

    tool: str
    same: int
    """Latest calls equal to it that ended alike."""
    last: int
    """How the latest of them ended: 0 there is none, 1 failed, 2 brought content, 3 and more as in `CAME`."""
    old: bool
    """Work may have been done since."""
    near: int
    """Calls of the tool that asked nearly the same in other words or numbers."""
    stale: int
    """Latest calls of the tool, one after the other, that brought what the one before had brought, or nothing."""
    failed: int
    """Latest calls of the tool that failed, one after the other."""

    def keys(self) -> Crosses:
        """
        Returns the crosses of its levels.
        """
        same = f"same {self.same} last {self.last} old {self.old:d}"
        names = (same, f"near {self.near}", f"stale {self.stale}", f"failed {self.failed}")
        return tuple((name, 1.0) for name in names), (("all", 0.5),)


def prospect_of(call: ToolCall, state: SessionState, facts: Facts) -> Prospect:
    """
    Returns the levels of *call* before it runs; its sketch is kept for the calls after it.
    """
    sketch = call.sketch = sketch_of(call.arguments)
    again = again_of(call, state, facts)
    own = [*past(state, call.tool)]
    others = [one.sketch for one in own if one.sig != call.sig]
    near = (same_but_numbers(one, sketch) or same_words(one, sketch) for one in others)
    stale = takewhile(bool, (one.empty or is_evidence(one, older) for one, older in pairwise(own)))
    failed = takewhile(bool, (one.status == "error" for one in own))
    same = (0, 0, False)
    if again is not None:
        same = again.times(state, 3), 2 + again.last.came - (again.last.status == "error"), again.old
    return Prospect(call.tool, *same, *(min(sum(those), 3) for those in (near, stale, failed)))


def brings_nothing(entry: Entry, state: SessionState) -> bool:
    """
    Returns whether a call that is over failed as an earlier one of its tool, or brought what that brought. Of what may be work only the
    same call counts, and acknowledgements and waits never do.
    """
    alike = [one for one in state.window if one.tool == entry.tool and one.seq < entry.seq and is_evidence(one, entry)]
    return any(one.sig == entry.sig or not entry.changes or entry.status == "error" for one in alike)


@guard
class LoopScore(Guard):
    """
    Nudge from a learned chance on that a call brings nothing new, and refuse looks from another on.

    The *model* is what `guardrails train --loops` writes; until it is there nothing is said. What is work, or may be, is told only.
    A retry that was advised is let through, and so is a tool with `repeats: allow`.
    """

    codes: ClassVar[Codes] = {"loop_score.likely": ("tool", "score")}
    files: ClassVar[tuple[str, ...]] = ("model",)
    model_kind: ClassVar[str] = LOOPS
    remembers: ClassVar[int] = 20

    model: Annotated[str, MinLen(1)] | None = None
    """A model file, relative to the policy file."""
    nudge: Share = 0.5
    """The chance from which on the call is told; none: never."""
    deny: Share = None
    """The chance from which on a look is refused; none: never."""

    def companions(self) -> tuple[Guard, ...]:
        return (Evidence(mode=self.mode),)

    @property
    def retry_model(self) -> str | None:
        return self.model

    def check(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Verdict:
        model = (facts.models or {}).get(self.model or "")
        if model is None or facts.tool.repeats == "allow" or call.problems:
            return None
        chance = model.probability(prospect_of(call, state, facts))
        if facts.again is not None and facts.again.retry:
            return None
        code, values = "loop_score.likely", {"tool": call.tool, "score": round(chance, 3)}
        message = f"{times(chance).capitalize()} a call of `{call.tool}` like this one brought nothing new."
        if self.deny is not None and chance >= self.deny and not facts.tool.changes:
            return Denial(code=code, message=message, hint=HINT, values=values)
        nudge = self.nudge is not None and chance >= self.nudge
        return Nudge(code=code, hint=f"{message} {HINT}", values=values) if nudge else None
