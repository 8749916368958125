"""
What the shipped policies would have done to recorded calls, as tables: benchmarks/judge/shipped_policies.py [FOLDER]

FOLDER holds the recorded data sets (`../shared/data` where none is named); `docs/shipped-policies.md` says what the
figures mean. Reading is done once, for all policies together.
"""

import sys

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from guardrails import Policy
from guardrails.offline.replay.counting import WHY
from guardrails.offline.replay.result import Judgement, Tally, add
from guardrails.offline.replay.run import judge_files
from guardrails.offline.transcripts.inputs import inputs


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
SPLIT: Final = ("policy", "source", "wrong", *WHY, "lost after the end", "of these worked", "of these no repeat")


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


def split(judgement: Judgement) -> list[list[str]]:
    """
    Why denials were wrong (worked: the call is recorded as a success) and what was lost, by source and of all.
    """
    rows = []
    for tally in (*judgement.tallies, judgement.total):
        watched = not tally.wrong and bool(tally.wrong_observed)
        why, worked = (
            (tally.wrong_observed_why, tally.wrong_observed_worked)
            if watched
            else (tally.wrong_why, tally.wrong_worked)
        )
        if not why and not tally.lost:
            continue
        cells = [f"{why[each]:,} ({worked[each]:,} worked)" if why[each] else "0" for each in WHY]
        lost = (f"{each.total():,}" for each in (tally.lost, tally.lost_worked, tally.lost_new))
        rows.append([judgement.policy, tally.source, f"{why.total():,}{' (observed)' * watched}", *cells, *lost])
    return rows


def table(heads: Iterable[str], rows: Iterable[list[str]]) -> str:
    names = list(heads)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (names, ["---"] * len(names), *rows))


def main(folder: Path = DATA) -> int:
    files = inputs(sorted(map(str, folder.glob("*.jsonl*"))))
    if not files:
        print(f"skipped: no recorded data sets in `{folder}`", file=sys.stderr)
        return 2
    judged = judge_files([Policy.load(name) for name in POLICIES], files)
    print(f"{judged[0].total.calls:,} calls, {judged[0].total.sessions:,} sessions\n")
    print(table(HEADS, map(row, judged)))
    print("\nWhy denials were wrong (what docs/replay.md says), and the calls lost after the end of a session\n")
    print(table(SPLIT, (cells for judgement in judged for cells in split(judgement))))
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:2])))
