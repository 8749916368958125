"""
Servers and a client as others publish them: `python -m tests.system.mcp` installs them and runs this.
"""

import asyncio
import json
import os
import subprocess
import sys

from pathlib import Path
from typing import Any

import pytest

from guardrails import Policy
from guardrails.mcp import McpServer, McpTools


HOME = os.environ.get("GUARDRAILS_MCP_HOME", "")
pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not HOME, reason="python -m tests.system.mcp installs what this needs"),
]
BIN, MODULES = Path(HOME) / "bin", Path(HOME) / "node" / "node_modules"
PUBLISHED = "@modelcontextprotocol"
CLIENT = """
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
const [command, ...args] = process.argv.slice(2);
const client = new Client({ name: "check", version: "1" });
await client.connect(new StdioClientTransport({ command, args, env: process.env }));
const tools = (await client.listTools()).tools;
const found = [];
for (const city of ["Bern", "Bern", "Bern", "down"]) {
  const result = await client.callTool({ name: "search_hotels", arguments: { city } });
  found.push([result.isError ?? false, result.structuredContent ?? null, result.content[0].text]);
}
console.log(JSON.stringify({ schema: tools[0].outputSchema, found }));
await client.close();
"""
HOTELS = """
from mcp.server import MCPServer
from guardrails import Policy
from guardrails.mcp import AnsweringTools

server = MCPServer("hotels")
tool = AnsweringTools(server, Policy.load("default"))

@tool(read_only=True, repeats="evidence")
def search_hotels(city: str) -> list[dict[str, str]]:
    if city == "down":
        raise TimeoutError("the supplier did not answer")
    return [{"id": "h_1", "city": city}]

server.run()
"""


def node(package: str, entry: str = "dist/index.js") -> tuple[str, ...]:
    return "node", str(MODULES / PUBLISHED / package / entry)


def test_tools_of_published_servers_run_behind_a_policy(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "note.txt").write_text("a note")
    commands = {
        "time": (str(BIN / "mcp-server-time"), "--local-timezone", "UTC"),
        "git": (str(BIN / "mcp-server-git"), "--repository", str(tmp_path)),
        "fetch": (str(BIN / "mcp-server-fetch"),),
        "files": (*node("server-filesystem"), str(tmp_path)),
        "everything": (*node("server-everything"), "stdio"),
    }
    servers = [McpServer(name=name, command=command, args=tuple(args)) for name, (command, *args) in commands.items()]
    calls: dict[str, tuple[dict[str, Any], str]] = {
        "time__get_current_time": ({"timezone": "UTC"}, "success"),
        "git__git_status": ({"repo_path": str(tmp_path)}, "success"),
        # It refuses loopback by itself.
        "fetch__fetch": ({"url": "http://127.0.0.1:9/"}, "error"),
        "files__read_text_file": ({"path": str(tmp_path / "note.txt")}, "success"),
        "everything__echo": ({"message": "hello"}, "success"),
        "everything__get-structured-content": ({"location": "New York"}, "success"),
    }

    async def whole() -> dict[str, Any]:
        async with McpTools(servers) as mcp:
            assert mcp.problems == {}
            session = Policy.load("default", tools=mcp.registry.tools).session("s")
            missing = await session.acall("files__read_text_file", {"path": 7}, mcp.registry.aexecute)
            assert missing.status == "validation_error"
            return {
                name: json.loads((await session.acall(name, arguments, mcp.registry.aexecute)).to_json())
                for name, (arguments, _) in calls.items()
            }

    read = asyncio.run(whole())
    assert {name: one["status"] for name, one in read.items()} == {name: status for name, (_, status) in calls.items()}
    assert "a note" in json.dumps(read["files__read_text_file"])


def test_a14_a_client_that_validates_takes_what_an_authors_tools_answer(tmp_path: Path) -> None:
    """
    The TypeScript SDK raises where structured content does not fit the tool's schema, or is missing from a success.
    """
    (tmp_path / "node_modules").symlink_to(MODULES)
    (tmp_path / "client.mjs").write_text(CLIENT)
    (tmp_path / "hotels.py").write_text(HOTELS)
    command = ["node", "client.mjs", sys.executable, "hotels.py"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True, env=dict(os.environ)
    )
    read = json.loads(done.stdout)
    assert read["schema"]["properties"]["is_complete"]
    first, second, _, down = read["found"]
    assert first[0] is False
    assert first[1]["results"] == [{"id": "h_1", "city": "Bern"}]
    assert second[0] is True
    assert second[2].startswith("[guardrails:duplicates.stable]")
    assert down[:2] == [True, None]
    assert '"retryable":true' in down[2].replace(" ", "")
