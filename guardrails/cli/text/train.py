"""
The texts that `guardrails train` prints.
"""

from typing import TYPE_CHECKING

from guardrails.offline.figures import plural

from .printing import heading, paragraph, printable, table


if TYPE_CHECKING:
    from guardrails.offline.learning.gate import Quality
    from guardrails.offline.learning.train import Trained

SHOWN = 10


def trained_text(made: "Trained", *, dry_run: bool) -> str:
    """
    Returns the text about a training: what was learned, how it compares, the fate of the model file, and points to look
    at.
    """
    learned = made.learned
    counted = (
        f"{plural(round(learned.failures), 'failure')} on {plural(learned.days, 'day')}, "
        f"{learned.labelled:,.0f} of them retried; {plural(made.files, 'file')} with new records."
    )
    lines = [
        paragraph(counted),
        "",
        *_compared(made),
        "",
        *_corrected(made),
        paragraph(_outcome(made, dry_run=dry_run)),
    ]
    if learned.logged:
        share = f"{learned.skewed:,.0f} of {learned.logged:,.0f}"
        told = f"Skew: serving saw other features than training in {share} failures ({100 * learned.skew:.3g} %)."
        lines += ["", paragraph(told)]
    if learned.drifts:
        lines += ["", heading("Retries that do not come out as the present model predicts")]
        lines += [paragraph(drift.sentence(), indent="  ", hanging="    ") for drift in learned.drifts[:SHOWN]]
        if len(learned.drifts) > SHOWN:
            lines.append(f"  and {len(learned.drifts) - SHOWN} more")
    if made.notes:
        lines += ["", *(paragraph(f"Note: {note}", hanging="  ") for note in made.notes)]
    return "\n".join(lines)


def _compared(made: "Trained") -> list[str]:
    verdict = made.learned.verdict
    if verdict is None:
        if made.learned.corrected is not None:
            return ["No retries are held out, so nothing says how good the model is at those."]
        return ["Nothing is held out, so nothing says how good the model is."]
    present = made.learned.present
    new = "new" if made.learned.grafted else f"new {made.learned.new.model.name}"
    names = ["", new, f"present {present}" if present else "shipped"]
    rows = [names, *([label, *cells] for label, cells in _figures(verdict.new, verdict.present))]
    return [table(rows), "", paragraph(f"Gate: {verdict.reason}.")]


def _corrected(made: "Trained") -> list[str]:
    said = made.learned.corrected
    if said is None:
        return []
    told = (
        f"Self-correction: {said.calls:,.0f} held-out calls with other arguments after a failure, {100 * said.worked:.0f} % worked; "
        f"log loss {said.new:.4f} new, {said.present:.4f} present, {said.base:.4f} base rate. Gate: {said.reason}."
    )
    kept = (
        "What is said of retries stays; what is said of corrections is new."
        if made.written and made.learned.grafted
        else ""
    )
    return [paragraph(told), *([paragraph(kept)] if kept else []), ""]


def _figures(new: "Quality", present: "Quality") -> list[tuple[str, list[str]]]:
    def of(name: str, digits: int) -> list[str]:
        return [f"{getattr(quality, name):,.{digits}f}" for quality in (new, present)]

    return [
        ("held-out retries", of("retries", 0)),
        ("log loss", of("log_loss", 4)),
        ("Brier", of("brier", 4)),
        ("calibration error", of("calibration_error", 4)),
        ("value per retry", of("value", 4)),
    ]


def _outcome(made: "Trained", *, dry_run: bool) -> str:
    learned, path = made.learned, printable(str(made.output))
    size = f"{learned.new.fitted.coefficients:,} coefficients, {len(learned.new.text) / 1024:,.0f} KiB"
    if made.written:
        return f"`{path}` is now the model {learned.new.model.name} ({size})."
    if dry_run:
        return f"`{path}` is left as it is (--dry-run); the new model {'would' if learned.better else 'would not'} replace it."
    if learned.unchanged:
        return f"`{path}` is left as it is: the new model says the same."
    if learned.present is None:
        return "No model is written: the shipped one stays in use. Train again with more records, or use --force."
    return f"`{path}` is left as it is."
