"""
Joins the findings of several processes, as one process would have found them.
"""

from array import array
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, Self

from guardrails.core.values.errors import GuardrailsError
from guardrails.offline.judge.result import MAX_STOPS, Judgement
from guardrails.offline.readers.keys import MAX_KEYS
from guardrails.offline.readers.same_call import MAX_OPEN

from .decisions import Decisions
from .part import Part
from .run import MAX_NOTICES, Run, Work
from .spill import SpillingTracks


KEY_BYTES: Final = 8


class ApartError(GuardrailsError):
    """
    The parts cannot be judged apart from each other.
    """


class Merged:
    """
    The parts so far, and then all of them. A context manager.
    """

    def __init__(self, work: Work) -> None:
        self.parts: dict[int, Part] = {}
        self._work = work
        self._written: dict[int, Path | None] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        work = self._work
        tracks = [self._stack.enter_context(SpillingTracks(work.limit // len(work.policies))) for _ in work.policies]
        self._run = Run(work, tracks)
        if work.decisions is not None:
            self._run.decisions = self._stack.enter_context(Decisions(work.decisions))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def add(self, number: int, part: Part, written: Path | None) -> None:
        """
        Take the *part* of this *number*, whose decisions are *written* there. Raises ApartError if it has to do with another.
        """
        for other_number, other in self.parts.items():
            first, second = (other, part) if other_number < number else (part, other)
            if _touch(first, second):
                raise ApartError("one part has to do with another")
        self.parts[number] = part
        self._written[number] = written
        found, work = self.parts.values(), self._work
        if (
            part.spilled
            or sum(len(each.sessions) for each in found) > work.limit // len(work.policies)
            or sum(len(each.keys) for each in found) > MAX_KEYS * KEY_BYTES
            or sum(each.held for each in found) > MAX_OPEN
        ):
            raise ApartError("there is more than one process would have in memory")

    def judgements(self, *, finished: bool) -> list[Judgement]:
        """
        Returns one for each policy, of the parts in their order. If the work is *finished*, calls for which no result
        came are judged.
        """
        self._take_over()
        if finished:
            self._run.judge_rest()
        return self._run.judgements(finished=finished)

    def _take_over(self) -> None:
        run, parts = self._run, [self.parts[number] for number in sorted(self.parts)]
        for side, (judge, kept) in enumerate(zip(run.judges, run.tracks, strict=True)):
            judge.take_over(_figures([part.figures[side] for part in parts]))
            kept.add_packed(row for part in parts for row in part.rows[side])
        position = run.position
        for part in parts:
            position.broken += part.position.broken
            position.notices += part.position.notices
            position.read_as |= part.position.read_as
            position.without |= part.position.without
        position.notices = position.notices[:MAX_NOTICES]
        if run.decisions is not None:
            for number in sorted(self.parts):
                path = self._written[number]
                if path is not None:
                    run.decisions.add_lines(path)
        run.copies.left_out = sum(part.left_out for part in parts)
        run.copies.take_open(each for part in parts for each in part.open)


def _touch(first: Part, second: Part) -> bool:
    """
    Whether *second*, which stands behind *first*, would be judged otherwise by the process that has judged *first*.
    """
    if not _sources(first).isdisjoint(_sources(second)):
        return True
    waiting = _waiting(first)
    if not waiting.isdisjoint(second.sessions) or not waiting.isdisjoint(_waiting(second)):
        return True
    return not set(array("Q", first.keys)).isdisjoint(array("Q", second.keys))


def _sources(part: Part) -> set[str]:
    return {*part.figures[0]["tallies"], *(call["source"] for _, call in part.open)}


def _waiting(part: Part) -> set[tuple[str, str]]:
    return {(call["session_id"], call["run"]) for _, call in part.open}


def _figures(sides: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """
    Returns the figures of all parts, as `Judge.to_dict` would give them. No two parts have a source in common.
    """
    return {
        "tallies": {source: tallies for side in sides for source, tallies in side["tallies"].items()},
        "held": {source: held for side in sides for source, held in side["held"].items()},
        "stops": [stop for side in sides for stop in side["stops"]][:MAX_STOPS],
        "declared": [any(said) for said in zip(*(side["declared"] for side in sides), strict=True)] or [False, False],
    }
