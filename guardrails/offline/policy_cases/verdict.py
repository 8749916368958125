"""
Compares decisions with expectations.
"""

import json

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from guardrails.core.decision import Decision
from guardrails.core.values.types import Denial, Nudge, Status

from .steps import Call, Said


Difference = tuple[str, str]
"""The expected, and the decided."""
ABSENT: Final = object()
_SHOWN: Final = 160


@dataclass(slots=True, kw_only=True)
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


def decision_differs(step: Call, decision: Decision) -> list[Difference]:
    """
    Returns how *decision* differs from the one that *step* expects. The decided side is the whole decision: every denial, nudge,
    observed denial and failed guard.
    """
    said, nudges = said_of(decision), [code for code, _ in decision.nudges]
    codes = codes_of(decision.denials) or nudges
    observed = [step.observed] if isinstance(step.observed, str) else step.observed
    wanted = []
    if said != step.expect or step.code not in (None, *([decision.code] if decision.denials else nudges)):
        wanted.append(" ".join(filter(None, (step.expect, step.code))))
    if {denial.code for denial in decision.observed} != set(observed):
        wanted.append(f"observed {' + '.join(sorted(set(observed))) or 'nothing'}")
    decided = [" ".join(filter(None, (said, " + ".join(codes))))]
    if decision.observed:
        decided.append(f"observed {' + '.join(codes_of(decision.observed))}")
    decided += [f"guard `{name}` failed ({error})" for name, error in decision.errors]
    return [(", ".join(wanted), ", ".join(decided))] if wanted else []


def envelope_differs(status: Status | None, fields: dict[str, Any] | None, read: dict[str, Any]) -> list[Difference]:
    """
    Returns how the fields of an envelope differ from the expected *status* and *fields*.
    """
    wrong = [] if status in (None, read["status"]) else [(f"status {status}", f"status {read['status']}")]
    found = differing(fields or {}, read, "envelope")
    return wrong + [(f"{path} {_shown(wanted)}", f"{path} {_shown(got)}") for path, wanted, got in found]


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
