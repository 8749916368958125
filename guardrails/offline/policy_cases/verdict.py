"""
Compares decisions with expectations.
"""

import json

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from guardrails.core.decision import Decision
from guardrails.core.values.types import Denial, Nudge, Status

from .steps import Call, Said


ABSENT: Final = object()
_SHOWN: Final = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """
    One step that did not go as expected.
    """

    line: int
    step: str
    """What the step does: ``call `search` ``."""
    expected: str
    decided: str
    repetition: int | None = None
    """Of the innermost `repeat` around it, from 1."""
    said: Said | None = None
    """The decision; None: the step was no call."""
    denials: tuple[str, ...] = ()
    """The codes of all that denied, the one that the model reads first."""
    observed: tuple[str, ...] = ()
    nudges: tuple[str, ...] = ()

    def __str__(self) -> str:
        times = "" if self.repetition is None else f" (repetition {self.repetition})"
        return f"{self.step}{times}: expected {self.expected}; decided {self.decided}"


@dataclass(slots=True, kw_only=True)
class Difference:
    """
    The difference, in two columns. Empty if all is as expected.
    """

    expected: list[str] = field(default_factory=list)
    decided: list[str] = field(default_factory=list)

    def add(self, expected: str, decided: str) -> None:
        """
        Note one thing that differs.
        """
        self.expected.append(expected)
        self.decided.append(decided)


def said_of(decision: Decision) -> Said:
    """
    Returns the decision in one word.
    """
    if decision.pending:
        return "pending"
    return "deny" if decision.denials else "nudge" if decision.nudges else "allow"


def codes_of(said: Iterable[Denial | Nudge]) -> tuple[str, ...]:
    """
    Their codes in order, each once.
    """
    return tuple(dict.fromkeys(each.code for each in said))


def decision_differs(step: Call, decision: Decision) -> Difference:
    """
    Returns how *decision* differs from the one that *step* expects. The decided side names every code there was.
    """
    found = Difference()
    said = said_of(decision)
    codes = [decision.code] if decision.denials else [code for code, _ in decision.nudges]
    if said != step.expect or (step.code is not None and step.code not in codes):
        found.expected.append(" ".join(filter(None, (step.expect, step.code))))
    observed = {step.observed} if isinstance(step.observed, str) else set(step.observed)
    if {denial.code for denial in decision.observed} != observed:
        found.expected.append(f"observed {_list(sorted(observed))}")
    if found.expected:
        found.decided.append(_told(decision))
    return found


def _told(decision: Decision) -> str:
    """
    The whole decision: every denial, nudge, observed denial and failed guard.
    """
    said = said_of(decision)
    codes = codes_of(decision.denials) or [code for code, _ in decision.nudges]
    told = [f"{said} {_list(codes)}" if codes else said]
    if decision.observed:
        told.append(f"observed {_list(codes_of(decision.observed))}")
    told += [f"guard `{name}` failed ({error})" for name, error in decision.errors]
    return ", ".join(told)


def _list(codes: Sequence[str]) -> str:
    return " + ".join(codes) if codes else "nothing"


def envelope_differs(
    status: Status | None, fields: dict[str, Any] | None, read: dict[str, Any], found: Difference
) -> None:
    """
    Add to *found* how the fields of an envelope differ from the expected *status* and *fields*.
    """
    if status is not None and read["status"] != status:
        found.add(f"status {status}", f"status {read['status']}")
    for path, wanted, got in differing(fields or {}, read, "envelope"):
        found.add(f"{path} {_shown(wanted)}", f"{path} {_shown(got)}")


def differing(wanted: Any, got: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """
    Returns (path, wanted, got) for each *got* that is not as *wanted*. Maps are compared by the keys that are wanted,
    lists element by element. A wanted null means that no value is there, and 1 equals 1.0 but not `true`.
    """
    if isinstance(wanted, dict) and isinstance(got, dict):
        for key, value in wanted.items():
            yield from differing(value, got.get(key, ABSENT), f"{path}.{key}")
    elif isinstance(wanted, list) and isinstance(got, list) and len(wanted) == len(got):
        for n, (one, other) in enumerate(zip(wanted, got, strict=True)):
            yield from differing(one, other, f"{path}.{n}")
    elif wanted is None:
        if got is not None and got is not ABSENT:
            yield path, wanted, got
    elif isinstance(wanted, bool) is not isinstance(got, bool) or wanted != got:
        yield path, wanted, got


def _shown(value: Any) -> str:
    if value is None or value is ABSENT:
        return "absent"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
