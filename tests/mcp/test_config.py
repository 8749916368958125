"""
Which MCP servers a file names.
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
        McpServer(name="both", command="first"),
    ]
    assert "`neither` has neither `command` nor `url`" in caplog.text


@table("key", ["mcpServers", "mcp_servers"])
def test_files_of_other_clients_are_read_too(tmp_path: Path, key: str) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({key: {"git": {"command": "mcp-server-git", "disabled": False}}}))
    assert read_servers(path) == [McpServer(name="git", command="mcp-server-git")]


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(PolicyError) as error:
        servers_of(
            {
                "mcpServers": {
                    "a__b": {"command": "x"},
                    "../x": {"command": "x"},
                    "c": {"command": 7},
                    "d": {"command": "x", "args": "y", "env": {"A": 1}, "timeout": -1},
                    "e": {"url": "file:///etc/passwd"},
                    "f": "x",
                }
            }
        )
    text = str(error.value)
    for part in ("a__b", "../x", "c.command", "d.args", "d.env", "d.timeout", "e.url", "mcp_servers.f"):
        assert part in text


@table("entry", [{"command": "x", "sandbox": "bwrap"}, {"command": "x", "network": False}])
def test_a_sandbox_that_is_asked_for_and_is_not_there_any_more_is_a_mistake(entry: dict[str, Any]) -> None:
    with pytest.raises(PolicyError, match=r"mcp_servers\.a\.(sandbox|network): is gone"):
        servers_of({"mcpServers": {"a": entry}})


def test_keys_are_not_shown() -> None:
    shown = repr(
        McpServer(name="a", url="https://x", headers={"Authorization": "Bearer secret"}, env={"KEY": "secret"})
    )
    assert "secret" not in shown
