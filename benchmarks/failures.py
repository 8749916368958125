"""
What the default rule for failures inside results does to recorded results: python -m benchmarks.failures [FOLDER] [--list N]

FOLDER holds the recorded data sets (`../shared/data` if none is named). A false alarm is a call that its source calls a success
and the rule a failure, a miss the other way round. The flags of mint, reflexion, toolbench, livemcpbench and whowhen were made
from the text of the results, so there a disagreement may be theirs. `--list` shows so many of either by source.
"""

import sys

from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from guardrails import Tool
from guardrails.core.outcome.hidden_failures import failure_in
from guardrails.core.outcome.plain_failures import may_fail
from guardrails.core.repetition.own_words import own_words
from guardrails.offline.readers.base import RecordedCall
from guardrails.offline.readers.inputs import calls_of, inputs


DATA: Final = Path(__file__).parents[2] / "shared" / "data"
HEADS: Final = ("source", "true successes", "false alarms", "of contents", "failures", "found")


def found(call: RecordedCall) -> bool:
    """
    Whether the rule calls the result of *call* a failure.
    """
    if call.result is None or not may_fail(call.result):
        return False
    speaks = partial(own_words, Tool(name=call.tool))
    return failure_in(call.result, None, speaks, call.arguments) is not None


def recorded(folder: Path) -> Iterator[RecordedCall]:
    yield from calls_of(inputs(sorted(str(path) for path in folder.glob("*.jsonl*") if "errors_and" not in path.name)))


def main(folder: Path = DATA, shown: int = 0) -> int:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    wrong: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for call in recorded(folder):
        if not call.has_result:
            continue
        count, failed = counts[call.source], found(call)
        if call.is_error:
            count["failures"] += 1
            count["found"] += failed
        else:
            count["true successes"] += 1
            count["false alarms"] += failed
            count["of contents"] += failed and own_words(Tool(name=call.tool), call.arguments) == "shown"
        if failed is not bool(call.is_error):
            kind = "missed" if call.is_error else "false alarm"
            wrong[kind, call.source][f"{call.tool} | {(call.result or '')[:200]!r}"] += 1
    if not counts:
        print(f"skipped: no recorded data sets in `{folder}`", file=sys.stderr)
        return 2
    total = sum(counts.values(), Counter())
    rows = [
        [source, *(f"{count[head]:,}" for head in HEADS[1:])] for source, count in [*counts.items(), ("all", total)]
    ]
    print("\n".join(f"| {' | '.join(cells)} |" for cells in [HEADS, ["---"] * len(HEADS), *rows]))
    print(f"\nfalse alarms: {100 * total['false alarms'] / total['true successes']:.3f} % of true successes")
    for (kind, source), texts in sorted(wrong.items()) if shown else ():
        print(f"\n{kind}, {source}: {texts.total():,}")
        for text, times in texts.most_common(shown):
            print(f"  {times} x {text}")
    return 0


if __name__ == "__main__":
    asked = sys.argv[1:]
    number = int(asked.pop(asked.index("--list") + 1)) if "--list" in asked else 0
    folders = [Path(each) for each in asked if not each.startswith("--")]
    sys.exit(main(folders[0] if folders else DATA, number))
