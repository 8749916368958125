"""
What the guard of loops takes on recorded calls, and what its sketch loses: python -m benchmarks.loops.cost [FOLDER]

The time of `Loops.check` for each call, and how far sketches agree with the words themselves (Jaccard similarity of at
least a half) about two calls of one tool in a row.
"""

import re
import sys

from pathlib import Path
from statistics import quantiles
from time import perf_counter_ns
from typing import Any, Final

from benchmarks.judge.shipped_policies import DATA
from guardrails import Facts, Loops, Policy, SessionState, ToolCall
from guardrails.core.guards.base import guard
from guardrails.core.repetition.sketch import alike, sketch_of
from guardrails.core.text.signature import canonical
from guardrails.offline.judge.files.inputs import inputs
from guardrails.offline.judge.files.run import Work, judge_files
from guardrails.offline.readers import Report, open_calls


TIMES: Final[list[int]] = []
WORDS: Final = re.compile(r'\w+(?!\w*":)')
HALF: Final = 0.5


@guard
class Timed(Loops):
    """
    The guard, with a watch.
    """

    name = "loops"

    def check(self, call: ToolCall, state: SessionState, facts: Facts) -> Any:
        began = perf_counter_ns()
        said = Loops.check(self, call, state, facts)
        TIMES.append(perf_counter_ns() - began)
        return said


def lost(files: Any) -> list[int]:
    """
    Pairs of calls: alike by words and by sketch, by words only, by sketch only, by neither.
    """
    pairs = [0, 0, 0, 0]
    for file in files:
        last: dict[str, tuple[str, set[str], int]] = {}
        for call in open_calls(file.path, Report(), source=file.folder):
            written = (canonical(call.arguments) or b"")[:4096].decode("utf-8", "ignore").lower()
            words = set(WORDS.findall(written))
            sketch = sketch_of(ToolCall(call.tool, call.arguments, "1", None, None))
            before = last.get(call.tool)
            if before is not None and before[0] == call.session_id and before[1] | words:
                near = len(before[1] & words) >= HALF * len(before[1] | words)
                pairs[2 * (not near) + (not alike(before[2], sketch))] += 1
            last[call.tool] = call.session_id, words, sketch
    return pairs


def main(folder: Path = DATA) -> int:
    """
    Print both.
    """
    files = inputs(sorted(map(str, folder.glob("*.jsonl*"))))
    if not files:
        print(f"skipped: no recorded data sets in `{folder}`", file=sys.stderr)
        return 2
    judge_files(Work([Policy([Timed()])], files))
    cuts = quantiles(TIMES, n=100)
    print(
        f"Loops.check, {len(TIMES):,} recorded calls: p50 {cuts[49] / 1e3:.2f} us, p90 {cuts[89] / 1e3:.2f} us, ",
        end="",
    )
    print(f"p99 {cuts[98] / 1e3:.2f} us")
    both, words, sketch, neither = lost(files)
    print(
        f"pairs of calls: {both:,} alike by both, {words:,} by words only, {sketch:,} by sketch only, {neither:,} by neither"
    )
    print(f"recall {both / (both + words):.3f}, precision {both / (both + sketch):.3f} of the sketch")
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:2])))
