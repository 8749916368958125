"""
Nudges of the policy `default` on recorded calls, counted and some of them in full, to be read by a person:
python -m benchmarks.loops.nudges [FOLDER] [NUMBER] [SEED]

FOLDER holds the recorded data sets (`../shared/data` where none is named); NUMBER nudges (40) are drawn by SEED (1), each
with what its tool had failed of before, and what the call then brought. All that the calls say is data of strangers.
"""

import sys

from collections import Counter, deque
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

from benchmarks.judge.shipped_policies import DATA
from guardrails import Facts, Loops, Policy, SessionState, ToolCall
from guardrails.core.guards.base import guard
from guardrails.core.values.types import Nudge
from guardrails.offline.judge.files.inputs import Input, inputs
from guardrails.offline.judge.judgement import Judge
from guardrails.offline.readers import RecordedCall, Report, open_calls


BEFORE: Final = 6
"""Calls of the same session that are shown with a nudge."""
SHOWN: Final = 160
"""Characters of each text."""
HEARD: Final[list[Nudge]] = []


@guard
class Heard(Loops):
    """
    The guard, with a memory of what it hinted at last.
    """

    name = "loops"

    def check(self, call: ToolCall, state: SessionState, facts: Facts) -> Any:
        said = Loops.check(self, call, state, facts)
        HEARD[:] = [said] if isinstance(said, Nudge) else []
        return said


class Told(NamedTuple):
    """
    One nudge with what was known when it was given.
    """

    call: RecordedCall
    nudge: Nudge
    before: tuple[RecordedCall, ...]


def policy() -> Policy:
    """
    The shipped policy, with the guard that remembers.
    """
    base = Policy.load("default")
    guards = [Heard(**one.settings()) if type(one) is Loops else one for one in base.chain.guards]
    return Policy(guards, tools=base.chain.tools.values(), rules=base.chain.rules)


def nudges(files: list[Input]) -> list[Told]:
    """
    Every nudge of the guard, in the order of the files.
    """
    judge, told = Judge(policy()), []
    before: dict[tuple[str, str, str], deque[RecordedCall]] = {}
    for file in files:
        for call in open_calls(file.path, Report(), source=file.folder):
            HEARD.clear()
            said = judge.judge(call)
            earlier = before.setdefault((call.source, call.session_id, call.run), deque(maxlen=BEFORE))
            if said.decision == "nudge" and HEARD:
                told.append(Told(call, HEARD[0], tuple(earlier)))
            if said.decision != "deny":
                earlier.append(call)
    return told


def _short(said: object) -> str:
    text = " ".join(str(said).split())
    return text if len(text) <= SHOWN else f"{text[: SHOWN * 3 // 4]} ... {text[-SHOWN // 4 :]}"


def _ended(call: RecordedCall) -> str:
    return f"{call.error_type or 'ok'}: {_short(call.result)}"


def main(folder: str | Path = DATA, number: str = "40", seed: str = "1") -> int:
    """
    Print both.
    """
    files = inputs(sorted(map(str, Path(folder).glob("*.jsonl*"))))
    if not files:
        print(f"skipped: no recorded data sets in `{folder}`", file=sys.stderr)
        return 2
    told = nudges(files)
    counts = Counter((one.call.source, one.nudge.code) for one in told)
    print("| source | code | nudges |\n| --- | --- | --- |")
    for (source, code), count in sorted(counts.items()):
        print(f"| {source} | {code} | {count} |")
    print(f"| all | | {len(told)} |")
    for at, one in enumerate(Random(seed).sample(told, min(int(number), len(told))), 1):
        call = one.call
        print(f"\n{at}. {call.source} {call.session_id} {call.call_index}: {one.nudge.hint}")
        for earlier in one.before:
            print(f"   {earlier.tool} {_short(earlier.arguments)}\n      -> {_ended(earlier)}")
        print(f"   NOW {call.tool} {_short(call.arguments)}\n      -> {_ended(call)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
