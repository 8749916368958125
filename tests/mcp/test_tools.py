"""
Tools of real MCP servers, well-behaved and not, through a session and a registry.
"""

import asyncio
import json
import sys

from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from guardrails import Policy
from guardrails.mcp import McpServer, McpTools
from guardrails.mcp.pins import Pins

from .far import served
from .process import SERVER


pytest.importorskip("mcp")
pytestmark = pytest.mark.system

HERE = McpServer(name="s", command=SERVER[0], args=SERVER[1:], timeout=20)
Call = Callable[..., Coroutine[Any, Any, dict[str, Any]]]


def run(servers: list[McpServer], work: Callable[[McpTools, Call], Coroutine[Any, Any, None]]) -> None:
    """
    Work with the tools of *servers*; `call(tool, **arguments)` is the envelope of a call.
    """

    async def whole() -> None:
        async with McpTools(servers) as tools:
            session = Policy.load("default", tools=tools.registry.tools).session("s")

            async def call(name: str, /, **arguments: Any) -> dict[str, Any]:
                read: dict[str, Any] = json.loads(
                    (await session.acall(name, arguments, tools.registry.aexecute)).to_json()
                )
                return read

            await work(tools, call)

    asyncio.run(whole())


def test_d5_tools_are_offered_as_server_and_tool_and_arguments_are_checked_before_the_server_sees_them() -> None:
    async def work(tools: McpTools, call: Call) -> None:
        assert {"s__add", "s__drop_table", "s__search"} < {*tools.registry}
        search, drop = (tools.registry.entries[f"s__{name}"].tool for name in ("search", "drop_table"))
        assert (search.read_only, search.idempotent) == (True, True)
        assert search.description == "[MCP server `s` says] Find things."
        assert drop.read_only is False
        [add] = [one["function"] for one in tools.registry.schemas() if one["function"]["name"] == "s__add"]
        assert add["parameters"]["required"] == ["a", "b"]
        assert (await call("s__search", query="a"))["result"] == "found a"
        assert (await call("s__add", a=1, b=2))["result"] == {"sum": 3}
        read = await call("s__add", a="one")
        assert read["status"] == "validation_error"
        assert {error["field"] for error in read["errors"]} == {"a", "b"}
        assert tools.problems == {}
        found = await asyncio.gather(*(call("s__search", query=f"q{n}") for n in range(30)))
        assert [one["result"] for one in found] == [f"found q{n}" for n in range(30)]

    run([HERE], work)


def test_a_list_without_an_end_is_its_tools_and_of_two_of_one_name_the_first_counts() -> None:
    async def work(tools: McpTools, call: Call) -> None:
        assert tools.problems == {}
        assert tools.registry.entries["s__add"].tool.description == "[MCP server `s` says] Add two numbers."
        assert (await call("s__add", a=1, b=2))["result"] == {"sum": 3}

    run([replace(HERE, env={"ENDLESS": "yes"})], work)


def test_a_server_that_dies_is_an_error_envelope_and_is_started_again_for_the_next_call() -> None:
    async def work(tools: McpTools, call: Call) -> None:
        read = await call("s__search", query="die")
        assert (read["error_type"], read["retryable"]) == ("connection", True)
        assert (await call("s__search", query="b"))["result"] == "found b"

    run([HERE], work)


def test_a_server_that_hangs_costs_its_timeout_and_no_more() -> None:
    async def work(tools: McpTools, call: Call) -> None:
        assert (await call("s__search", query="hang"))["error_type"] == "timeout"

    run([replace(HERE, timeout=1.0)], work)


def test_servers_that_cannot_be_reached_and_a_call_that_is_cancelled_leave_the_others_alone() -> None:
    def program(name: str, code: str) -> McpServer:
        return McpServer(name=name, command=sys.executable, args=("-c", code), connect_timeout=0.5)

    servers = [
        HERE,
        McpServer(name="missing", command="/no/such/program"),
        program("mute", "import time; time.sleep(60)"),
        replace(program("over", "print('no server')"), connect_timeout=20),
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

    with served() as far:
        run([McpServer(name="h", url=far.url, timeout=20)], work)


def test_a_tool_that_says_something_else_than_it_did_is_held_until_it_is_allowed(tmp_path: Path) -> None:
    pins = str(tmp_path / "pins.json")

    async def whole(**env: str) -> dict[str, Any]:
        async with McpTools([replace(HERE, env=env)], pins=pins) as tools:
            session = Policy.load("default", tools=tools.registry.tools).session("s")
            made = await session.acall("s__add", {"a": 1, "b": 2}, tools.registry.aexecute)
            return {"held": tools.held, **json.loads(made.to_json())}

    assert asyncio.run(whole())["result"] == {"sum": 3}
    changed = asyncio.run(whole(TURNED="yes"))
    assert (list(changed["held"]), changed["code"], changed["retryable"]) == (["s__add"], "held.tool", False)
    assert Pins(pins).allow("s") == ["add"]
    assert asyncio.run(whole(TURNED="yes"))["result"] == {"sum": 3}
