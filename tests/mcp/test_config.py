"""
Which MCP servers a file names, and what they offer, in this library's words.
"""

import json
import logging

from pathlib import Path
from typing import Any

import pytest

from guardrails.core.values.errors import PolicyError
from guardrails.mcp import McpServer, read_servers, servers_of
from tests.tables import table


TOML = """
[tools.mcp_servers.time]
command = "mcp-server-time"
args = ["--local-timezone", "UTC"]
timeout = "5s"

[tools.mcp_servers.remote]
url = "https://example.com/mcp"
headers = { Authorization = "Bearer secret" }

[tools.mcp_servers.both]
command = "first"
url = "https://example.com/mcp"

[tools.mcp_servers.neither]
note = "not yet"
"""


def test_d5_command_goes_before_url_and_neither_is_skipped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "agent.toml"
    path.write_text(TOML)
    with caplog.at_level(logging.WARNING):
        servers = read_servers(path)
    assert servers == [
        McpServer(name="time", command="mcp-server-time", args=("--local-timezone", "UTC"), timeout=5.0),
        McpServer(name="remote", url="https://example.com/mcp", headers={"Authorization": "Bearer secret"}),
        McpServer(name="both", command="first", url="https://example.com/mcp"),
    ]
    assert "`neither` has neither `command` nor `url`" in caplog.text
    assert "secret" not in repr(servers)


@table("key", ["mcpServers", "mcp_servers"])
def test_files_of_other_clients_are_read_too(tmp_path: Path, key: str) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({key: {"git": {"command": "mcp-server-git", "disabled": False}}}))
    assert read_servers(path) == [McpServer(name="git", command="mcp-server-git")]


def test_all_mistakes_are_told_at_once() -> None:
    entries: dict[str, Any] = {
        "a__b": {"command": "x"},
        "../x": {"command": "x"},
        "c": {"command": 7},
        "d": {"command": "x", "args": "y", "env": {"A": 1}, "timeout": -1},
        "e": {"url": "file:///etc/passwd"},
        "f": "x",
        "g": {"command": "x", "sandbox": "bwrap"},
        "h": {"command": "x", "network": False},
    }
    with pytest.raises(PolicyError) as error:
        servers_of({"mcpServers": entries})
    parts = ("a__b", "../x", "c.command", "d.args", "d.env", "d.timeout", "e.url", "servers.f", "g.sandbox: is gone")
    assert [part for part in (*parts, "h.network: is gone") if part not in str(error.value)] == []
    with pytest.raises(PolicyError, match="a table of names"):
        servers_of({"mcpServers": ["x"]})


SERVER = McpServer(name="srv", command="x")


def tool(name: str, **schema: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object", **schema}}


def test_names_that_collide_or_are_too_long_end_in_a_hash_and_are_the_same_each_time() -> None:
    pytest.importorskip("mcp")
    from guardrails.mcp.servers import tools_of

    offered = [tool("a.b"), tool("a b"), tool("x" * 90), tool("y")]
    found = tools_of(SERVER, offered, {})
    assert [own for own, _ in found.values()] == [one["name"] for one in offered]
    assert all(len(name) <= 64 for name in found)
    first, second, *_ = found
    assert (first, second[:-8]) == ("srv__a_b", "srv__a_b_")
    assert list(tools_of(SERVER, offered, {})) == list(found)


def test_a_tool_says_whose_words_it_has_and_none_if_it_is_held_and_a_schema_that_is_none_checks_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pytest.importorskip("mcp")
    from guardrails.mcp.servers import tools_of

    offered = [{"name": name, "description": "Read a\u202e file."} for name in ("read", "evil")]
    bad = tool("bad", properties={"a": {"type": "no such type"}})
    found = {name: one for name, (_, one) in tools_of(SERVER, [*offered, bad], {"evil": "why"}).items()}
    assert found["srv__read"].description == "[MCP server `srv` says] Read a file."
    assert (found["srv__evil"].description, found["srv__evil"].held) == ("It is held: why.", "why")
    assert found["srv__bad"].description == ""
    assert found["srv__bad"].openai()["function"]["parameters"]["properties"] == {"a": {}}
    assert caplog.text.count("the arguments of `srv__bad` are not checked") == 1
