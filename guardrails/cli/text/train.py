"""
The texts that `guardrails train` prints.
"""

from typing import TYPE_CHECKING

from guardrails.offline.figures import plural

from .printing import paragraph, printable, table


if TYPE_CHECKING:
    from guardrails.offline.learning.gate import Verdict
    from guardrails.offline.learning.train import Trained


def trained_text(made: "Trained", *, dry_run: bool) -> str:
    """
    Returns the text about a training: what was learned, how it compares, the fate of the model file, and points to look
    at.
    """
    learned = made.learned
    retries = learned.model.body["training"]["retries"]
    counted = (
        f"{plural(round(learned.facts.failures), 'failure')} on {plural(learned.facts.days, 'day')}, {retries:,.0f} of them "
        f"retried; {plural(made.files, 'file')}."
    )
    judged = [("retries", learned.retries), ("calls with other arguments", learned.corrections)]
    lines = [paragraph(counted), "", *_compared([(what, verdict) for what, verdict in judged if verdict is not None])]
    lines.append(paragraph(_outcome(made, dry_run=dry_run)))
    if made.notes:
        lines += ["", *(paragraph(f"Note: {note}", hanging="  ") for note in made.notes)]
    return "\n".join(lines)


def _compared(verdicts: "list[tuple[str, Verdict]]") -> list[str]:
    if not verdicts:
        return ["Nothing is held out, so nothing says how good the model is.", ""]
    rows = [["log loss, held out", "of", "worked", "new", "present", "one rate"]]
    for what, one in verdicts:
        figures = (f"{figure:.4f}" for figure in (one.new, one.present, one.base))
        rows.append([what, f"{one.events:,.0f}", f"{100 * one.worked:.0f} %", *figures])
    gates = [paragraph(f"Gate, {what}: {verdict.reason}.") for what, verdict in verdicts]
    return [table(rows), "", *gates, ""]


def _outcome(made: "Trained", *, dry_run: bool) -> str:
    learned, path = made.learned, printable(str(made.output))
    if made.written:
        return f"`{path}` is now the model {learned.model.name} ({len(learned.text) / 1024:,.0f} KiB)."
    if dry_run:
        return f"`{path}` is left as it is (--dry-run); the new model {'would' if learned.better else 'would not'} replace it."
    if learned.unchanged:
        return f"`{path}` is left as it is: the new model says the same."
    if learned.present is None:
        return "No model is written: the shipped one stays in use. Train again with more records, or use --force."
    return f"`{path}` is left as it is."
