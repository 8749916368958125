"""
What servers answer and offer, in this library's words.
"""

import pytest

from tests.tables import table


pytest.importorskip("mcp")

from mcp_types import CallToolResult, ImageContent, TextContent
from mcp_types import Tool as McpTool

from guardrails.mcp.results import tools_of, value_of


def text(value: str) -> TextContent:
    return TextContent(type="text", text=value)


@table(
    ("result", "value"),
    [
        (CallToolResult(content=[text("one")]), "one"),
        (CallToolResult(content=[text("one"), text("two")]), ["one", "two"]),
        (CallToolResult(content=[]), None),
        (CallToolResult(content=[text("{}")], structured_content={"a": 1}), {"a": 1}),
        (CallToolResult(content=[text("[]")], structured_content={"result": [1]}), [1]),
        (
            CallToolResult(content=[text("[]")], structured_content={"result": [1], "more": 2}),
            {"result": [1], "more": 2},
        ),
        (
            CallToolResult(content=[text("no")], is_error=True, structured_content={"a": 1}),
            {"content": [{"type": "text", "text": "no"}], "isError": True},
        ),
        (
            CallToolResult(content=[ImageContent(type="image", data="AA==", mime_type="image/png")]),
            [{"type": "image", "data": "AA==", "mimeType": "image/png"}],
        ),
    ],
)
def test_a_result_is_its_structured_content_or_its_text(result: CallToolResult, value: object) -> None:
    assert value_of(result) == value


def tool(name: str, **schema: object) -> McpTool:
    return McpTool(name=name, input_schema={"type": "object", **schema})


def test_names_that_collide_or_are_too_long_end_in_a_hash_and_are_the_same_each_time() -> None:
    offered = [tool("a.b"), tool("a b"), tool("x" * 90), tool("y")]
    found = tools_of("srv", offered, 5.0)
    assert [own for own, _ in found.values()] == [one.name for one in offered]
    assert all(len(name) <= 64 for name in found)
    assert next(iter(found)) == "srv__a_b"
    assert list(found)[1].startswith("srv__a_b_")
    assert list(tools_of("srv", offered, 5.0)) == list(found)


def test_a7_a_tool_whose_schema_is_none_is_not_checked(caplog: pytest.LogCaptureFixture) -> None:
    found = tools_of("srv", [tool("bad", properties={"a": {"type": "no such type"}}), tool("good")], 5.0)
    assert list(found) == ["srv__bad", "srv__good"]
    assert found["srv__bad"][1].openai()["function"]["parameters"]["properties"] == {"a": {}}
    assert caplog.text.count("the arguments of `srv__bad` are not checked") == 1
