"""
The verdict of a model on a call that `Loops` has no rule for.
"""

from guardrails.core.guards.base import Verdict
from guardrails.core.repetition.learned.features import KIND, SAME, WAITS, Levels

from .loop_settings import FromProbability
from .loop_words import learned_denial, learned_nudge


def by_model(name: str, grades: FromProbability, tool: str, known: Levels, *, refuse: bool) -> Verdict:
    """
    Returns the verdict of the model *name* on a call of *tool* with the factors *known*, by *grades*. It may *refuse*
    the second of two identical calls.
    """
    from guardrails.core.repetition.learned.model_format import repeat_model

    model = repeat_model(name)
    p = model.probability(known)
    if known[KIND] == WAITS:
        return None
    nudge, deny = grades["nudge"], grades["deny"]
    if refuse and known[SAME] == 1 and p >= (model.deny_at if deny is None else deny):
        return learned_denial(tool, int(100 * p))
    return learned_nudge(tool, int(100 * p)) if nudge is not None and p >= nudge else None
