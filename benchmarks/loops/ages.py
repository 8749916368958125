"""
How late an identical look comes, with no work since, and whether it shows something else: python -m benchmarks.loops.ages [FOLDER]

Looks are those that `default` would take for evidence; only sources with times tell.
"""

import sys

from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.judge.shipped_policies import DATA
from guardrails import Policy, SessionState, ToolCall
from guardrails.core.guards.base import Facts, Guard, guard
from guardrails.core.repetition.commands.waiting import waits, waits_itself
from guardrails.core.repetition.patterns import same_end
from guardrails.core.repetition.results import steady_hash
from guardrails.core.repetition.work import outdated
from guardrails.core.text.signature import masked_result_hash, result_hash
from guardrails.offline.judge.files.inputs import calls_of, inputs
from guardrails.offline.judge.judgement import Judge
from guardrails.offline.readers import RecordedCall


STEPS: Final = (-1, 10, 30, 60, 120, 300, 1 << 40)
"""Seconds."""


class Look(NamedTuple):
    """
    A call that repeats an earlier one.
    """

    late: float
    """Seconds since the latest equal call."""
    apart: float | None
    """Seconds between the two latest, if they ended alike."""
    changed: bool = False
    """It ended otherwise than the latest."""


SEEN: list[Look] = []
"""What `Looks` saw of the present call."""


@guard
class Looks(Guard):
    """
    Notes a call whose like is known, if no work was done since.
    """

    def check(self, call: ToolCall, state: SessionState, facts: Facts) -> None:
        own = [entry for entry in state.earlier(call.sig, 20) if entry.status in ("ok", "error")]
        if not own or own[0].error_type == "cancelled" or facts.tool.polling or own[0].unfinished:
            return
        if not (waits(call.tool) or waits_itself(call) or outdated(state, own[0])):
            apart = [own[0].at_ms - other.at_ms for other in own[1:2] if same_end(own[0], other)]
            SEEN.append(Look((state.now_ms - own[0].at_ms) / 1_000, apart[0] / 1_000 if apart else None))


def ended(call: RecordedCall) -> set[tuple[bool, int]]:
    """
    How *call* ended: two ended alike if they share one of these.
    """
    text = call.result or ""
    if call.is_error:
        return {(True, masked_result_hash(text) if call.masked_hash is None else call.masked_hash)}
    plain = result_hash(text) if call.plain_hash is None else call.plain_hash
    steady = steady_hash(text.encode(errors="ignore"))
    return {(False, plain), *([(False, steady)] if steady else [])}


def looks(folder: Path) -> list[Look]:
    """
    Those of the recorded data in *folder*.
    """
    judge = Judge(Policy([Looks()], rules=Policy.load("default").chain.rules))
    latest: dict[tuple[str, str, str, str], RecordedCall] = {}
    found = []
    for call in calls_of(inputs(sorted(map(str, folder.glob("*.jsonl*"))))):
        SEEN.clear()
        judge.judge(call)
        key = call.source, call.session_id, call.tool, repr(call.arguments)
        before = latest.get(key)
        if SEEN and before is not None and call.ts_ms is not None and call.has_result and before.has_result:
            found.append(SEEN[0]._replace(changed=ended(call).isdisjoint(ended(before))))
        latest[key] = call
    return found


def main(folder: Path = DATA) -> int:
    """
    Print how many looks came how late, and how many of them showed something else.
    """
    found = looks(folder)
    after_two = [look for look in found if look.apart is not None]
    for name, some in (("after one look", found), ("after two equal looks", after_two)):
        print(f"{name}: {len(some)}, {sum(look.changed for look in some)} of them changed")
        for more, most in pairwise(STEPS):
            part = [look.changed for look in some if more < look.late <= most]
            if part:
                print(f"  up to {most:>4} s: {len(part):>4}, {sum(part)} changed" if most < 1e6 else f"  later: {part}")
    if after_two:
        print(f"the latest after two: {max(look.late for look in after_two):.0f} s,", end=" ")
        print(f"{max(look.late / look.apart for look in after_two if look.apart):.1f} times their distance")
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:2])))
