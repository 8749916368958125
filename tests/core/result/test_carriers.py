"""
One law over all carriers: the same content has the same reading.
"""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.prepare import news_hash
from guardrails.core.result import Reading, reading_of
from guardrails.core.result.completeness import extent_of
from guardrails.core.result.content import content_of, read_mcp
from guardrails.core.result.failures import Source
from guardrails.core.values.types import Failed
from tests.core.result.carriers import block, carried
from tests.tables import table


NAMES = st.sampled_from(
    "error errors status state ok success isError message code data rows results total total_count next_cursor has_more id exit_code"  # noqa: SIM905
    " took_ms progress query retry_after_ms retryable truncated remaining done".split()
)
SCALARS = (
    st.none() | st.booleans() | st.integers(0, 600) | st.sampled_from(["", "ok", "failed", "running", "45 %", "x y"])
)
VALUES = SCALARS | st.lists(st.dictionaries(NAMES, SCALARS, max_size=2), max_size=2) | st.lists(SCALARS, max_size=3)
OBJECTS = st.dictionaries(NAMES, VALUES | st.dictionaries(NAMES, VALUES, max_size=3), max_size=5)
LINES = "Error: it broke|429 Too Many Requests|ok|Deploying...|No results found|(no output yet)|Exit code: 1\nno|a\nb"
TEXTS = st.sampled_from(LINES.split("|"))


def facts(read: Reading) -> dict[str, Any]:
    """
    All that is read of the content: not how its text is written.
    """
    failure = (read.error_type, read.http_status, read.retry_after_ms, read.retryable, read.retries)
    return {
        "content": None if not read.ok else read.content.strip() if isinstance(read.content, str) else read.content,
        "failure": failure,
        "news": read.news,
        "complete": None if not read.ok else extent_of(read).complete,
        "total": None if not read.ok else extent_of(read).total,
    }


@given(OBJECTS.filter(lambda value: "type" not in value and len(value) != 1) | TEXTS)
def test_the_same_content_has_the_same_reading_in_every_carrier(value: Any) -> None:
    readings = {name: facts(reading_of(carrier)) for name, carrier in carried(value)}

    assert {name: read for name, read in readings.items() if read != readings["as it is"]} == {}, readings["as it is"]


@given(
    st.recursive(
        SCALARS | st.floats() | st.text(max_size=8) | st.binary(max_size=4),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.text(max_size=6), inner, max_size=4),
        max_leaves=12,
    )
)
def test_whatever_comes_back_is_read(value: Any) -> None:
    read = reading_of(value, arguments={"a": value})

    assert read.news in range(4)
    assert extent_of(read).complete in (True, False, None)
    assert (extent_of(read).how is None) is (extent_of(read).complete is not False)
    assert 0 < news_hash(read) < 2**32
    assert news_hash(read) == news_hash(reading_of(value, arguments={"a": value}))


def test_the_flag_of_mcp_is_found_wherever_the_result_is_carried() -> None:
    wire = {"content": [block("no such user")], "isError": True}

    for _, carrier in carried(wire):
        assert reading_of(carrier).error_type == "not_found"


@table(("result", "value"), [
    ({"content": [block("one")]}, "one"), ({"content": [block("one"), block("two")]}, ["one", "two"]), ({"content": []}, None),
    ({"content": [], "isError": False}, None), ({"content": "text"}, "text"),
    ({"content": [{"type": "image", "data": "x"}]}, [{"type": "image", "data": "x"}]), ({"content": [block("x")], "structuredContent": {"result": [1]}}, [1]),
    ({"content": [block("x")], "structuredContent": {"a": 1}}, {"a": 1}), ({"rows": [1]}, {"rows": [1]}), ("text", "text"), (None, None),
    ({"content": [block("no")], "isError": True}, Failed("no")),
    ({"content": [block("no")], "isError": True, "structuredContent": {"a": 1}}, Failed("no", value={"a": 1})),
])  # fmt: skip
def test_a_result_of_mcp_is_its_structured_content_else_its_text_else_its_blocks(result: Any, value: Any) -> None:
    assert read_mcp(result) == value


@table("value", [
    *({"content": "abc", "eof": False}, {"content": [1, 2]}, {"type": "text"}, ["a", "b"], [[1]], 7, True),
    *("{not json", "[1", '{"a": 1} and more', "```\nnot json\n```", {"message": 7}, {"text": ["a"]}, b"x"),
])  # fmt: skip
def test_what_is_no_carrier_stays_as_it_is(value: Any) -> None:
    assert content_of(value).value == value or isinstance(value, bytes)


def test_nothing_is_read_of_a_text_that_is_too_long_to_be_data() -> None:
    assert content_of('{"error": "x", "pad": "' + "y" * 300_000 + '"}').text is not None
    assert reading_of('{"error": "x", "pad": "' + "y" * 300_000 + '"}').ok


def test_what_is_declared_of_a_tool_is_asked_first() -> None:
    read = reading_of({"hotels": [1, 2], "meta": {"count": 9}}, Source(total="meta.count"))

    assert (extent_of(read).complete, extent_of(read).total) == (False, 9)
