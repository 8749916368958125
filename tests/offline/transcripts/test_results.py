"""
The text of a recorded result, and what it says of its own failure.
"""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Tool
from guardrails.offline.replay.evidence import end_of
from guardrails.offline.transcripts.calls import Came, Made, RecordedCall, joined
from guardrails.offline.transcripts.fields import text_of
from tests.tables import table


@table(
    "content, text",
    [
        ("x", "x"),
        (None, ""),
        ([], ""),
        ([{"type": "text", "text": "a"}, "b", {"type": "input_text", "text": "c"}], "a\nb\nc"),
        ({"a": 1}, '{"a":1}'),
        (7, "7"),
        ([{"type": "refusal", "text": "no"}], '{"type":"refusal","text":"no"}'),
        ([{"type": ["text"], "text": "x"}], '{"type":["text"],"text":"x"}'),
        ({"a": 2**70}, "{'a': 1180591620717411303424}"),
        ({"a": "\ud800"}, "{'a': '\\ud800'}"),
    ],
)
def test_any_content_has_a_text(content: Any, text: str) -> None:
    assert text_of(content) == text


def call() -> RecordedCall:
    return RecordedCall("s", "t", {})


PRINTED = "meta=None content=[TextContent(type='text', text='{}', annotations=None)] isError={}"


def settle(call: RecordedCall, content: str, failed: bool | None = None) -> None:
    joined([Made(call, 1), Came("s", 1, content, failed)], "file")


@table(
    "content, failed, is_error, error_type, status",
    [
        ("fine", None, False, None, None),
        ("Error: HTTP 429 Too Many Requests", None, True, "rate_limit", 429),
        ("Error: HTTP 429 Too Many Requests", False, False, None, None),
        ("fine", True, True, "other", None),
        ("Tool call timed out.", None, False, None, None),
        ("0 errors, 3 warnings", None, False, None, None),
        ('{"success": false, "error": "x"}', None, True, "other", None),
        ('{"status": "error", "error_type": "conflict"}', None, True, "conflict", None),
        ('{"status": "error", "error_type": ["conflict"]}', None, True, "other", None),
        ('{"content": [{"type": "text", "text": "no such file"}], "isError": true}', None, True, "not_found", None),
        ('{"content": [{"type": "text", "text": "Error: no such file"}]}', None, True, "not_found", None),
    ],
)
def test_a_result_settles_its_call(
    content: str, failed: bool | None, is_error: bool, error_type: str | None, status: int | None
) -> None:
    one = call()
    settle(one, content, failed=failed)
    assert (one.has_result, one.is_error, one.error_type, one.http_status) == (True, is_error, error_type, status)


@table(
    "content, text, is_error",
    [
        (PRINTED.format("no", "True"), "no", True),
        (PRINTED.format("it\\'s", "False"), "it's", False),
        ('{"content": [{"type": "text", "text": "a"}], "isError": true}', "a", True),
        ('{"content": [{"type": "text", "text": "a"}], "is_error": true}', "a", True),
        ('[{"type":"text","text":"a"},{"type":"text","text":"b","id":"lc_1"}]', "a\nb", False),
        ('{"content": "text"}', "text", False),
        ('{"content": [{"type": "image", "data": "x"}]}', '{"content": [{"type": "image", "data": "x"}]}', False),
        ('[{"text": 7}]', '[{"text": 7}]', False),
    ],
)
def test_the_wrapping_of_mcp_is_taken_off_as_json_and_as_python_prints_it(
    content: str, text: str, is_error: bool
) -> None:
    one = call()
    settle(one, content)
    assert (one.result, one.is_error) == (text, is_error)


def test_a_flag_of_mcp_is_kept_where_the_format_has_none() -> None:
    one = call()
    settle(one, '{"content": [{"type": "text", "text": "no"}], "isError": true}', failed=False)
    assert end_of(one, Tool(name="t"))[0].error_type == "other"


@given(st.text(alphabet="{}[]\"':,\\eror: statufildE4- \n", max_size=2000))
def test_no_text_takes_long_or_raises(told: str) -> None:
    settle(call(), told)
