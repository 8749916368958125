"""
How far work on files has come.
"""

import gzip

from pathlib import Path

import pytest

from guardrails.offline.judge.files.progress import Progress, share_of
from guardrails.offline.readers import Report, open_calls


@pytest.mark.parametrize(
    ("sizes", "done", "read", "share"),
    [
        ([100, 300], 0, 50, 0.125),
        ([100, 300], 1, 0, 0.25),
        ([100, 300], 2, 0, 1.0),
        ([100, 0], 1, 0, 1.0),
        ([100], 0, 500, 1.0),
        ([0, 0], 1, 7, None),
        ([], 0, 0, None),
    ],
)
def test_the_share_is_of_bytes_of_all_files(sizes: list[int], done: int, read: int, share: float | None) -> None:
    assert share_of(sizes, done, read) == share


@pytest.mark.parametrize(
    ("share", "before", "left"),
    [(0.25, 0.0, 30.0), (1.0, 0.0, 0.0), (0.5, 0.25, 20.0), (0.25, 0.25, None), (None, 0.0, None)],
)
def test_the_time_left_goes_by_what_was_done_since_it_began(
    share: float | None, before: float, left: float | None
) -> None:
    assert Progress("f", 1, 1, 5, 10.0, share, before).left_s == left


@pytest.mark.parametrize("packed", [False, True])
def test_what_was_read_is_counted_as_it_is_kept(tmp_path: Path, *, packed: bool) -> None:
    line = b'{"session_id": "s", "tool": "find", "arguments": {"q": 1}, "result": "x"}\n' * 20_000
    path = tmp_path / "calls.jsonl"
    path.write_bytes(gzip.compress(line) if packed else line)
    report = Report()
    calls = open_calls(path, report)
    next(calls)
    assert 0 < report.read <= path.stat().st_size
    assert sum(1 for _ in calls) == 19_999
    assert report.read == path.stat().st_size
