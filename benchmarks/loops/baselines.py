"""
What others do against loops, written from their published descriptions; each a guard, so that one replay judges all.

Their windows count executed calls here. Where they only warn, or end the run, a denial stands for it.
"""

from typing import Final

from guardrails import Denial, Guard, guard
from guardrails.core.guards.base import Facts, SessionState, ToolCall
from guardrails.core.state import Entry


def _denied(rule: str) -> Denial:
    # The judge asks of codes of `loops` whether the call brought something.
    return Denial(code=f"loops.{rule}", message="a repeat")


def _over(state: SessionState) -> list[Entry]:
    return [entry for entry in reversed(state.window) if entry.status in ("ok", "error")]


def _same(a: Entry, b: Entry) -> bool:
    return a.sig == b.sig and a.status == b.status and a.result_hash == b.result_hash


@guard
class TwoIdenticalResults(Guard):
    """
    The last two identical calls of the last 20 gave the same result.
    """

    def check(self, call: ToolCall, state: SessionState, mine: object, facts: Facts) -> Denial | None:
        own = [entry for entry in _over(state)[:20] if entry.sig == call.sig][:2]
        return _denied("two_results") if len(own) == 2 and _same(*own) else None


@guard
class OpenHands(Guard):
    """
    Four equal pairs of action and observation in a row, three equal actions that all failed, or A B A B A B.
    """

    def check(self, call: ToolCall, state: SessionState, mine: object, facts: Facts) -> Denial | None:
        last = _over(state)
        if len(last) >= 4 and all(_same(last[0], entry) for entry in last[1:4]):
            return _denied("four_pairs") if last[0].sig == call.sig else None
        if len(last) >= 3 and all(entry.sig == call.sig and entry.status == "error" for entry in last[:3]):
            return _denied("three_errors")
        if len(last) >= 6 and last[1].sig == call.sig != last[0].sig:
            turns = all(_same(last[at], last[at + 2]) for at in range(4))
            return _denied("alternation") if turns else None
        return None


@guard
class GeminiCli(Guard):
    """
    Cycles of 1 to 5 calls, by name and arguments alone, five times over within the last 25.
    """

    def check(self, call: ToolCall, state: SessionState, mine: object, facts: Facts) -> Denial | None:
        sigs = [call.sig, *(entry.sig for entry in reversed(state.window))][:25]
        for length in range(1, 6):
            if len(sigs) >= 5 * length and sigs[: 4 * length] == sigs[length : 5 * length]:
                return _denied("five_repeats")
        return None


FILES: Final = ("edit", "write", "create", "save", "append", "todo", "Edit", "Write", "Todo")


@guard
class HermesAgent(Guard):
    """
    The same failure of the same call 5 times, a tool failing 8 times, a read without progress 5 times, one call 5 times in
    a row, a cycle of 2 to 4 calls with their results 3 times; pollers are exempt, and changes reset the failures.
    """

    def check(self, call: ToolCall, state: SessionState, mine: object, facts: Facts) -> Denial | None:
        if "status" in call.tool or "wait" in call.tool:
            return None
        last = _over(state)
        since = next((at for at, e in enumerate(last) if e.status == "ok" and e.tool.startswith(FILES)), len(last))
        recent = last[:since]
        own = [entry for entry in recent if entry.sig == call.sig]
        if sum(entry.status == "error" for entry in own) >= 5:
            return _denied("exact_failure")
        failing = [entry for entry in recent if entry.tool == call.tool]
        if len(failing) >= 8 and all(entry.status == "error" for entry in failing[:8]):
            return _denied("same_tool_failing")
        reads = [entry for entry in last if entry.sig == call.sig and not entry.changes]
        if len(reads) >= 5 and all(_same(reads[0], entry) for entry in reads[1:5]):
            return _denied("no_progress")
        if len(last) >= 5 and all(entry.sig == call.sig for entry in last[:5]):
            return _denied("streak")
        for length in range(2, 5):
            lap = last[: 3 * length]
            whole = len(lap) == 3 * length and lap[length - 1].sig == call.sig
            if whole and all(_same(lap[at], lap[at + length]) for at in range(2 * length)):
                return _denied("laps")
        return None


@guard
class StepLimit(Guard):
    """
    A fixed number of calls; counted as a claim to know a loop.
    """

    steps: int = 100

    def check(self, call: ToolCall, state: SessionState, mine: object, facts: Facts) -> Denial | None:
        return _denied("steps") if state.seq >= self.steps else None
