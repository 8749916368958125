"""
What a result brings, by its text.
"""

import re

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.repetition import results
from guardrails.core.repetition.results import MAX_STEADY, emptiness, family_hash, steady_hash
from tests.tables import table


@table(
    ("payload", "expected"),
    [
        (b"[]", 2),
        (b"{}", 2),
        (b'{"results":[],"total":0}', 2),
        (b'{"count":0}', 5),
        (b'{"user":null}', 5),
        (b'"No files found"', 2),
        (b"No matches found for `x`", 2),
        (b'"Found 0 results"', 0),
        (b'""', 1),
        (b"null", 1),
        (b'"ok"', 1),
        (b"(Bash completed with no output)", 1),
        (b'{"ok":true}', 0),
        (b'{"id":1}', 0),
        (b'{"balance":0}', 0),
        (b'{"errors":0,"warnings":[]}', 0),
        (b'{"errors":[]}', 0),
        (b'{"error":null,"rows":[]}', 2),
        (b'{"total_results":0,"took":0}', 5),
        (b'{"state":"pending"}', 3),
        (b'{"id":"x9","build_status": "IN_PROGRESS"}', 3),
        (b'"pending"', 3),
        (b"Still running...", 3),
        (b'"The export is not ready."', 0),
        (b'"export-9 is not ready yet"', 0),
        (b'"export-9 is not ready"', 3),
        (b'"running shoes"', 0),
        (b'{"note":"pending"}', 0),
        (b'"no results of the election yet, but 3 exit polls"', 0),
        (b'"' + b"x" * 300 + b'"', 0),
    ],
)
def test_an_empty_result_is_told_from_a_silent_one_and_from_news(payload: bytes, expected: int) -> None:
    assert emptiness(payload) == expected


@table(
    ("one", "other", "same"),
    [
        (b"at 2026-11-22T10:00:00Z up", b"at 2026-11-22T10:07:31Z up", True),
        (b"done in 1.2s", b"done in 3.4s", True),
        (b"object at 0x7f12ab34cd", b"object at 0x7f99ab34cd", True),
        (b"wrote /tmp/abc1", b"wrote /tmp/zz9", True),
        (b"Out[2]: 7", b"Out[3]: 7", True),
        (b"Out[2]: 7", b"Out[3]: 8", False),
        (b"row[2]: 7", b"row[3]: 7", False),
        (b"3 failed", b"2 failed", False),
        (b"price 12", b"price 13", False),
        (b"page 1 of 9", b"page 2 of 9", False),
    ],
)
def test_clocks_and_ids_are_no_news_and_numbers_are(one: bytes, other: bytes, *, same: bool) -> None:
    assert (steady_hash(one) == steady_hash(other)) is same


def test_a_long_result_is_not_compared_in_part() -> None:
    assert steady_hash(b"x" * (MAX_STEADY + 1)) == 0


@table(
    ("one", "other", "same"),
    [
        ("no such file: src/a.py", "no such file: lib/b/c.py", True),
        ("no column 'a' in 'users'", "no column 'b' in 'users'", True),
        ("order #W12 not found", "order #W13 not found", True),
        ("permission denied", "no such file", False),
        ('{"error": "no such table", "table": "a"}', '{"error": "no such table", "table": "b"}', True),
        ("{\"error\": \"no column 'a' in 'users'\"}", "{\"error\": \"no column 'b' in 'users'\"}", True),
        ('{"error": "no column \\"a\\" in users"}', '{"error": "no column \\"b\\" in users"}', True),
        ('{"error": "the id is no good"}', '{"error": "the endpoint is off"}', False),
        (
            '{"error": "", "why": "{\'message\': \'at most 4\'}"}',
            '{"error": "", "why": "{\'message\': \'it is off\'}"}',
            False,
        ),
        ('other: {"detail": {"message": "too many"}}', 'other: {"detail": {"message": "too few now"}}', False),
        ('"no such file: src/a.py"', '"no such file: lib/b.py"', True),
        ('"no such file: src/a.py"', '"permission denied"', False),
        ('["the id is no good"]', '["the endpoint is off"]', False),
    ],
)
def test_a_failure_is_of_a_family_whatever_arguments_it_repeats(one: str, other: str, *, same: bool) -> None:
    assert (family_hash("other", one) == family_hash("other", other)) is same
    assert family_hash("timeout", one) != family_hash("auth", one)


PARTS = st.sampled_from(
    [
        *("2026-01-02T03:04:05Z", "2026-01-02 03:04", "03:04:05.123", "1.5 s", "20ms", "3 seconds", "7 us", "1789"),
        *("12345678-9abc-def0-1234-56789abcdef0", "0x7ffe12345678", "1712345678.5", "1712345678901", "/tmp/a.b-c"),
        *("pid=12", "pid: 7", "pids", "pid", "a-b-c-d-e", "-", ":", "x", "5", "12", "s", "ms", "T", "0x", "deadbeef"),
        *(
            "1.2.3s",
            "3x1234ab",
            "x0x1234ab",
            "a1712345678",
            "v1.2 s",
            "1.",
            "/tmp/12345678-9abc-def0-1234-56789abcdef0",
            "Out[3]:",
            "In [12]",
        ),
    ]
)
VOLATILE = re.compile(
    rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
    rb"|\d\d:\d\d:\d\d(?:[.,]\d+)?"
    rb"|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
    rb"|0x[0-9a-f]{6,16}"
    rb"|\b\d+(?:\.\d+)? ?(?:ms|ns|us|s|sec|secs|seconds|milliseconds)\b"
    rb"|\b1[4-9]\d{8}(?:\.\d+|\d{3})?\b"
    rb"|/tmp/[\w.-]+"
    rb"|\bpid[ =:]{1,2}\d+"
    rb"|\b(?:In|Out) ?\[\d+\]"
)
"""All that is volatile in one pattern, which takes three times as long."""


@given(st.lists(PARTS, max_size=12), st.sampled_from([" ", "\n", ", ", '","']))
def test_what_is_masked_in_steps_is_what_one_pattern_masks(parts: list[str], between: str) -> None:
    payload = between.join(parts).encode()
    assert results._steady(payload) == VOLATILE.sub(b"~", payload)


WORDS = st.sampled_from(
    [
        *(
            "no",
            "such",
            "file",
            "a1",
            "12",
            "1a_b",
            "src/a.py",
            "/usr/lib",
            "~/x-1/y.z",
            "a/",
            "/",
            "..",
            "v1.2.3",
            "#12",
            "#",
        ),
        *(
            '"a b"',
            "'c'",
            "`d/e`",
            '"',
            "'",
            "don't",
            "x_y",
            "_",
            "-",
            "a-1/b",
            "a*",
            "b/*",
            "\n",
            "\t",
            "(line 3)",
            "E1:",
        ),
    ]
)


@given(st.lists(WORDS, max_size=12), st.sampled_from([" ", ": ", "\n", ", ", ""]))
def test_what_a_failure_echoes_is_found_in_steps_as_by_one_pattern(words: list[str], between: str) -> None:
    text = between.join(words).lower()
    assert results._unechoed(text).split() == results._ECHOED.sub(" ", text).split()


@table("size", [600, 100_000])
def test_the_work_on_a_hostile_result_is_bounded(size: int) -> None:
    for text in (
        "1" * size,
        "-" * size,
        "a/" * (size // 2),
        "'" * size,
        "a" * size,
        "12:" * (size // 3),
        "é1/" * (size // 3),
    ):
        assert family_hash("other", text) >= 1
        assert steady_hash(text.encode()[: results.MAX_STEADY]) >= 1
