"""
What servers offer, in this library's words.
"""

from typing import Any

import pytest


pytest.importorskip("mcp")

from guardrails.mcp import McpServer
from guardrails.mcp.tools import tools_of


SERVER = McpServer(name="srv", command="x")


def tool(name: str, **schema: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object", **schema}}


def test_names_that_collide_or_are_too_long_end_in_a_hash_and_are_the_same_each_time() -> None:
    offered = [tool("a.b"), tool("a b"), tool("x" * 90), tool("y")]
    found = tools_of(SERVER, offered, {})
    assert [own for own, _ in found.values()] == [one["name"] for one in offered]
    assert all(len(name) <= 64 for name in found)
    assert next(iter(found)) == "srv__a_b"
    assert list(found)[1].startswith("srv__a_b_")
    assert list(tools_of(SERVER, offered, {})) == list(found)


def test_a7_a_tool_whose_schema_is_none_is_not_checked(caplog: pytest.LogCaptureFixture) -> None:
    found = tools_of(SERVER, [tool("bad", properties={"a": {"type": "no such type"}}), tool("good")], {})
    assert list(found) == ["srv__bad", "srv__good"]
    assert found["srv__bad"][1].openai()["function"]["parameters"]["properties"] == {"a": {}}
    assert caplog.text.count("the arguments of `srv__bad` are not checked") == 1


def test_a_description_says_whose_words_it_is_and_a_held_tool_is_offered_without_its_own() -> None:
    offered = [{"name": name, "description": "Read a\u202e file."} for name in ("read", "evil")]
    found = tools_of(SERVER, [*offered, {"name": "mute"}], {"evil": "why"})
    read, evil, mute = (found[f"srv__{name}"][1] for name in ("read", "evil", "mute"))
    assert read.description == "[MCP server `srv` says] Read a file."
    assert (evil.description, evil.held) == ("It is held: why.", "why")
    assert mute.description == ""
