"""
Calls as they are read, counted and looked after: missing results, times that go backwards.
"""

from collections.abc import Iterable, Iterator

from guardrails.core.values.tool_name import MAX_CHARS, bounded_name
from guardrails.offline.figures import plural

from .base import RecordedCall, Report
from .waiting import Session, session_of


def watched(
    calls: Iterable[RecordedCall], report: Report, file: str, what: str, source: str | None = None
) -> Iterator[RecordedCall]:
    """
    Returns *calls* of *file*, whose format is *what*, with bounded names of tools. Their source is *source*, if one is
    given. No other field is changed. The report gets their number, and one notice for each thing that is wrong in the
    file.
    """
    count = without = 0
    backwards: RecordedCall | None = None
    latest: dict[Session, int] = {}
    session_id = run = ""
    of: Session = ""
    at_ms = 0
    before = report.calls
    for call in calls:
        if not count:
            report.read_as[file] = what
        count += 1
        report.calls = before + count
        if source is not None:
            call.source = source
        # One that was refused never ran.
        without += not call.has_result and call.decision != "deny"
        if len(call.tool) > MAX_CHARS:
            call.tool = bounded_name(call.tool)
        if call.session_id != session_id or call.run != run:
            latest[of] = at_ms
            session_id, run, of = call.session_id, call.run, session_of(call)
            at_ms = latest.get(of, 0)
        now_ms = call.ts_ms
        if now_ms is not None:
            if now_ms < at_ms and backwards is None:
                backwards = call
                report.note(
                    file,
                    f"times go backwards, first at call {call.call_index} of session `{session_id}`; they are kept",
                )
            at_ms = now_ms
        yield call

    if not count:
        broken = f", broken lines: {report.broken_count:,}" if report.broken_count else ""
        if file in report.without:
            report.note(file, f"no calls that can be read in this {what}")
        else:
            report.note(file, f"no tool calls in this {what}")
            size = f", {report.read:,} bytes" if report.read else ""
            report.gave_none(file, f"{what} without tool calls{broken}{size}")
    else:
        report.without.pop(file, None)
    if without:
        report.note(file, f"{without:,} of {plural(count, 'call')} {'has' if without == 1 else 'have'} no result")
