"""
Training of the repeat model: the whole of it, or only its intercept, on a person's own records.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, Final

from guardrails.core.repetition.learned.model import RepeatModel
from guardrails.core.repetition.learned.model_format import body_of
from guardrails.core.retries.scoring import Term
from guardrails.core.values.errors import TrainingError

from .fit import Scored, counted, deny_at, figures, fit_slopes, intercept_of, leave_one_out, score, summed
from .rows import Row


GOLDEN: Final = 24


def trained(rows: Sequence[Row], base: Collection[str] = ()) -> tuple[dict[str, Any], dict[str, list[Scored]]]:
    """
    Returns the JSON value of a model fitted on *rows*, and what models that had not seen a source say of it, by source.

    The intercept is that of the sources *base* (all if none are named). Raises TrainingError if there is nothing to
    learn.
    """
    sources = sorted({row.source for row in rows})
    if unknown := sorted(set(base) - set(sources)):
        raise TrainingError(f"there is no source `{unknown[0]}`: there are {', '.join(sources)}")
    if len(sources) < 2:
        raise TrainingError("one source cannot be left out of itself: give records of two or more, or use `--from`")
    base = set(base) or set(sources)
    counts = counted(rows)
    folds = leave_one_out(rows, base)
    scored = {source: score(model, _of(rows, source)) for source, (model, _) in folds.items()}
    based = [one for source in sources if source in base for one in scored[source]]
    at = deny_at(based)
    slopes = fit_slopes(counts)
    intercept = slopes.model({key: pair for key, pair in counts.items() if key[0] in base}).intercept
    training: dict[str, Any] = {"base": sorted(base), "left_out": {}}
    for source, (_, own) in folds.items():
        others = [one for name in base - {source} for one in scored[name]] or based
        without = deny_at(others)
        training["left_out"][source] = {
            **figures(scored[source]),
            "own_intercept": {
                name: figures(score(own, _of(rows, source)))[name] for name in ("nudged", "nudged_right")
            },
            "deny_at_of_others": without,
            "denied_by_it": summed(scored[source], without)._asdict(),
        }
    training["second_occurrences"] = {
        "base": summed(based, at)._asdict(),
        "all": summed([one for found in scored.values() for one in found], at)._asdict(),
    }
    often = Counter({levels: 0 for _, levels in counts})
    for (_, levels), (n, _) in counts.items():
        often[levels] += n
    golden = sorted(often, key=lambda levels: (-often[levels], levels))[:GOLDEN]
    return body_of(intercept, slopes.terms, at, golden=golden, training=training), scored


def adapted(model: RepeatModel, rows: Sequence[Row]) -> dict[str, Any]:
    """
    Returns *model* with the intercept that fits *rows*, a person's own records. Raises TrainingError if no row can be
    labelled.
    """
    counts = counted(rows)
    intercept = intercept_of(model, counts)
    labelled, dull = (sum(pair[at] for pair in counts.values()) for at in (0, 1))
    training = {
        **model.body["training"],
        "adapted": {"from": model.name, "labelled": labelled, "nothing_new": dull, "intercept_before": model.intercept},
    }
    terms = [Term(tuple(term["on"]), term["w"]) for term in model.body["terms"]]
    golden = [tuple(levels) for levels, _ in model.body["golden"]]
    return body_of(intercept, terms, model.deny_at, golden=golden, training=training)


def _of(rows: Sequence[Row], source: str) -> list[Row]:
    return [row for row in rows if row.source == source]
