"""
What one setting more or less than `default` has would do to recorded calls: benchmarks/judge/settings.py [FOLDER]

The figures behind the reasons in `docs/shipped-policies.md`. The cap on refused turns is off: it would end sessions, and
hide what the setting itself does.
"""

import sys
import tempfile

from pathlib import Path
from typing import Final

from guardrails import Policy
from guardrails.offline.judge.files.inputs import inputs
from guardrails.offline.judge.files.run import Work, judge_files

from .shipped_policies import CODING, DATA, WEAK, together


SETTINGS: Final = {
    "default": "",
    "duplicates always, 5": "duplicates: {rule: always, window: 5}",
    "duplicates evidence, 5": "duplicates: {rule: evidence, window: 5}",
    "duplicates evidence, 10": "duplicates: {rule: evidence, window: 10}",
    "no tool known as read-only": "tools: []",
    "budget.max_calls 100": "budget: {max_calls: 100}",
    "budget.max_calls 300": "budget: {max_calls: 300}",
    "budget.max_calls 500": "budget: {max_calls: 500}",
    "budget.max_elapsed 1h": "budget: {max_elapsed: 1h}",
    "budget.max_elapsed 24h": "budget: {max_elapsed: 24h}",
    "growth 10 calls a second": "growth: {max_calls_per_second: 10}",
    "growth 5 calls a second": "growth: {max_calls_per_second: 5}",
    "streak.max_same 15": "streak: {max_same: 15}",
    "streak.max_same 30": "streak: {max_same: 30}",
    "streak.max_failures 3": "streak: {max_failures: 3}",
    "streak.max_failures 5": "streak: {max_failures: 5}",
}


def main(folder: Path = DATA) -> int:
    files = inputs(sorted(map(str, folder.glob("*.jsonl*"))))
    if not files:
        print(f"skipped: no recorded data sets in `{folder}`", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as made:
        path = Path(made, "policy.yaml")
        policies = []
        for setting in SETTINGS.values():
            path.write_text(f"version: 1\nextends: default\ndenials: {{mode: off}}\n{setting}\n")
            policies.append(Policy.load(path))
    print(f"{'setting':28}{'coding: refused':>16}{'wrong':>8}{'all: ended':>12}{'weak: later stopped':>21}")
    for name, judgement in zip(SETTINGS, judge_files(Work(policies, files)), strict=True):
        coding, weak = together(judgement, CODING), together(judgement, WEAK)
        refused = coding.denials + sum(coding.after_exhaustion.values())
        wrong, ended = sum(coding.wrong.values()), sum(n for code, n in judgement.total.denied.items() if _ends(code))
        print(
            f"{name:28}{refused:>16,}{wrong:>8,}{ended:>12,}{100 * weak.stopped_later / weak.pointless_later:>19.1f} %"
        )
    return 0


def _ends(code: str) -> bool:
    return code.startswith(("budget.", "growth."))


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:2])))
