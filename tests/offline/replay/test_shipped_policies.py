"""
The shipped policies over the recorded data sets; `docs/measurements.md` tells the figures.
"""

import re

from pathlib import Path

import pytest

from benchmarks.judge.shipped_policies import CODING, REPEATS, WEAK, rate, row, together
from guardrails import Policy
from guardrails.offline.replay.run import judge_files
from guardrails.offline.replay.tally import Judgement
from guardrails.offline.transcripts.files import inputs


DATA = Path(__file__).parents[4] / "shared" / "data"

pytestmark = [pytest.mark.system, pytest.mark.skipif(not DATA.is_dir(), reason="the recorded data sets are not here")]


@pytest.fixture(scope="module")
def judged() -> dict[str, Judgement]:
    policies = [Policy.load(name) for name in ("default", "strict", "observe")]
    made = judge_files(policies, inputs(sorted(map(str, DATA.glob("*.jsonl.gz")))))
    return {judgement.policy: judgement for judgement in made}


def test_default_stops_late_repeats_of_weak_models_and_errs_seldom_and_strict_stops_all_and_errs_often(
    judged: dict[str, Judgement],
) -> None:
    sides = judged["default"], judged["strict"]
    (weak, all_weak), (coding, all_coding) = ([together(side, of) for side in sides] for of in (WEAK, CODING))
    assert coding.wrong_per_1000 <= 0.3
    # What more would take is a rule that can be wrong about work just done.
    assert weak.stopped_later >= 0.85 * weak.pointless_later > 690
    assert all_weak.stopped_second >= 0.85 * all_weak.pointless_second
    assert float(rate(all_coding.wrong, all_coding.calls, REPEATS)) > 0.5


def test_the_table_of_the_readme_is_what_is_judged(judged: dict[str, Judgement]) -> None:
    readme = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")
    table = readme.partition("| policy | refused though")[2].partition("\n\n")[0]
    rows = {name: next(line for line in table.splitlines() if line.startswith(f"| `{name}`")) for name in judged}
    for name, judgement in judged.items():
        # Which calls a share is of is told elsewhere.
        figures = [re.sub(r" \(\d+ of \d+\)", "", cell) for cell in row(judgement)[1:]]
        assert [cell.strip() for cell in rows[name].split("|")[2:6]] == figures


def test_the_page_of_the_shipped_policies_tells_what_is_judged(judged: dict[str, Judgement]) -> None:
    guide = (Path(__file__).parents[3] / "docs" / "measurements.md").read_text(encoding="utf-8")
    rows = {line.split("|")[1].strip(): line.split("|")[2:5] for line in guide.splitlines() if line.startswith("| ")}
    sides = [judged[name] for name in ("default", "strict", "observe")]
    weak, coding = ([together(side, sources) for side in sides] for sources in (WEAK, CODING))
    later = [f"{(t.stopped_later or t.observed_later):,} of {t.pointless_later:,}" for t in weak]
    rates = [rate(t.wrong or t.wrong_observed, t.calls) for t in coding]
    wrong = [rate(t.wrong or t.wrong_observed, t.calls, REPEATS) for t in coding]
    for row_name, figures in {
        "later pointless repeats stopped, weak": later,
        "refused though they had worked, in 1,000 coding calls": rates,
        "of these as repeats": wrong,
    }.items():
        assert [figure in cell for figure, cell in zip(figures, rows[row_name], strict=True)] == [True] * 3
