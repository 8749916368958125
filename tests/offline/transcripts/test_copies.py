"""
Calls that stand in more than one file.
"""

from collections.abc import Iterable
from typing import Any

from guardrails.offline.transcripts import RecordedCall
from guardrails.offline.transcripts.files import add_once
from tests.tables import table


def made(index: int, *, session: str = "s", source: str = "one", **other: Any) -> RecordedCall:
    call = RecordedCall(session, "Read", {"path": f"{index}.py"}, source, index, id=f"toolu_{index}")
    call.turn, call.ts_ms, call.result = index + 1, 1_800_000_000_000 + 1000 * index, f"content {index}"
    for name, value in other.items():
        setattr(call, name, value)
    return call


def session_of(*numbers: int, **other: Any) -> list[RecordedCall]:
    return [made(number, **other) for number in numbers]


def told(calls: Iterable[RecordedCall]) -> list[tuple[str, str, int]]:
    return [(call.source, call.session_id, call.call_index) for call in calls]


def read(*files: list[RecordedCall]) -> list[tuple[str, str, int]]:
    known: dict[Any, RecordedCall] = {}
    for file in files:
        add_once(file, known)
    return told(known.values())


def test_a_checkpoint_goes_on_in_the_session_of_the_one_before() -> None:
    files = [session_of(*range(n), source=f"checkpoint {n}") for n in (2, 4, 3)]
    assert read(*files) == [("checkpoint 2", "s", n) for n in range(4)]


def test_a_fork_begins_with_its_first_own_call() -> None:
    fork = [*session_of(0, 1, session="fork", source="two"), made(7, session="fork", source="two")]
    assert read(session_of(0, 1, 2), fork) == [("one", "s", 0), ("one", "s", 1), ("one", "s", 2), ("two", "fork", 7)]


@table(
    "other",
    [
        {"ts_ms": None},
        {"ts_ms": 1_800_000_000_001},
        {"id": "toolu_x"},
        {"tool": "Write"},
        {"arguments": {"path": "other.py"}},
    ],
)
def test_a_call_that_differs_in_one_of_the_four_is_another(other: dict[str, Any]) -> None:
    first = made(0, ts_ms=None) if other == {"ts_ms": None} else made(0)
    assert len(read([first], [made(0, session="t", source="two", **other)])) == 2


AT_MS = 1_800_000_000_000
POLLS: list[dict[str, Any]] = [{"id": "call_0", "ts_ms": AT_MS, "arguments": {}} for _ in range(3)]


def polls(**other: Any) -> list[RecordedCall]:
    return [made(index, **same, **other) for index, same in enumerate(POLLS)]


def test_equal_calls_of_one_second_under_one_id_are_as_many_as_their_session_has() -> None:
    assert read(polls()) == [("one", "s", 0), ("one", "s", 1), ("one", "s", 2)]


def test_copies_of_equal_calls_of_one_second_are_copies_all_of_them() -> None:
    assert len(read(polls()[:2], polls(source="two"), polls(session="fork", source="three"))) == 3


def test_a_time_since_the_beginning_of_a_session_makes_no_copies() -> None:
    sessions = [[made(0, id="call_0", ts_ms=0, session=name, source=name) for _ in range(1)] for name in "ab"]
    assert read(*sessions) == [("a", "a", 0), ("b", "b", 0)]
