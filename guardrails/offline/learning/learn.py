"""
From facts to a judged model: what is fitted, what is held out, which part of it is better than what is served.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final

from guardrails.core.retries.model import ANY, RetryModel, parse, text_of
from guardrails.core.retries.shrinkage import NONE, Count
from guardrails.core.retries.trail import Situation
from guardrails.core.values.errors import CORRECTABLE, TrainingError

from .beliefs import believed_corrections
from .facts import UNDATED, Correction, Fact, Facts, decayed, summed
from .fit import fit, known_tools
from .gate import Split, Verdict, split_of, verdict_of
from .profiles import profiles


HALF_LIFE_DAYS: Final = 10.0
"""After so many days a failure weighs half; 7 to 14 days lose .001 log loss in a stable world and follow a changed one."""
DECIMALS: Final = 6
NOTHING: Final[Mapping[str, Count]] = {}
_EPOCH: Final = date(1970, 1, 1).toordinal()
_RETRIES: Final = ("intercept", "weights", "tools", "evidence")
"""The part of a model file that is about retries; `corrections` is the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """
    A new model and how it compares. A part of it that is not better is the one that is served.
    """

    model: RetryModel
    text: bytes
    retries: Verdict | None
    """None: there was nothing to judge by."""
    corrections: Verdict | None
    """The same of what calls with other arguments came to."""
    unchanged: bool
    """It says what the present model says."""
    present: str | None
    """Name of the model that it was compared with; None: the shipped one."""
    facts: Facts
    notes: list[str] = field(default_factory=list)

    @property
    def better(self) -> bool:
        """
        It should be served.
        """
        return not self.unchanged and any(one is not None and one.better for one in (self.retries, self.corrections))


def learn(
    facts: Facts,
    shipped: RetryModel,
    present: RetryModel | None = None,
    *,
    half_life_days: float = HALF_LIFE_DAYS,
    force: bool = False,
) -> Learned:
    """
    Fit a model on all days but the newest, and compare it there with *present*, or with the *shipped* one.

    The compared model is the one that will be served: it is not fitted again on the days that judged it, so that a bad day
    never gets in unseen. With *force* all of the new model is wanted, better or not.

    Raises TrainingError if nothing can be learned.
    """
    if not facts.counts:
        raise TrainingError("there are no failed calls in these records, so there is nothing to learn from yet")
    served = present or shipped
    notes: list[str] = []
    retries = facts.of(Situation)
    counted = facts.of(Correction)
    corrections = {fact: count for fact, count in counted.items() if fact.what and fact.what.error in CORRECTABLE}
    split, corrected = _split(retries, "retries", notes), _split(corrections, "corrections", notes)
    if not retries and not corrections:
        raise TrainingError("no failed call was ever repeated in these records, so there is nothing to learn from yet")
    seen = summed(decayed(split.fitted, half_life_days))
    mended = summed(decayed(corrected.fitted, half_life_days))
    tools = known_tools(_by_tool({**seen, **mended}))
    body = dict(served.body)
    if split.fitted:
        intercept, weights, own = fit(seen.items(), tools)  # type: ignore[arg-type]
        body |= {"intercept": intercept, "weights": weights, "tools": own}
        evidence = _by_pair(seen, tools)
        body["evidence"] = {tool: {error: n for error, (n, _) in of.items()} for tool, of in evidence.items() if tool}
    if corrected.fitted:
        body["corrections"] = _by_pair(mended, tools, believed_corrections())
    new = parse(text_of(body))
    verdicts = (
        verdict_of(split, new.probability, served.probability) if split.fitted else None,
        verdict_of(corrected, lambda what: new.correction(*what), lambda what: served.correction(*what)),
    )
    for verdict, part in zip(verdicts, (_RETRIES, ("corrections",)), strict=True):
        if not force and not (verdict and verdict.better):
            body |= {key: served.body[key] for key in part}
    told = {**seen, **summed(decayed(counted, half_life_days))}
    body["profiles"] = [one.document() for one in profiles(told) if one.tool in tools]
    body["training"] = {
        "days": _days(split.fitted),
        "held_out_days": split.days,
        "failures": facts.failures,
        "retries": sum(count.n for count in retries.values()),
        "half_life_days": half_life_days,
        "verdict": verdicts[0] and verdicts[0].to_dict(),
        "corrections": verdicts[1] and verdicts[1].to_dict(),
        "versions": versions(),
    }
    text = text_of(body)
    return Learned(
        model=parse(text),
        text=text,
        retries=verdicts[0],
        corrections=verdicts[1],
        unchanged=present is not None and all(body[key] == present.body[key] for key in (*_RETRIES, "corrections")),
        present=None if present is None else present.name,
        facts=facts,
        notes=notes,
    )


def shipped_text() -> bytes:
    """
    Returns the file of the model that is served before there are records: the same fit, of the beliefs alone.
    """
    intercept, weights, tools = fit((), frozenset())
    return text_of(
        {
            "intercept": intercept,
            "weights": weights,
            "tools": tools,
            "evidence": {},
            "corrections": _by_pair({}, frozenset(), believed_corrections()),
            "profiles": [],
            "training": {"records": "none", "versions": versions()},
        }
    )


def versions() -> dict[str, str]:
    """
    Returns the versions of the packages that fit a model.
    """
    from importlib.metadata import version

    from guardrails.core.values.version import __version__

    return {"guardrails": __version__, **{name: version(name) for name in ("numpy", "scipy", "scikit-learn")}}


def _split(counts: Mapping[Fact, Count], what: str, notes: list[str]) -> Split:
    split = split_of(counts)
    if counts and split.days is None:
        notes.append(f"the records of {what} have no times: there is nothing to judge them by")
    elif split.days is not None and _days(split.fitted) == list(split.days) and split.days[0] == split.days[1]:
        notes.append(
            f"{date.fromordinal(_EPOCH + split.days[0])} is the only day with {what}: a third of its sessions is held out"
        )
    return split


def _days(counts: Mapping[Fact, Count]) -> list[int] | None:
    days = [fact.day for fact in counts if fact.day != UNDATED]
    return [min(days), max(days)] if days else None


def _by_tool(counts: Mapping[Any, Count]) -> dict[str, float]:
    made: dict[str, float] = {}
    for what, count in counts.items():
        made[what.tool] = made.get(what.tool, 0.0) + count.n
    return made


def _by_pair(
    counts: Mapping[Any, Count], tools: frozenset[str], beliefs: Mapping[str, Count] = NOTHING
) -> dict[str, dict[str, list[float]]]:
    """
    Returns *counts* by tool, of *tools* and of all together (`ANY`, with the *beliefs*), and error type.
    """
    made: dict[str, dict[str, Count]] = {ANY: dict(beliefs)}
    for what, count in counts.items():
        for tool in (ANY, what.tool) if what.tool in tools else (ANY,):
            of = made.setdefault(tool, {})
            of[what.error] = of.get(what.error, NONE).plus(count)
    return {tool: {error: [round(x, DECIMALS) for x in of[error]] for error in sorted(of)} for tool, of in made.items()}
