"""
What the shipped policies would have done to recorded calls, as tables: benchmarks/judge/shipped_policies.py [FOLDER]

FOLDER holds the recorded data sets (`../shared/data` where none is named); `docs/measurements.md` says what the
figures mean. Reading is done once, for all policies together.
"""

import sys

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from guardrails import Policy
from guardrails.offline.replay.run import judge_files
from guardrails.offline.replay.tally import Judgement, Tally
from guardrails.offline.transcripts.files import inputs


DATA: Final = Path(__file__).parents[3] / "shared" / "data"
POLICIES: Final = ("default", "strict", "observe")
CODING: Final = ("cc_entireio_cli", "cc_context_evaluator", "cx_agentv")
WEAK: Final = ("mint", "reflexion_hotpotqa", "toolbench_rapidapi", "tau2_retail")
HEADS: Final = (
    "policy",
    "refused though they had worked, in 1,000 coding calls",
    "of these as repeats",
    "third-or-later pointless repeats of weak models stopped",
    "all calls stopped",
)
REPEATS: Final = ("duplicates.", "loops.")
"""Codes of guards that take a call for a repeat."""
SPLIT: Final = ("policy", "source", "calls", "refused", "wrong", "repeat", "failed", "unknown", "wrong by guard")


def together(judgement: Judgement, sources: Iterable[str]) -> Tally:
    return Tally("together", [row for row in judgement.rows if row.source in sources])


def rate(counter: Counter[str], calls: int, codes: tuple[str, ...] = ("",)) -> str:
    """
    Calls of *counter*, by codes that begin so, in 1,000 *calls*.
    """
    return f"{1000 * sum(n for code, n in counter.items() if code.startswith(codes)) / calls:.2f}"


def row(judgement: Judgement) -> list[str]:
    coding, weak, total = together(judgement, CODING), together(judgement, WEAK), judgement.total
    if not total.refused and total.observed:
        wrong, met = coding.wrong_observed, 100 * weak.observed_later / weak.pointless_later
        rates = (f"0 (would have: {rate(wrong, coding.calls, codes)})" for codes in (("",), REPEATS))
        return [judgement.policy, *rates, f"0 (would have: {met:.1f} %)", "0"]
    later = f"{100 * weak.stopped_later / weak.pointless_later:.1f} % ({weak.stopped_later} of {weak.pointless_later})"
    rates = (rate(coding.wrong, coding.calls, codes) for codes in (("",), REPEATS))
    return [judgement.policy, *rates, later, f"{100 * total.refused / total.calls:.1f} %"]


def split(judgement: Judgement) -> list[list[str]]:
    """
    What was refused, and of it what had worked, by source and of all.
    """
    rows = []
    for tally in (*judgement.sources, judgement.total):
        wrong, refused = tally.wrong or tally.wrong_observed, tally.refused or tally.observed.total()
        if refused:
            parts = [part.total() for part in (wrong, tally.repeats, tally.failed, tally.unknown)]
            by = ", ".join(f"{code} {n:,}" for code, n in wrong.most_common())
            counts = [f"{n:,}" for n in (tally.calls, refused, *parts)]
            rows.append([judgement.policy, tally.source, *counts, by])
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
    print(
        "\nRefused calls by what is recorded of them (docs/replay.md); of a policy that observes, what it would have refused\n"
    )
    print(table(SPLIT, (cells for judgement in judged for cells in split(judgement))))
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:2])))
