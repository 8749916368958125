"""
Calls as they are read, counted and looked after.
"""

from guardrails.offline.readers.base import RecordedCall, Report
from guardrails.offline.readers.watched import watched


def call(ts_ms: int | None, session: str = "s", has_result: bool = True) -> RecordedCall:
    return RecordedCall("own", session, 0, "t", {}, ts_ms=ts_ms, has_result=has_result)


def look(*calls: RecordedCall, source: str | None = None) -> tuple[list[RecordedCall], Report]:
    report = Report()
    return list(watched(calls, report, "f", "chat", source)), report


def test_calls_are_counted_and_pass_as_they_are() -> None:
    given = [call(1), call(None), call(2)]
    calls, report = look(*given)
    assert all(map(lambda one, other: one is other, calls, given))
    assert (report.calls, report.notices, calls[0].source) == (3, [], "own")


def test_times_that_go_backwards_are_told_once_a_file_and_kept() -> None:
    calls, report = look(call(5), call(3), call(9), call(1))
    assert [one.ts_ms for one in calls] == [5, 3, 9, 1]
    assert len(report.notices) == 1
    assert "times go backwards, first at call 0 of session `s`" in report.notices[0]


def test_sessions_have_clocks_of_their_own() -> None:
    _, report = look(call(5, "a"), call(1, "b"), call(6, "a"), call(2, "b"), call(None, "a"), call(7, "a"))
    assert report.notices == []
    _, report = look(call(5, "a"), call(1, "b"), call(4, "a"))
    assert len(report.notices) == 1


def test_missing_results_are_told_of() -> None:
    _, report = look(call(1), call(2, has_result=False))
    assert report.notices == ["`f`: 1 of 2 calls has no result"]
