"""
Calls as they are read, counted and looked after: missing results, times that go backwards.
"""

from collections.abc import Iterable, Iterator

from .base import RecordedCall, Report
from .recent import Recent


def watched(
    calls: Iterable[RecordedCall], report: Report, file: str, what: str, source: str | None = None
) -> Iterator[RecordedCall]:
    """
    *calls* of the file *file*, which is a *what*, under the name *source* where one is given. Nothing else of them is
    changed; the report gets their number, and one notice for each thing that is wrong in the file.
    """
    count = without = 0
    backwards: RecordedCall | None = None
    latest: Recent[str, int] = Recent()
    session_id, at_ms = "", 0
    for call in calls:
        count += 1
        report.calls += 1
        if source is not None:
            call.source = source
        if not call.has_result:
            without += 1
        if call.session_id != session_id:
            latest[session_id] = at_ms
            session_id = call.session_id
            at_ms = latest.get(session_id, 0)
        if call.ts_ms is not None:
            if call.ts_ms < at_ms and backwards is None:
                backwards = call
                report.note(
                    file,
                    f"times go backwards, first at call {call.call_index} of session `{session_id}`; they are kept",
                )
            at_ms = call.ts_ms
        yield call

    if not count:
        report.note(file, f"no tool calls in this {what}")
    if without:
        report.note(file, f"{without} of {count} calls have no result")
