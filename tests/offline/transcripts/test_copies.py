"""
Calls that stand in more than one file.
"""

from collections.abc import Iterable
from typing import Any

from guardrails.offline.transcripts import RecordedCall
from guardrails.offline.transcripts.copies import Copies
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


def read(*files: list[RecordedCall], copies: Copies | None = None) -> list[tuple[str, str, int]]:
    copies = Copies() if copies is None else copies
    return told(call for file in files for call in copies.once(file))


def test_a_checkpoint_goes_on_in_the_session_of_the_one_before() -> None:
    copies = Copies()
    files = [session_of(*range(n), source=f"checkpoint {n}") for n in (2, 4, 3)]
    assert read(*files, copies=copies) == [("checkpoint 2", "s", n) for n in range(4)]
    assert copies.left_out == 5
    assert copies.notices() == [
        "5 copies of calls are left out: a call that stands in more than one file or session counts once"
    ]


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


def test_a_call_that_ends_a_checkpoint_gets_its_result_from_the_next() -> None:
    def cut(source: str, *without: int) -> list[RecordedCall]:
        calls = [made(n, source=source, has_result=n not in without) for n in range(3)]
        for number in without:
            calls[number].result = None
        return calls

    copies = Copies()
    first, second = cut("one", 1, 2), [*cut("two", 2), made(3, source="two")]
    calls = [call for file in (first, second) for call in copies.once(file)]
    assert told(calls) == [("one", "s", n) for n in range(4)]
    assert [call.result for call in calls] == ["content 0", "content 1", None, "content 3"]


def test_a_refused_call_waits_for_no_result() -> None:
    copies = Copies()
    refused = made(0, has_result=False, decision="deny")
    assert [call.has_result for file in ([refused], [made(0)]) for call in copies.once(file)] == [False]


AT_MS = 1_800_000_000_000
POLLS: list[dict[str, Any]] = [{"id": "call_0", "ts_ms": AT_MS, "arguments": {}} for _ in range(3)]


def polls(**other: Any) -> list[RecordedCall]:
    return [made(index, **same, **other) for index, same in enumerate(POLLS)]


def test_equal_calls_of_one_second_under_one_id_are_as_many_as_their_session_has() -> None:
    assert read(polls()) == [("one", "s", 0), ("one", "s", 1), ("one", "s", 2)]


def test_copies_of_equal_calls_of_one_second_are_copies_all_of_them() -> None:
    copies = Copies()
    assert len(read(polls()[:2], polls(source="two"), polls(session="fork", source="three"), copies=copies)) == 3
    assert copies.left_out == 5


def test_a_session_that_begins_again_in_its_file_has_no_new_calls() -> None:
    first = made(0)
    assert read([first, made(0), made(1), made(0), made(1), made(2)]) == [("one", "s", n) for n in range(3)]


def test_a_time_since_the_beginning_of_a_session_makes_no_copies_of_other_sessions() -> None:
    sessions = [[made(0, id="call_0", ts_ms=0, session=name, source=name) for _ in range(1)] for name in "ab"]
    assert read(*sessions) == [("a", "a", 0), ("b", "b", 0)]
    assert len(read(sessions[0], [made(0, id="call_0", ts_ms=0, session="a", source="checkpoint")])) == 1


def test_a_session_that_goes_another_way_in_another_file_is_a_fork() -> None:
    other = [*session_of(0, 1, source="two"), made(2, source="two", arguments={}), made(3, source="two", arguments={})]
    assert read(session_of(0, 1, 2, 3), other)[4:] == [("two", "s", 2), ("two", "s", 3)]
