"""
Fields of foreign JSON, the text of a recorded result, and what it says of its own failure.
"""

from pathlib import Path
from typing import Any

import yaml

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Tool
from guardrails.offline.replay.evidence import end_of
from guardrails.offline.transcripts import fields
from guardrails.offline.transcripts.calls import Came, Made, RecordedCall, joined
from tests.tables import table


TABLES = yaml.safe_load(Path(__file__).with_name("results.yaml").read_text(encoding="utf-8"))
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(ANYTHING)
def test_no_value_is_refused(value: Any) -> None:
    assert isinstance(fields.listed(value), list)
    assert fields.mapping(value).get("a") is None or isinstance(value, dict)
    assert fields.text(value) is None or value
    for number in (fields.count(value), fields.time_ms(value), fields.amount(value)):
        assert number is None or 0 <= number <= 2**54
    fields.arguments_of(value)
    assert isinstance(fields.text_of(value), str)


@table("value, expected", TABLES["times"])
def test_times_are_milliseconds_since_1970(value: Any, expected: int | None) -> None:
    assert fields.time_ms(value) == expected


@table("value, expected", [('{"a": 1}', {"a": 1}), ("", {}), (None, None), ("{", "{"), ({"a": 1}, {"a": 1})])
def test_arguments_are_what_their_text_says(value: Any, expected: Any) -> None:
    assert fields.arguments_of(value) == expected


@table("content, text", TABLES["texts"])
def test_any_content_has_a_text(content: Any, text: str) -> None:
    assert fields.text_of(content) == text


def settled(content: str, failed: bool | None = None) -> RecordedCall:
    call = RecordedCall("s", "t", {})
    joined([Made(call, 1), Came("s", 1, content, failed)], "file")
    return call


@table("content, text, error_type", TABLES["results"])
def test_a_result_says_itself_whether_its_call_failed(content: str, text: str, error_type: str | None) -> None:
    call = settled(content)
    assert (call.has_result, call.result, call.is_error) == (True, text, error_type is not None)
    assert (call.error_type, call.http_status) == (error_type, 429 if error_type == "rate_limit" else None)


def test_a_sign_of_the_format_stands_above_the_text() -> None:
    assert settled("Error: HTTP 429 Too Many Requests", failed=False).is_error is False
    assert settled("fine", failed=True).error_type == "other"
    flagged = settled('{"content": [{"type": "text", "text": "no"}], "isError": true}', failed=False)
    assert end_of(flagged, Tool(name="t"))[0].error_type == "other"


def test_calls_of_one_response_are_one_turn_wherever_they_stand() -> None:
    calls = joined([Made(RecordedCall("s", "t", {}), n, response) for n, response in enumerate("aba")], "file")
    assert [call.turn for call in calls] == [1, 2, 1]


@given(st.text(alphabet="{}[]\"':,\\eror: statufildE4- \n", max_size=2000))
def test_no_text_takes_long_or_raises(text: str) -> None:
    settled(text)
