"""
What a report keeps.
"""

from guardrails.offline.readers.base import MAX_NAMED, Report


def test_a_report_counts_all_and_names_so_many() -> None:
    report = Report()
    for line in range(1, MAX_NAMED + 11):
        report.broke("f", line)
        report.note("f", "odd")
    assert (report.broken_count, len(report.broken), len(report.notices)) == (MAX_NAMED + 10, MAX_NAMED, MAX_NAMED)
    assert (report.broken[0], report.notices[0]) == (("f", 1), "`f`: odd")
