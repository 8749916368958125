"""
From records to a model file: what is fitted, what is held out, which part of it is better than what is served and so
replaces it.

`python -m guardrails.offline.learning.train` writes the model that is shipped, after a change of the beliefs or crosses.
"""

import math
import warnings

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Final, NamedTuple

from guardrails.core.guards.loop_score import Prospect
from guardrails.core.retries.model import ANY, MAX_WEIGHT, NONE, Count, Crossed, RetryModel, parse, text_of
from guardrails.core.retries.serving import LOOPS, RETRIES
from guardrails.core.retries.trail import Situation
from guardrails.core.values.errors import CORRECTABLE, ModelError, NothingFoundError, TrainingError, needs
from guardrails.offline.learning.beliefs import ALONE, believed, believed_corrections
from guardrails.offline.learning.beliefs import RETRIES as BELIEVED
from guardrails.offline.learning.facts import UNDATED, Correction, Facts
from guardrails.offline.learning.profiles import profiles
from guardrails.offline.learning.rows import Progress, read
from guardrails.offline.learning.spark import read_on_spark
from guardrails.offline.transcripts.files import SHOWN, no_calls, what_is_read
from guardrails.policy.models import COLD, cold_model, read_model
from guardrails.stores.places import write_whole


ERRORS: Final = 2.0
"""Standard errors that a gain must exceed."""
MIN_HELD: Final = 50
"""Held-out events below which nothing is judged."""
MIN_GROUPS: Final = 5
"""Groups of sessions below which nothing is known of the noise."""
HELD_SHARE: Final = 0.2
"""Of all events, what is held out at least, up to `HELD_MOST`: days that bring few judge together."""
HELD_MOST: Final = 200
APART: Final = 3
"""Days that may be bad together; what is new must not be worse on older ones."""
LEAST: Final = 1e-3
"""Nothing is held to be surer than that: one surprise must not decide."""

Guess = Callable[[Any], float | None]
"""How likely the event of a fact works; None: not known."""


class Split(NamedTuple):
    """
    The counts to fit on, those that judge, and those of *fitted* that the newest days cannot have changed.
    """

    fitted: Facts
    held: Facts
    older: Facts


class Verdict(NamedTuple):
    """
    The outcome of comparing what is new with what is served. Losses are nats per event.
    """

    events: float
    """Held-out retries, or calls with other arguments."""
    worked: float
    """Share of them."""
    new: float
    present: float
    base: float
    """Of saying one rate, that of the events that were learned from, each time."""
    gain: float
    """What the new one saves beside the present one."""
    error: float | None
    """Its standard error between groups of sessions; None: unknown."""
    better: bool
    reason: str


def split_of(counts: Facts) -> Split:
    """
    Returns the newest days with enough events to judge by against all before; of an only day, a third of its sessions.

    They hold a fifth of the events, at least 50 and no more than 200 if they can, and never more than what is left.
    """
    events: Counter[int] = Counter()
    for fact, count in counts.items():
        events[fact.day] += count.n  # type: ignore[assignment]
    days = counts.days
    if not days:
        return Split(counts, Facts(), Facts())
    total, (newest, *before) = sum(events[day] for day in days), reversed(days)
    first, held = newest, events[newest]
    for day in before:
        if held >= max(MIN_HELD, min(HELD_SHARE * total, HELD_MOST)) or held + events[day] > total / 2:
            break
        first, held = day, held + events[day]
    if first == days[0]:
        judging = counts.where(lambda fact: fact.day == first and not fact.fold % 3)
        return Split(counts.where(lambda fact: fact not in judging), judging, Facts())
    # Bad days that agree with each other judge and are fitted on only if they lie on both sides of the first that judges.
    older = counts.where(lambda fact: UNDATED < fact.day <= first - APART)
    older = older or counts.where(lambda fact: UNDATED < fact.day <= min(first - 1, newest - APART))
    return Split(counts.where(lambda fact: fact.day < first), counts.where(lambda fact: fact.day >= first), older)


def verdict_of(split: Split, new: Guess, present: Guess) -> Verdict | None:
    """
    Returns whether *new*, which was made of the fitted counts of *split*, should replace *present*. Returns None if there is
    nothing to judge by.

    It must save log loss by more than `ERRORS` standard errors, and lose no more than that on older days: days that are bad
    together judge it, and it was made of them, but no other day says what they say.
    """
    held, count = _compared(split.held, new, present, split.fitted)
    if held is None:
        return None
    gain, error = held.gain, held.error
    better, reason = False, f"better by {gain:.4f} +- {error or 0:.4f} nats each"
    if held.events < MIN_HELD or count < MIN_GROUPS or error is None:
        few = f"at least {MIN_HELD} in {MIN_GROUPS}"
        reason = f"too little to judge by: {held.events:.0f} held out in {count} groups of sessions ({few})"
    elif gain <= ERRORS * error:
        reason = f"not better beyond noise: {gain:+.4f} +- {error:.4f} nats each"
    else:
        older, _ = _compared(split.older, new, present, split.older)
        better = older is None or older.gain >= -ERRORS * (older.error or 0)
        if older is not None and not better:
            reason = (
                f"worse on {older.events:.0f} events of the days before: {older.new:.4f} nats each, {older.present:.4f} by what is "
                "served; look at the newest days, `--force` if the world has changed"
            )
    return held._replace(better=better, reason=reason)


def _compared(counts: Facts, new: Guess, present: Guess, learned: Facts) -> tuple[Verdict | None, int]:
    """
    Returns the losses on *counts* as a verdict that decides nothing yet, None without events, and the groups of sessions that they are of.
    """
    (n, s), groups = counts.total, _losses(counts, (new, present, lambda what: None), learned)
    if n <= 0:
        return None, 0
    mine, theirs, base = (math.fsum(each) / n for each in list(zip(*groups, strict=True))[1:])
    gain, count = theirs - mine, len(groups)
    spread = math.fsum((served - made - gain * weight) ** 2 for weight, made, served, _ in groups)
    error = math.sqrt(spread * count / (count - 1)) / n if count > 1 else None
    return Verdict(n, s / n, mine, theirs, base, gain, error, better=False, reason=""), count


def _losses(counts: Facts, guesses: Sequence[Guess], learned: Facts) -> list[list[float]]:
    """
    Returns for each group of sessions its events and the loss of each guess; the rate of what was *learned* stands for what is
    not known.
    """
    rate = learned.total.s / learned.total.n if learned else 0.5
    groups: dict[int, list[float]] = {}
    for (_, fold, what), (n, s) in counts.items():
        group = groups.setdefault(fold, [0.0] * (len(guesses) + 1))
        group[0] += n
        for at, guess in enumerate(guesses, 1):
            guessed = guess(what)
            p = min(max(rate if guessed is None else guessed, LEAST), 1 - LEAST)
            group[at] -= s * math.log(p) + (n - s) * math.log(1 - p)
    return list(groups.values())


DECIMALS: Final = 5
"""Of a stored coefficient: 1e-5 of log odds changes no probability by more than 3e-6."""
FEW: Final = 1_000
"""Up to so many coefficients the Hessian is small enough to be factorised (newton-cholesky)."""
INVERSE_PENALTY: Final = 1.0
"""`C`, of a weight whose standard deviation is believed to be 1."""
MAX_TOOLS: Final = 1_000
"""Tools with weights of their own, those with the most retries; all others are scored like tools never seen."""
LONGEST: Final = 200
"""Characters of the name of such a tool, so that a file keeps within its size."""


def fit(counts: Mapping[Any, Count], tools: frozenset[str], beliefs: Iterable[tuple[Crossed, Count]]) -> dict[str, Any]:
    """
    Fit *counts* of situations, and *beliefs* of the same form; only *tools* get weights of their own. L2 penalty, the intercept
    unpenalised. Returns `intercept`, the `weights` that all tools share, and by tool those of its own (`tools`).

    Raises TrainingError for weights that no sound records lead to.
    """
    with needs("train", "training"):
        import numpy as np

        from sklearn.feature_extraction import DictVectorizer
        from sklearn.linear_model import LogisticRegression
        from threadpoolctl import threadpool_limits

    rows = [*sorted((at, count) for at, count in counts.items() if count.n > 0), *beliefs]
    columns = DictVectorizer()
    matrix = columns.fit_transform([_columns(at, tools) for at, _ in rows])
    # A column of smaller numbers needs a larger coefficient for the same weight, and so is penalised more.
    scale = matrix.max(axis=0).toarray()[0]
    n, s = (np.array([count[part] for _, count in rows]) for part in (0, 1))
    # One row for the successes of a situation and one for its failures.
    solver, tolerance = ("newton-cholesky", 1e-8) if len(scale) <= FEW else ("newton-cg", 1e-6)
    regression = LogisticRegression(C=INVERSE_PENALTY, solver=solver, tol=tolerance, max_iter=200)
    good, bad = np.flatnonzero(s > 0), np.flatnonzero(n > s)
    if not len(good) or not len(bad):
        raise TrainingError("every call of the records ended alike: there is nothing to tell apart")
    worked, weights = np.repeat([1, 0], [len(good), len(bad)]), np.concatenate([s[good], (n - s)[bad]])
    # Threads add in no fixed order.
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("error")
        regression.fit(matrix[np.concatenate([good, bad])], worked, sample_weight=weights)
    made: dict[str, dict[str, float]] = {ANY: {}}
    for (tool, key), value in zip(columns.feature_names_, (regression.coef_[0] * scale).tolist(), strict=True):
        if abs(value) >= MAX_WEIGHT:
            raise TrainingError(f"the weight of `{key}` is {value:g}, beyond {MAX_WEIGHT:g}: the records are no good")
        if rounded := round(value, DECIMALS):
            made.setdefault(tool, {})[key] = rounded
    return {"intercept": round(float(regression.intercept_[0]), DECIMALS), "weights": made.pop(ANY), "tools": made}


def _columns(at: Crossed, tools: frozenset[str]) -> dict[tuple[str, str], float]:
    """
    Returns the columns of a situation, each (tool, name of the weight), with the spread that the weight is believed to have.
    """
    shared, own = at.keys()
    parts = ((ANY, shared), (at.tool, own if at.tool in tools else ()))
    return {(tool, key): spread for tool, crosses in parts for key, spread in crosses}


def known_tools(counts: Mapping[Any, Count]) -> frozenset[str]:
    """
    Returns the tools with the most events in *counts*; ties by name. A name that no file can hold is none of them.
    """
    events: Counter[str] = Counter()
    for at, count in counts.items():
        events[at.tool] += count.n  # type: ignore[assignment]
    named = [tool for tool in events if tool and len(tool) <= LONGEST and tool.isprintable()]
    return frozenset(sorted(named, key=lambda tool: (-events[tool], tool))[:MAX_TOOLS])


HALF_LIFE_DAYS: Final = 10.0
"""After so many days a failure weighs half; 7 to 14 days lose .001 log loss in a stable world and follow a changed one."""
Pairs = dict[str, dict[str, list[float]]]
"""Tries and those that worked, by tool and error type."""
_BLANK: Final[Mapping[str, Any]] = {
    "intercept": 0.0,
    **{key: {} for key in ("weights", "tools", "evidence", "corrections", "training")},
    "profiles": [],
}


@dataclass(slots=True)
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
    present: str | None
    """Name of the model that it was compared with; None: the shipped one, or one rate."""
    facts: Facts
    notes: list[str] = field(default_factory=list)
    output: Path = Path()
    written: bool = False
    """The model file is the new one."""
    files: int = 0
    """Files that gave calls."""

    @property
    def better(self) -> bool:
        """
        It should be served.
        """
        return any(one is not None and one.better for one in (self.retries, self.corrections))

    def to_dict(self) -> dict[str, Any]:
        """
        Returns the same for another program.
        """
        training = self.model.body["training"]
        return {
            **{name: getattr(self, name) for name in ("written", "better", "present", "files", "notes")},
            **{name: training[name] for name in ("failures", "retries", "verdict", "corrections")},
            "output": str(self.output),
            "model": self.model.name,
            "days": len(self.facts.days),
            "bytes": len(self.text),
        }


def learn(
    facts: Facts,
    present: RetryModel | None = None,
    *,
    half_life_days: float = HALF_LIFE_DAYS,
    force: bool = False,
    loops: bool = False,
) -> Learned:
    """
    Fit a model of retries, or of *loops*, on all days but the newest, and compare it there with the *present* one. Without that, a
    model of retries is compared with the shipped one, and a model of loops with saying one rate.

    The compared model is the one that will be served: it is not fitted again on the days that judged it, so that a bad day
    never gets in unseen. With *force* all of the new model is wanted, better or not.

    Raises TrainingError if nothing can be learned.
    """
    kind = LOOPS if loops else RETRIES
    events, nexts = facts.of(Prospect if loops else Situation), facts.of(Correction)
    mendable = nexts.where(lambda fact: fact.what[1] in CORRECTABLE)  # type: ignore[index]
    if not events and not mendable:
        raise TrainingError("no failed call was ever repeated in these records, so there is nothing to learn from yet")
    split, mending = split_of(events), split_of(mendable)
    seen, mended = split.fitted.decayed(half_life_days), mending.fitted.decayed(half_life_days)
    tools = known_tools({**seen, **mended})
    served = present or (None if loops else cold_model())
    body = dict(served.body if served else _BLANK)
    fitted = _fitted(seen, tools, loops=loops) if seen else {}
    counted = {"corrections": _by_pair(mended, tools, believed_corrections())} if mended else {}
    new = parse(text_of({**body, **fitted, **counted}, kind), kind)
    # A part without a served one is compared with one rate.
    retries = verdict_of(split, new.probability, served.probability if served else lambda at: None)
    corrections = verdict_of(
        mending, lambda at: new.correction(*at), lambda at: served.correction(*at) if served else None
    )
    for verdict, part in ((retries, fitted), (corrections, counted)):
        if force or (verdict and verdict.better):
            body |= part
    known = {} if loops else {**seen, **nexts.decayed(half_life_days)}
    body["profiles"] = [one.document() for one in profiles(known) if one.tool in tools]
    body["training"] = {
        "days": split.fitted.span,
        "held_out_days": split.held.span,
        "failures": facts.failures,
        "retries": events.total.n,
        "half_life_days": half_life_days,
        "verdict": retries and retries._asdict(),
        "corrections": corrections and corrections._asdict(),
        "versions": versions(),
    }
    text = text_of(body, kind)
    return Learned(parse(text, kind), text, retries, corrections, present.name if present else None, facts)


def train(
    records: Iterable[str | PathLike[str]],
    output: Path,
    *,
    half_life_days: float = HALF_LIFE_DAYS,
    master: str | None = None,
    dry_run: bool = False,
    force: bool = False,
    loops: bool = False,
    progress: Progress = lambda done: None,
) -> Learned:
    """
    Learn from *records* and write the model to *output* if it is better than the one there. With *force* it is always
    written, with *dry_run* never. It is of retries, or of *loops*.

    With *master*, Spark reads and counts. The file is replaced at once: a reader finds the old model or the new one.

    Raises NothingFoundError, a TrainingError, if there are no failed calls. Raises TrainingError if they teach nothing,
    OSError if a file cannot be read or written.
    """
    records = list(records)
    rows = read_on_spark(master, map(str, records)) if master else read(records, progress, loops=loops)
    if not rows.facts:
        why = "there are no failed calls in these records, so there is nothing to learn from yet"
        # Why there is nothing may be that nothing could be read.
        read_as = () if rows.files else (what_is_read() if rows.notices else no_calls(records, {}),)
        raise NothingFoundError("; ".join((why, *rows.notices[:SHOWN], *read_as)))
    try:
        present = read_model(output, LOOPS if loops else RETRIES) if output.exists() else None
    except ModelError as error:
        present = None
        rows.notices.append(f"the present model `{output}` cannot be used: {error}")
    made = learn(rows.facts, present, half_life_days=half_life_days, force=force, loops=loops)
    made.output, made.files, made.notes = output, rows.files, rows.notices
    made.written = (made.better or force) and not dry_run
    if made.written:
        write_whole(output, made.text)
    return made


def shipped_text() -> bytes:
    """
    Returns the file of the model that is served before there are records: the same fit, of the beliefs alone.
    """
    body = {**_BLANK, **fit({}, frozenset(), believed(ALONE))}
    body["corrections"] = _by_pair({}, frozenset(), believed_corrections())
    return text_of({**body, "training": {"records": "none", "versions": versions()}})


def versions() -> dict[str, str]:
    """
    Returns the versions of the packages that fit a model.
    """
    from importlib.metadata import version

    from guardrails.core.values.version import __version__

    return {"guardrails": __version__, **{name: version(name) for name in ("numpy", "scipy", "scikit-learn")}}


def _fitted(counts: Mapping[Any, Count], tools: frozenset[str], *, loops: bool) -> dict[str, Any]:
    """
    Returns the part of a model file that is fitted: its weights, and of retries how many there were.
    """
    if loops:
        return fit(counts, tools, [])
    pairs = _by_pair(counts, tools, {})
    evidence = {tool: {error: n for error, (n, _) in of.items()} for tool, of in pairs.items() if tool}
    return {**fit(counts, tools, believed(BELIEVED)), "evidence": evidence}


def _by_pair(counts: Mapping[Any, Count], tools: frozenset[str], beliefs: Mapping[str, Count]) -> Pairs:
    """
    Returns *counts* by tool, of *tools* and of all together (`ANY`, with the *beliefs*), and error type.
    """
    made: dict[str, dict[str, Count]] = {ANY: dict(beliefs)}
    for what, count in counts.items():
        for tool in (ANY, what.tool) if what.tool in tools else (ANY,):
            of = made.setdefault(tool, {})
            of[what.error] = of.get(what.error, NONE).plus(count)
    return {tool: {error: [round(x, DECIMALS) for x in of[error]] for error in sorted(of)} for tool, of in made.items()}


if __name__ == "__main__":
    write_whole(COLD, shipped_text())
