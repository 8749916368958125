"""
Tools of real MCP servers, well-behaved and not, through a session and a registry.
"""

import asyncio
import json
import socket
import subprocess
import sys
import time

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from guardrails import Policy
from guardrails.mcp import McpServer, McpTools
from guardrails.mcp.pins import Pins
from guardrails.session.session import Session


pytestmark = pytest.mark.system


pytest.importorskip("mcp")
SCRIPT = str(Path(__file__).with_name("server_that_misbehaves.py"))
Work = Callable[[McpTools, Session], Coroutine[Any, Any, None]]


def server(name: str = "s", *args: str, timeout: float = 20.0) -> McpServer:
    return McpServer(name=name, command=sys.executable, args=(SCRIPT, *args), timeout=timeout)


def run(servers: list[McpServer], work: Work) -> None:
    async def whole() -> None:
        async with McpTools(servers) as tools:
            policy = Policy.load("default", tools=tools.registry.tools)
            await work(tools, policy.session("s"))

    asyncio.run(whole())


async def said(tools: McpTools, session: Session, name: str, /, **arguments: Any) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((await session.acall(name, arguments, tools.registry.aexecute)).to_json())
    return read


def test_d5_tools_are_offered_as_server_and_tool_with_their_schemas_and_annotations() -> None:
    async def work(tools: McpTools, session: Session) -> None:
        assert list(tools.registry) == ["s__add", "s__drop_table", "s__search"]
        search = tools.registry.entries["s__search"].tool
        assert (search.read_only, search.idempotent, search.description) == (
            True,
            True,
            "[MCP server `s` says] Find things.",
        )
        # What may destroy is not read-only, whatever else its server says.
        assert tools.registry.entries["s__drop_table"].tool.read_only is False
        assert tools.registry.schemas()[2]["function"]["parameters"]["required"] == ["query"]
        assert (await said(tools, session, "s__search", query="a"))["result"] == "found a"
        assert (await said(tools, session, "s__add", a=1, b=2))["result"] == 3
        assert (await said(tools, session, "s__drop_table", name="t"))["result"] == "t"
        assert tools.problems == {}

    run([server()], work)


def test_arguments_are_checked_before_the_server_sees_them() -> None:
    async def work(tools: McpTools, session: Session) -> None:
        read = await said(tools, session, "s__add", a="one")
        assert read["status"] == "validation_error"
        assert {error["field"] for error in read["errors"]} == {"a", "b"}

    run([server()], work)


def test_a_server_that_dies_is_an_error_envelope_and_is_started_again_for_the_next_call() -> None:
    async def work(tools: McpTools, session: Session) -> None:
        read = await said(tools, session, "s__search", query="die")
        assert (read["error_type"], read["retryable"]) == ("connection", True)
        assert (await said(tools, session, "s__search", query="b"))["result"] == "found b"

    run([server()], work)


def test_a_server_that_hangs_costs_its_timeout_and_no_more() -> None:
    async def work(tools: McpTools, session: Session) -> None:
        assert (await said(tools, session, "s__search", query="hang"))["error_type"] == "timeout"

    run([server(timeout=1.0)], work)


def test_servers_that_cannot_be_reached_leave_the_others_alone() -> None:
    servers = [
        server(),
        McpServer(name="missing", command="/no/such/program"),
        McpServer(name="mute", command=sys.executable, args=("-c", "import time; time.sleep(60)"), connect_timeout=0.5),
        McpServer(name="over", command=sys.executable, args=("-c", "print('no server')")),
        McpServer(name="closed", url="http://127.0.0.1:9/mcp", connect_timeout=5),
    ]

    async def work(tools: McpTools, session: Session) -> None:
        assert set(tools.problems) == {"missing", "mute", "over", "closed"}
        assert "not ready after 0.5 s" in tools.problems["mute"]
        assert (await said(tools, session, "s__search", query="a"))["result"] == "found a"

    run(servers, work)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc here")
def test_leaving_ends_a_server_that_ignores_sigterm_and_what_it_has_forked() -> None:
    started: list[int] = []

    async def work(tools: McpTools, session: Session) -> None:
        found = await asyncio.create_subprocess_exec(
            "pgrep", "-f", f"{SCRIPT} stubborn", stdout=asyncio.subprocess.PIPE
        )
        started.extend(map(int, (await found.communicate())[0].split()))
        # The one that ends all with it, the server, and its own.
        assert len(started) == 3

    run([server("s", "stubborn")], work)
    deadline = time.monotonic() + 10
    while any(map(alive, started)):
        # They were killed; the system may take a moment.
        assert time.monotonic() < deadline
        time.sleep(0.01)


def alive(process: int) -> bool:
    """
    Whether it runs; a zombie, whose parent has not asked after it, does not.
    """
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def over_http() -> Iterator[tuple[McpServer, "subprocess.Popen[bytes]"]]:
    """
    The same server listening on a free port of loopback.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, SCRIPT, "http", str(port)])
    try:
        deadline = time.monotonic() + 60
        while not listens(port):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield McpServer(name="h", url=f"http://127.0.0.1:{port}/mcp", timeout=20.0), process
    finally:
        process.kill()
        process.wait()


def test_d5_a_server_over_http_is_called_as_one_over_stdio_and_may_go_away() -> None:
    with over_http() as (listening, process):

        async def work(tools: McpTools, session: Session) -> None:
            assert (await said(tools, session, "h__search", query="a"))["result"] == "found a"
            assert (await said(tools, session, "h__add", a=1, b=2))["result"] == 3
            assert (await said(tools, session, "h__search", query="big"))["is_complete"] is False
            assert (await said(tools, session, "h__search", query="fail"))["status"] == "error"
            process.kill()
            process.wait()
            for query in ("b", "c"):
                assert (await said(tools, session, "h__search", query=query))["error_type"] == "connection"

        run([listening], work)


def test_calls_at_once_get_each_their_own_answer() -> None:
    async def work(tools: McpTools, session: Session) -> None:
        read = await asyncio.gather(*(said(tools, session, "s__search", query=f"q{n}") for n in range(30)))
        assert [one["result"] for one in read] == [f"found q{n}" for n in range(30)]

    run([server()], work)


def test_a_cancelled_call_leaves_the_connection_as_it_was() -> None:
    async def work(tools: McpTools, session: Session) -> None:
        task = asyncio.create_task(said(tools, session, "s__search", query="hang"))
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()
        assert (await said(tools, session, "s__add", a=1, b=1))["result"] == 2

    run([server()], work)


def test_a_tool_that_says_something_else_than_it_did_is_held_until_it_is_allowed(tmp_path: Path) -> None:
    pins = str(tmp_path / "pins.json")

    async def whole(**env: str) -> dict[str, Any]:
        async with McpTools([replace(server(), env=env)], pins=pins) as tools:
            session = Policy.load("default", tools=tools.registry.tools).session("s")
            return {"held": tools.held, **await said(tools, session, "s__add", a=1, b=2)}

    assert asyncio.run(whole())["result"] == 3
    changed = asyncio.run(whole(TURNED="yes"))
    assert (list(changed["held"]), changed["code"], changed["retryable"]) == (["s__add"], "held.tool", False)
    assert Pins(pins).allow("s") == ["add"]
    assert asyncio.run(whole(TURNED="yes"))["result"] == 3
