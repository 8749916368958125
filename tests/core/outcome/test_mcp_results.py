"""
Results of MCP, whoever's object they are.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from guardrails import Failed, Policy
from guardrails.core.outcome.mcp_results import read_mcp
from tests.tables import table


PICTURE = {"type": "image", "data": "AA==", "mimeType": "image/png"}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def as_object(snake: bool) -> Callable[[dict[str, Any]], Any]:
    """
    The object that the SDK of version 2, or of version 1, makes of the wire's mapping.
    """

    def block(said: dict[str, Any]) -> Any:
        return SimpleNamespace(**said, model_dump=lambda **_: dict(said))

    def made(wire: dict[str, Any]) -> Any:
        names = {"isError": "is_error", "structuredContent": "structured_content"} if snake else {}
        fields = {"isError": False, "structuredContent": None, **wire, "content": [*map(block, wire["content"])]}
        return SimpleNamespace(**{names.get(name, name): said for name, said in fields.items()})

    return made


def as_sdk(wire: dict[str, Any]) -> Any:
    return pytest.importorskip("mcp.types").CallToolResult.model_validate(wire)


FORMS = [dict, as_object(snake=False), as_object(snake=True), as_sdk]


@table("form", FORMS)
@table(
    ("wire", "value"),
    [
        ({"content": [text("one")]}, "one"),
        ({"content": [text("one"), text("two")]}, ["one", "two"]),
        ({"content": []}, None),
        ({"content": [text("{}")], "structuredContent": {"a": 1}}, {"a": 1}),
        ({"content": [text("{}")], "structuredContent": {}}, {}),
        ({"content": [text("[]")], "structuredContent": {"result": [1]}}, [1]),
        ({"content": [text("")], "structuredContent": {"result": None}}, None),
        ({"content": [text("[]")], "structuredContent": {"result": 1, "more": 2}}, {"result": 1, "more": 2}),
        ({"content": [PICTURE]}, [PICTURE]),
        ({"content": [text("a cat"), PICTURE]}, [text("a cat"), PICTURE]),
        ({"content": [text("no such file")], "isError": True}, Failed("no such file")),
        ({"content": [text("no"), text("way")], "isError": True}, Failed("no\nway")),
        ({"content": [], "isError": True}, Failed("")),
        (
            {"content": [text("no")], "isError": True, "structuredContent": {"code": 5}},
            Failed("no", value={"code": 5}),
        ),
        ({"content": [text("see"), PICTURE], "isError": True}, Failed("see", value=[PICTURE])),
    ],
)
def test_a_result_is_its_structured_content_or_its_text_or_a_failure(
    form: Callable[[dict[str, Any]], Any], wire: dict[str, Any], value: object
) -> None:
    assert read_mcp(form(wire)) == value


@table(
    ("result", "value"),
    [
        ({"content": "no", "is_error": True}, Failed("no")),
        ({"content": "fine", "is_error": False}, "fine"),
        ({"structuredContent": {"a": 1}}, {"a": 1}),
        ({"isError": True}, Failed("")),
        ({"content": [text("1")], "isError": "true"}, "1"),
        ("text", "text"),
        ({"rows": [1]}, {"rows": [1]}),
        (None, None),
        ([1], [1]),
    ],
)
def test_what_is_less_than_a_result_is_read_as_far_as_it_goes(result: object, value: object) -> None:
    assert read_mcp(result) == value


def test_a_result_of_fastmcps_own_is_read_too() -> None:
    fastmcp = pytest.importorskip("fastmcp.tools.base")
    assert read_mcp(fastmcp.ToolResult(content="one")) == "one"
    assert read_mcp(fastmcp.ToolResult(structured_content={"result": [1]})) == [1]


def test_a_failure_that_a_server_tells_is_an_error_of_its_kind() -> None:
    result = {"content": [text("HTTP 404: no such page")], "isError": True}
    envelope = Policy().session("s").call("fetch", {}, lambda tool, arguments: read_mcp(result))
    assert (envelope.status, envelope.error_type, envelope.http_status) == ("error", "not_found", 404)
    assert envelope.error_message == "HTTP 404: no such page"
