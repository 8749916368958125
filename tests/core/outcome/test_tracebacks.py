"""
Stack traces in error texts.
"""

import traceback

from collections.abc import Callable

from guardrails.core.outcome.tracebacks import without_traceback
from tests.tables import table


NOTEBOOK = f"""{"-" * 75}
TimeoutError                              Traceback (most recent call last)
Cell In[3], line 4
      1 x = 1
----> 4 wait()

TimeoutError: slow"""


def plain() -> None:
    int("x")


def chained() -> None:
    try:
        plain()
    except ValueError as problem:
        raise RuntimeError("outer") from problem


def grouped() -> None:
    raise ExceptionGroup("several", [ValueError("one"), KeyError("two")])


def recursive() -> None:
    recursive()


def shown(fail: Callable[[], None]) -> str:
    try:
        fail()
    except Exception:
        return traceback.format_exc()
    raise AssertionError


@table(
    ("fail", "left"),
    [
        (plain, "ValueError: invalid literal for int() with base 10: 'x'"),
        (chained, "RuntimeError: outer"),
        (recursive, "RecursionError: maximum recursion depth exceeded"),
    ],
)
def test_of_a_traceback_the_line_that_names_the_error_stays(fail: Callable[[], None], left: str) -> None:
    assert without_traceback(shown(fail)).strip() == left


def test_no_frame_of_an_exception_group_stays() -> None:
    left = without_traceback(shown(grouped))

    assert "File" not in left
    assert "KeyError: 'two'" in left


@table("fail", [plain, chained])
def test_a_traceback_inside_a_json_text_is_found(fail: Callable[[], None]) -> None:
    left = without_traceback(repr(shown(fail)))

    assert "File" not in left
    assert "Error: " in left


def test_what_stands_around_a_traceback_stays() -> None:
    text = f"Tool `search` failed: {shown(plain)}Ask for something else."

    assert without_traceback(text).splitlines() == [
        "Tool `search` failed:",
        "ValueError: invalid literal for int() with base 10: 'x'",
        "Ask for something else.",
    ]


def test_frames_without_their_beginning_go_too() -> None:
    text = '  File "/srv/a.py", line 3, in f\n    g()\n  File "/srv/b.py", line 9, in g\n    h()\nTimeoutError: slow'

    assert without_traceback(text) == "TimeoutError: slow"


@table(
    ("text", "left"),
    [
        (
            NOTEBOOK,
            "TimeoutError: slow",
        ),
        (
            "TypeError: x is no function\n    at foo (/srv/b.js:10:3)\n    at Object.<anonymous> (/b.js:1:1)\n    at n (native)\nnext",
            "TypeError: x is no function\nnext",
        ),
        (
            "java.io.IOException: gone\n\tat com.example.Foo.bar(Foo.java:10)\n\t... 12 more",
            "java.io.IOException: gone",
        ),
    ],
)
def test_stack_traces_of_other_languages_go(text: str, left: str) -> None:
    assert without_traceback(text) == left


@table("text", ["one line", "two\nlines", "meet\n  at noon", "a list:\n  - at 10:30 we start\n", '{"a":\n  1}'])
def test_other_text_stays_as_it_is(text: str) -> None:
    assert without_traceback(text).splitlines() == text.splitlines()
