"""
How many pages are known by sure signs of more, and how often a whole result is called one: python -m benchmarks.completeness [-v]

The cases in `completeness.jsonl` are answers of public services and of tools, each with its last page: `complete` is false for a page, true
for all there is, and null where nobody can tell. They are a score and no gate: a page by a bare total or by prose is not known, and not called
complete either where a total stands beside it. `-v` prints what is called wrong.
"""

import json
import sys

from collections import Counter
from pathlib import Path
from typing import Any, Final

from guardrails.core.result import reading_of
from guardrails.core.result.completeness import extent_of


CASES: Final = Path(__file__).with_suffix(".jsonl")


def main(shown: list[str]) -> None:
    counts: Counter[tuple[Any, Any]] = Counter()
    for case in map(json.loads, CASES.read_text("utf-8").splitlines()):
        told = extent_of(reading_of(case["value"])).complete
        counts[case["complete"], told] += 1
        if shown and told is not case["complete"] and told is not None:
            print(f"called {told}: {json.dumps(case['value'], ensure_ascii=False)[:200]}")
    print("| | called a page | called complete | nothing said |\n| --- | --- | --- | --- |")
    for name, is_complete in (("pages", False), ("complete", True), ("nobody can tell", None)):
        cells = [counts[is_complete, told] for told in (False, True, None)]
        print(f"| {name} | {' | '.join(map(str, cells))} |")


if __name__ == "__main__":
    main(sys.argv[1:])
