"""
Which MCP servers a file names, and their tools, well-behaved and not, through a session and a registry.
"""

import asyncio
import json
import logging
import sys

from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest


pytest.importorskip("mcp")

from guardrails import Policy
from guardrails.core.values.errors import PolicyError
from guardrails.mcp import McpServer, McpTools, read_servers, servers_of
from guardrails.mcp.pins import Pins
from guardrails.mcp.servers import tools_of

from .far import Far
from .process import SERVER


TOML = Path(__file__).with_name("servers.toml")


def test_d5_command_goes_before_url_and_neither_is_skipped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        servers = read_servers(TOML)
    assert servers == [
        McpServer(name="time", command="mcp-server-time", args=("--local-timezone", "UTC"), timeout=5.0),
        McpServer(name="remote", url="https://example.com/mcp", headers={"Authorization": "Bearer secret"}),
        McpServer(name="both", command="first", url="https://example.com/mcp"),
    ]
    assert "`neither` has neither `command` nor `url`" in caplog.text
    assert "secret" not in repr(servers)
    path = tmp_path / "mcp.json"
    for key in ("mcpServers", "mcp_servers"):
        path.write_text(json.dumps({key: {"git": {"command": "mcp-server-git", "disabled": False}}}))
        assert read_servers(path) == [McpServer(name="git", command="mcp-server-git")]


def test_all_mistakes_are_told_at_once() -> None:
    odd: Any = {"command": "x", "args": "y", "env": {"A": 1}, "timeout": -1, "sandbox": "bwrap", "network": False}
    entries = {"a__b": {"command": "x"}, "../x": {"command": "x"}, "c": {"command": 7}, "d": odd, "f": "x"}
    with pytest.raises(PolicyError) as error:
        servers_of({"mcpServers": {**entries, "e": {"url": "file:///etc/passwd"}}})
    parts = "a__b ../x c.command d.args d.env d.timeout e.url servers.f d.sandbox: d.network:"
    assert [part for part in parts.split() if part not in str(error.value)] == []
    with pytest.raises(PolicyError, match="a table of names"):
        servers_of({"mcpServers": ["x"]})


def tool(name: str, **schema: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object", **schema}}


def test_a_tool_has_a_name_that_models_take_and_the_words_of_its_server_unless_it_is_held(caplog: Any) -> None:
    server = McpServer(name="srv", command="x")
    offered = [tool("a.b"), tool("a b"), tool("x" * 90), tool("y")]
    found = tools_of(server, offered, {})
    assert [own for own, _ in found.values()] == [one["name"] for one in offered]
    assert all(len(name) <= 64 for name in found)
    first, second, *_ = found
    assert (first, second[:-8]) == ("srv__a_b", "srv__a_b_")
    assert list(tools_of(server, offered, {})) == list(found)

    offered = [{"name": name, "description": "Read a\u202e file."} for name in ("read", "evil")]
    bad = tool("bad", properties={"a": {"type": "no such type"}})
    tools = {name: one for name, (_, one) in tools_of(server, [*offered, bad], {"evil": "why"}).items()}
    assert tools["srv__read"].description == "[MCP server `srv` says] Read a file."
    assert (tools["srv__evil"].description, tools["srv__evil"].held) == ("It is held: why.", "why")
    assert tools["srv__bad"].openai()["function"]["parameters"]["properties"] == {"a": {}}
    assert caplog.text.count("the arguments of `srv__bad` are not checked") == 1


# Real servers

HERE = McpServer(name="s", command=SERVER[0], args=SERVER[1:], timeout=100)
Call = Callable[..., Coroutine[Any, Any, dict[str, Any]]]


def run(servers: list[McpServer], work: Callable[[McpTools, Call], Coroutine[Any, Any, Any]], **options: Any) -> Any:
    """
    Work with the tools of *servers*; `call(tool, **arguments)` is the envelope of a call.
    """

    async def whole() -> Any:
        async with McpTools(servers, **options) as tools:
            session = Policy.load("default", tools=tools.registry.tools).session("s")

            async def call(name: str, /, **arguments: Any) -> dict[str, Any]:
                made = await session.acall(name, arguments, tools.registry.aexecute)
                return {**json.loads(made.to_json())}

            return await work(tools, call)

    return asyncio.run(whole())


@pytest.mark.system
def test_d5_tools_are_offered_as_server_and_tool_and_arguments_are_checked_before_the_server_sees_them() -> None:
    async def work(tools: McpTools, call: Call) -> None:
        assert {"s__add", "s__drop_table", "s__search"} < {*tools.registry}
        search, drop = (tools.registry.entries[f"s__{name}"].tool for name in ("search", "drop_table"))
        assert (search.read_only, search.idempotent, drop.read_only) == (True, True, False)
        assert search.description == "[MCP server `s` says] Find things."
        [add] = [one["function"] for one in tools.registry.schemas() if one["function"]["name"] == "s__add"]
        assert add["parameters"]["required"] == ["a", "b"]
        assert (await call("s__add", a=1, b=2))["result"] == {"sum": 3}
        read = await call("s__add", a="one")
        assert read["status"] == "validation_error"
        assert {error["field"] for error in read["errors"]} == {"a", "b"}
        assert tools.problems == {}
        found = await asyncio.gather(*(call("s__search", query=f"q{n}") for n in range(30)))
        assert [one["result"] for one in found] == [f"found q{n}" for n in range(30)]

    run([HERE], work)


@pytest.mark.system
def test_of_a_list_without_an_end_the_first_of_one_name_counts_and_one_that_changes_is_held(tmp_path: Path) -> None:
    pins = str(tmp_path / "pins.json")

    async def work(tools: McpTools, call: Call) -> dict[str, Any]:
        assert tools.problems == {}
        return {"held": [*tools.held], **(await call("s__add", a=1, b=2))}

    assert run([replace(HERE, env={"ENDLESS": "yes"})], work, pins=pins)["result"] == {"sum": 3}
    turned = replace(HERE, env={"TURNED": "yes"})
    changed = run([turned], work, pins=pins)
    assert (changed["held"], changed["code"], changed["retryable"]) == (["s__add"], "held.tool", False)
    assert run([replace(turned, pins=False)], work, pins=pins)["result"] == {"sum": 3}
    assert "add" in Pins(pins).allow("s")
    assert run([turned], work, pins=pins)["result"] == {"sum": 3}


@pytest.mark.system
def test_a_server_that_dies_or_hangs_is_an_error_envelope_and_is_there_for_the_next_call() -> None:
    async def work(tools: McpTools, call: Call) -> None:
        read = await call("s__search", query="die")
        assert (read["error_type"], read["retryable"]) == ("connection", True)
        assert (await call("s__search", query="b"))["result"] == "found b"

    async def wait(tools: McpTools, call: Call) -> None:
        assert (await call("s__search", query="hang"))["error_type"] == "timeout"

    run([HERE], work)
    run([replace(HERE, timeout=2.0)], wait)


@pytest.mark.system
def test_servers_that_cannot_be_reached_and_a_call_that_is_cancelled_leave_the_others_alone() -> None:
    def program(name: str, code: str) -> McpServer:
        return McpServer(name=name, command=sys.executable, args=("-c", code), connect_timeout=0.5)

    servers = [
        HERE,
        McpServer(name="missing", command="/no/such/program"),
        program("mute", "import time; time.sleep(60)"),
        replace(program("over", "print('no server')"), connect_timeout=100),
        McpServer(name="closed", url="http://127.0.0.1:9/mcp", connect_timeout=5),
    ]

    async def work(tools: McpTools, call: Call) -> None:
        assert {*tools.problems} == {"missing", "mute", "over", "closed"}
        assert "not ready after 0.5 s" in tools.problems["mute"]
        task = asyncio.create_task(call("s__hang", seconds=1))
        await asyncio.wait([task], timeout=0.05)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()
        assert (await call("s__search", query="a"))["result"] == "found a"

    run(servers, work)


@pytest.mark.system
def test_d5_a_server_over_http_is_called_as_one_over_stdio_and_may_go_away() -> None:
    async def work(tools: McpTools, call: Call) -> None:
        assert (await call("h__search", query="a"))["result"] == "found a"
        assert (await call("h__search", query="big"))["is_complete"] is False
        assert (await call("h__search", query="fail"))["status"] == "error"
        far.over.set()
        far.shutdown()
        far.server_close()
        for query in ("b", "c"):
            assert (await call("h__search", query=query))["error_type"] == "connection"

    with Far() as far:
        run([McpServer(name="h", url=far.url, timeout=100)], work)
