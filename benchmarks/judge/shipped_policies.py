"""
What the shipped policies would have done to recorded calls, as a table: benchmarks/judge/shipped_policies.py [FOLDER]

FOLDER holds the recorded data sets (`../shared/data` where none is named); `docs/shipped-policies.md` says what the
figures mean. Reading is done once, for all policies together.
"""

import sys

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from guardrails import Policy
from guardrails.offline.judge.files.inputs import inputs
from guardrails.offline.judge.files.run import Work, judge_files
from guardrails.offline.judge.result import Judgement, Tally, add


DATA: Final = Path(__file__).parents[3] / "shared" / "data"
POLICIES: Final = ("default", "strict", "observe")
CODING: Final = ("cc_entireio_cli", "cc_context_evaluator", "cx_agentv")
WEAK: Final = ("mint", "reflexion_hotpotqa", "toolbench_rapidapi", "tau2_retail")
HEADS: Final = (
    "policy",
    "wrong denials per 1,000 coding calls",
    "third-or-later pointless repeats of weak models stopped",
    "all calls stopped",
)


def together(judgement: Judgement, sources: Iterable[str]) -> Tally:
    whole = Tally("together")
    for tally in judgement.tallies:
        if tally.source in sources:
            add(whole, tally)
    return whole


def row(judgement: Judgement) -> list[str]:
    coding, weak, total = together(judgement, CODING), together(judgement, WEAK), judgement.total
    stopped = total.denials + sum(total.after_exhaustion.values())
    if not stopped and total.observed:
        met = f"(would have: {100 * weak.observed_later / weak.pointless_later:.1f} %)"
        return [judgement.policy, f"0 (would have: {coding.wrong_observed_per_1000:.2f})", f"0 {met}", "0"]
    later = f"{100 * weak.stopped_later / weak.pointless_later:.1f} % ({weak.stopped_later} of {weak.pointless_later})"
    return [judgement.policy, f"{coding.wrong_per_1000:.2f}", later, f"{100 * stopped / total.calls:.1f} %"]


def main(folder: Path = DATA) -> int:
    files = inputs(sorted(map(str, folder.glob("*.jsonl*"))))
    if not files:
        print(f"skipped: no recorded data sets in `{folder}`", file=sys.stderr)
        return 2
    judged = judge_files(Work([Policy.load(name) for name in POLICIES], files))
    rows = [list(HEADS), ["---"] * len(HEADS), *map(row, judged)]
    print(f"{judged[0].total.calls:,} calls, {judged[0].total.sessions:,} sessions\n")
    print("\n".join(f"| {' | '.join(cells)} |" for cells in rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:2])))
