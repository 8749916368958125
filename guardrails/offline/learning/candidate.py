"""
A model made of cells: fitted, with the evidence, profiles and golden vectors that its file holds.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from guardrails.core.retries.model import Golden, RetryModel
from guardrails.core.retries.model_format import body_of, corrections_said, parse, sealed, text_of
from guardrails.core.retries.profiles import Tally, profiles
from guardrails.core.retries.scoring import EXPLORE, SOURCE, probability
from guardrails.core.retries.shrinkage import ANY, NONE, Corrections, Count
from guardrails.core.retries.spec import FeatureSpec
from guardrails.core.values.errors import needs
from guardrails.offline.learning.labels import NO_ACTION
from guardrails.offline.learning.prior import ALONE, DECLARED, prior_cells
from guardrails.offline.learning.rows.cells import Cell

from .corrections import corrections_of, told_of
from .design import Columns, columns_of, logits
from .fit import INVERSE_PENALTY, SPREADS, TERMS, Fitted, fit, known_tools, writable
from .room import told_pairs, with_room


GOLDEN: Final = 12
DECIMALS: Final = 6
KEPT: Final = "kept"
"""In place of a solver's name: the terms are those of another model."""
MIN_EXPLORED: Final = 50
"""Retries to explore from which on the others are told apart from them."""


class Candidate(NamedTuple):
    """
    A model that was just fitted, as it would be served and as its file.
    """

    model: RetryModel
    text: bytes
    fitted: Fitted


def candidate(
    spec: FeatureSpec,
    cells: Sequence[Cell],
    terms: Sequence[tuple[str, ...]] = TERMS,
    training: Mapping[str, Any] | None = None,
    corrections: Corrections | None = None,
) -> Candidate:
    """
    Returns the model of *cells*, already decayed, and of the shipped beliefs. Its file tells of *training*. The
    *corrections* are those of the cells unless they are given.

    Raises TrainingError if they teach nothing.
    """
    tools = known_tools(cells)
    kept = [cell for cell in cells if cell.tool in tools]
    beliefs = prior_cells(spec) if kept else prior_cells(spec, ALONE)
    corrections = corrections_of(spec, cells) if corrections is None else corrections
    tallies = told_pairs(_with(tallies_of(spec, kept), corrections))
    corrections = told_of(corrections, tallies)
    on = judged_terms(terms, cells)
    columns = with_room(columns_of(spec, cells, tools=tools, beliefs=beliefs), on)
    fitted = fit(columns, on, SPREADS)
    evidence = {key: _plain(tally) for key, tally in tallies.items() if tally.plain.n or tally.repaired.n}
    told = {
        **(training or {}),
        "labelled": round(sum(evidence.values()), DECIMALS),
        "coefficients": fitted.coefficients,
        "solver": {
            "name": fitted.solver,
            "iterations": fitted.iterations,
            "C": INVERSE_PENALTY,
            "spreads": list(SPREADS),
        },
        "versions": versions(),
    }
    body = body_of(
        spec,
        fitted.intercept,
        fitted.terms,
        declared=DECLARED,
        evidence=evidence,
        corrections=corrections.counts,
        correction_runs=corrections.after,
        golden=_golden(columns, fitted, kept),
        profiles=[profile.document() for profile in profiles(tallies, corrections)],
        training=told,
    )
    text = text_of(body)
    return Candidate(parse(text), text, fitted)


def grafted(base: RetryModel, corrections: Corrections, spec: FeatureSpec, cells: Sequence[Cell]) -> Candidate:
    """
    Returns *base* with other *corrections*; its profiles are those of *cells*, already decayed.
    """
    tallies = told_pairs(_with(tallies_of(spec, cells), corrections))
    kept = told_of(corrections, tallies)
    told = [profile.document() for profile in profiles(tallies, kept)]
    text = text_of(sealed({**base.body, **corrections_said(kept.counts, kept.after), "profiles": told}))
    return Candidate(parse(text), text, Fitted(base.intercept, base.terms, KEPT, 0))


def judged_terms(terms: Sequence[tuple[str, ...]], cells: Iterable[Cell]) -> tuple[tuple[str, ...], ...]:
    """
    Returns *terms*, without the terms of the source if too few retries were made to explore. The difference between an
    agent's chosen retries and others is then unknown. A property of all retries would be taken for one of the agent's.
    """
    explored = sum(cell.n for cell in cells if cell.source == EXPLORE)
    return tuple(term for term in terms if SOURCE not in term or explored >= MIN_EXPLORED)


def _with(tallies: Mapping[tuple[str, str], Tally], corrections: Corrections) -> dict[tuple[str, str], Tally]:
    """
    *tallies* whose corrections are those that are served; of tools that were never retried there may be no more.
    """
    empty = Tally({})
    served = {key: count for key, count in corrections.counts.items() if key[0] != ANY and writable(key[0])}
    made = {key: tally._replace(corrected=served.get(key, NONE)) for key, tally in tallies.items()}
    return {**{key: empty._replace(corrected=count) for key, count in served.items()}, **made}


def told(made: Candidate, more: Mapping[str, Any]) -> Candidate:
    """
    Returns the same model, whose file tells *more* of its training.
    """
    body = {**made.model.body, "training": {**made.model.body["training"], **more}}
    text = text_of(sealed(body))
    return Candidate(parse(text), text, made.fitted)


def cold_model(spec: FeatureSpec) -> Candidate:
    """
    Returns the model that is served before there are records: the same fit, of the beliefs alone.
    """
    return candidate(spec, [], TERMS, {"records": "none"})


def versions() -> dict[str, str]:
    """
    Returns the versions of the packages that fit and write a model.
    """
    from guardrails.offline.learning.numeric import np

    with needs("train", "training"):
        import scipy
        import sklearn

    from guardrails.core.values.version import __version__

    return {
        "guardrails": __version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }


def tallies_of(spec: FeatureSpec, cells: Iterable[Cell]) -> dict[tuple[str, str], Tally]:
    """
    Returns the sums of the cells of each (tool, error type).
    """
    delay, between = spec.by_name.get("delay"), spec.by_name.get("between")
    waits = {} if delay is None else {delay.level(wait): wait for wait in reversed(spec.delays_ms)}
    timed: dict[tuple[str, str], dict[int, Count]] = defaultdict(dict)
    others: dict[str, dict[tuple[str, str], Count]] = {"untimed": {}, "repaired": {}, "corrected": {}}
    for cell in cells:
        key = (cell.tool, cell.error_type)
        timed[key]  # every pair has a tally, also one that was never retried
        _add(others["corrected"], key, cell.corrected_n, cell.corrected)
        if cell.action == NO_ACTION:
            continue
        if between is not None and cell.action // between.stride % between.radix:
            _add(others["repaired"], key, cell.n, cell.s)
            continue
        wait = None if delay is None else waits.get(cell.action // delay.stride % delay.radix)
        if wait is None:
            _add(others["untimed"], key, cell.n, cell.s)
        else:
            _add(timed[key], wait, cell.n, cell.s)
    return {
        key: Tally(by_wait, *(others[name].get(key, NONE) for name in ("untimed", "repaired", "corrected")))
        for key, by_wait in timed.items()
    }


def _add(counts: dict[Any, Count], key: Any, n: float, s: float) -> None:
    if n > 0:
        known = counts.get(key, NONE)
        counts[key] = Count(known.n + n, known.s + s)


def _plain(tally: Tally) -> float:
    return round(tally.plain.n + tally.repaired.n, DECIMALS)


def _golden(columns: Columns, fitted: Fitted, cells: Sequence[Cell]) -> list[Golden]:
    """
    The probabilities of some cells, spread over all, by another way than the one that serves them.
    """
    labelled = sorted(cell for cell in cells if cell.action != NO_ACTION and cell.n > 0)
    if not labelled:
        one = Cell(
            0,
            0,
            ANY,
            "",
            0,
            action=0,
            source=EXPLORE,
            n=1.0,
            s=0.0,
            unlabelled=0.0,
            corrected_n=0.0,
            corrected=0.0,
            logged=0.0,
            skewed=0.0,
        )
        labelled = [
            one._replace(error_type=cell.error, context=cell.context, action=cell.action)
            for cell in prior_cells(columns.spec)
        ]
    chosen = labelled[:: max(1, len(labelled) // GOLDEN)][:GOLDEN]
    same = columns_of(columns.spec, chosen, source=EXPLORE)
    found = logits(same, fitted.intercept, fitted.terms)
    return [
        Golden(cell.tool, cell.error_type, cell.context, cell.action, probability(float(logit)))
        for cell, logit in zip(sorted(chosen), found, strict=True)
    ]
