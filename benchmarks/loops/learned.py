"""
Second occurrences of exact repeats: caught against wrongly denied, as a table and an SVG: python -m benchmarks.loops.learned [FOLDER] [SVG]

The repeat model judges each source by a fit on all others (leave one source out), its intercept that of coding agents; and by
the intercept that the source itself asks for, as a deployment's own records do. The rules of others are judged by a replay in
which denied calls are not shown to them.
"""

import sys

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.judge.shipped_policies import CODING, DATA, together
from benchmarks.loops.table import policies
from guardrails import Loops, Policy
from guardrails.core.repetition.learned.features import FACTORS
from guardrails.core.repetition.learned.model import RepeatModel
from guardrails.core.repetition.learned.model_format import body_of, text_of
from guardrails.offline.judge.files.inputs import Input, inputs
from guardrails.offline.judge.files.run import Work, judge_files
from guardrails.offline.learning.repeats.fit import LEAST, Scored, figures, leave_one_out, score, summed
from guardrails.offline.learning.repeats.rows import rows_in


AT: Final = (0.99, 0.97, 0.95, 0.93, 0.9, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)
WIDTH, HEIGHT, EDGE = 640, 400, 60
Point = tuple[str, float, int]
"""(name, wrong denials per 10,000 coding calls, second occurrences caught in coding sources)"""


def svg(curves: Mapping[str, Sequence[Point]], points: Sequence[Point], most: float, top: int) -> str:
    """
    The curves and the points of others; whoever is beyond *most* wrong denials stands at the right edge.
    """

    def place(wrong: float, caught: float) -> tuple[float, float]:
        across = EDGE + min(wrong, most) / most * (WIDTH - 2 * EDGE)
        return round(across, 1), round(HEIGHT - EDGE - caught / top * (HEIGHT - 2 * EDGE), 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<path d="M{EDGE},{EDGE}V{HEIGHT - EDGE}H{WIDTH - EDGE}" fill="none" stroke="black"/>',
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 20}" text-anchor="middle">wrong denials per 10,000 coding calls</text>',
        f'<text x="18" y="{HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 18 {HEIGHT / 2})">of {top} caught</text>',
    ]
    for step in range(6):
        x, y = place(most * step / 5, top * step / 5)
        parts.append(f'<text x="{x}" y="{HEIGHT - EDGE + 14}" text-anchor="middle">{most * step / 5:g}</text>')
        parts.append(f'<text x="{EDGE - 6}" y="{y + 4}" text-anchor="end">{top * step / 5:.0f}</text>')
    x, _ = place(3, 0)
    parts.append(f'<path d="M{x},{EDGE}V{HEIGHT - EDGE}" stroke="grey" stroke-dasharray="4"/>')
    for (name, curve), colour in zip(curves.items(), ("#0060c0", "#c06000"), strict=False):
        line = " ".join(f"{x},{y}" for x, y in (place(wrong, caught) for _, wrong, caught in curve if wrong <= most))
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(
            f'<text x="{EDGE + 12}" y="{EDGE + (14 if colour == "#0060c0" else 30)}" fill="{colour}">{name}</text>'
        )
    labels: dict[tuple[float, float], list[str]] = {}
    for at, (name, wrong, caught) in enumerate(points, 1):
        beyond = f" ({wrong:.0f})" if wrong > most else ""
        said = f"{at} {name}{beyond}".replace("`", "")
        parts.append(f'<text x="{WIDTH / 2}" y="{EDGE + 14 * at}">{said}</text>')
        labels.setdefault(place(wrong, caught), []).append(str(at))
    for place_at, ((x, y), numbers) in enumerate(labels.items()):
        above = y - 6 - 11 * (place_at % 2)
        parts.append(f'<circle cx="{x}" cy="{y}" r="3"/>')
        parts.append(f'<text x="{x + 4}" y="{above}">{", ".join(numbers)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """
    Markdown.
    """
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in [heads, ["---"] * len(heads), *rows])


def main(folder: Path = DATA, output: Path | None = None) -> int:
    """
    Print the folds, the curve and the points of others.
    """
    files = inputs(sorted(map(str, folder.glob("*.jsonl*"))))
    if not files:
        print(f"skipped: no recorded data sets in `{folder}`", file=sys.stderr)
        return 2
    rows = list(rows_in(files))
    based: dict[str, list[Scored]] = {}
    own: dict[str, list[Scored]] = {}
    models = leave_one_out(rows, CODING)
    for source, (model, adapted) in models.items():
        of_source = [row for row in rows if row.source == source]
        based[source], own[source] = score(model, of_source), score(adapted, of_source)
    folds = [
        [source, *figures(found).values(), *list(figures(own[source]).values())[5:7], figures(_similarity(found))["ap"]]
        for source, found in based.items()
    ]
    heads = ["left out", *figures(based[CODING[0]]), "nudged, own intercept", "right", "AP of plain similarity"]
    print(table(heads, folds))
    coding = {
        name: [one for source in CODING for one in scored[source]] for name, scored in (("based", based), ("own", own))
    }
    everywhere = [one for found in based.values() for one in found]
    calls = len(coding["based"])
    top = sum(one.row.worth == "second" for one in coding["based"])
    all_second = sum(one.row.worth == "second" for one in everywhere)
    for at in (0.5, 0.6, 0.7, 0.8, 0.9):
        nudged = [[one.row.label for one in coding[name] if one.p >= at] for name in coding]
        print(
            f"nudged from {at}, wrong per 1,000 coding:",
            *(f"{1e3 * kinds.count(False) / calls:.1f}" for kinds in nudged),
        )
    lines, curves = [], {"model, intercept of other coding sources": [], "model, own intercept": []}  # type: ignore[var-annotated]
    for at in AT:
        base, self_fit, pooled = summed(coding["based"], at), summed(coding["own"], at), summed(everywhere, at)
        share = f"{100 * pooled.wrong / max(1, pooled.wrong + pooled.caught):.1f} %"
        lines.append([at, base.caught, base.wrong, f"{1e4 * base.wrong / calls:.2f}", self_fit.caught, self_fit.wrong])
        lines[-1] += [pooled.caught, pooled.wrong, share]
        for curve, point in zip(curves.values(), (base, self_fit), strict=True):
            curve.append((str(at), 1e4 * point.wrong / calls, point.caught))
    heads = ["p from", f"caught of {top} coding", "wrong", "wrong per 10,000", "caught, own intercept", "wrong"]
    print(table([*heads, f"caught of {all_second} everywhere", "wrong", "share wrong"], lines))
    served = [_served(file, models) for file in files if file.path.rpartition("/")[2].partition(".")[0] in models]
    heads = ["served, `loops` with the fold's model", "calls", "denied", "wrong", "seconds caught", "nudges", "wrong"]
    print(table(heads, served))
    points: list[Point] = []
    rules = policies()
    for name, judged in zip(rules, judge_files(Work(list(rules.values()), files)), strict=True):
        tally = together(judged, CODING)
        points.append((name, 10 * tally.wrong_per_1000, tally.stopped_second))
    print(table(["rule", "wrong per 10,000 coding calls", "second occurrences caught, coding"], [*map(_row, points)]))
    if output is not None:
        output.write_text(svg(curves, points, 50, top))
    return 0


def _similarity(scored: Sequence[Scored]) -> list[Scored]:
    """
    The same calls by how like their arguments are to earlier ones of the tool, and by nothing else.
    """
    return [Scored(row, 0.0 if row.levels is None else row.levels[0] / 10) for row, _ in scored]


def _served(file: Input, models: Mapping[str, tuple[RepeatModel, RepeatModel]]) -> list[object]:
    """
    What the guard says with the model that has not seen the source, in a replay.
    """
    source = Path(file.path).name.partition(".")[0]
    model, _ = models[source]
    default = Policy.load("default").chain
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.json")
        golden = [row.levels for row in islice(rows_in([file]), 200) if row.levels is not None][:1] or [
            (0,) * len(FACTORS)
        ]
        path.write_bytes(text_of(body_of(model.intercept, model.terms, LEAST, golden=golden, training={})))
        policy = Policy([Loops(model=str(path))], tools=default.tools.values(), rules=default.rules)
        tally = judge_files(Work([policy], [file]))[0].total
    denied, wrong = sum(tally.denied.values()), sum(tally.wrong.values())
    nudged, wrong_nudges = sum(tally.nudged.values()), sum(tally.wrong_nudges.values())
    return [source, tally.calls, denied, wrong, tally.stopped_second, nudged, wrong_nudges]


def _row(point: Point) -> list[object]:
    name, wrong, caught = point
    return [name, f"{wrong:.2f}", caught]


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:3])))
