"""
How servers are started: with listed variables, within limits, and in a sandbox where their entry asks for one.
"""

import asyncio
import json
import os
import socket
import sys

from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from guardrails import Policy
from guardrails.core.values.errors import SandboxUnavailable
from guardrails.mcp import McpServer, McpTools
from guardrails.processes.sandbox import choose


pytestmark = pytest.mark.system


pytest.importorskip("mcp")
SERVER = McpServer(name="s", command=sys.executable, args=(str(Path(__file__).with_name("server_that_looks.py")),))
Ask = Callable[..., Coroutine[Any, Any, Any]]


def asked(server: McpServer, work: Callable[[Ask], Coroutine[Any, Any, None]]) -> None:
    """
    Let *work* ask the tools of *server*.
    """

    async def whole() -> None:
        async with McpTools([server]) as tools:
            assert tools.problems == {}
            session = Policy([], tools=tools.registry.tools).session("s")

            async def ask(name: str, **arguments: Any) -> Any:
                said = await session.acall(f"s__{name}", arguments, tools.registry.aexecute)
                return json.loads(said.to_json()).get("result")

            await work(ask)

    asyncio.run(whole())


@pytest.fixture
def works() -> None:
    try:
        choose("auto")
    except SandboxUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture
def port() -> Any:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def test_a_server_has_a_listed_environment_and_its_files_and_network(
    tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")

    async def work(ask: Ask) -> None:
        variables = await ask("environment")
        assert "sk-planted" not in variables.values()
        assert (variables["HOME"], variables["OWN"]) == (os.environ["HOME"], "yes")
        assert await ask("reach", port=port) == "reached"
        assert await ask("write", path=str(tmp_path / "file")) == "written"

    asked(replace(SERVER, env={"OWN": "yes"}), work)


def test_one_that_may_not_use_the_network_keeps_its_files(works: None, tmp_path: Path, port: int) -> None:
    async def work(ask: Ask) -> None:
        assert await ask("reach", port=port) != "reached"
        assert await ask("write", path=str(tmp_path / "file")) == "written"
        assert (tmp_path / "file").read_text() == "written"

    asked(replace(SERVER, network=False), work)


@pytest.mark.parametrize("network", [True, False])
def test_one_in_a_sandbox_writes_into_its_folder_and_nowhere_else(
    works: None, network: bool, tmp_path: Path, port: int
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "key").write_text("sk-planted")

    async def work(ask: Ask) -> None:
        assert (await ask("reach", port=port) == "reached") is network
        assert await ask("write", path=str(folder / "file")) == "written"
        # It may be one of a private /tmp.
        await ask("write", path=str(tmp_path / "file"))
        assert "sk-planted" not in await ask("read", path=str(tmp_path / "key"))
        assert "sk-planted" not in await ask("read", path=f"/proc/{os.getpid()}/environ")

    asked(replace(SERVER, sandbox="auto", network=network, cwd=str(folder)), work)
    assert (folder / "file").read_text() == "written"
    assert not (tmp_path / "file").exists()


def test_one_that_cannot_be_confined_as_its_entry_asks_is_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    servers = [replace(SERVER, network=False), replace(SERVER, name="other"), replace(SERVER, name="no", command="/no")]

    async def whole() -> None:
        async with McpTools(servers) as tools:
            assert "macOS" in tools.problems["s"]
            assert "`sandbox: none`" in tools.problems["s"]
            assert "FileNotFoundError" in tools.problems["no"]
            assert {name.partition("__")[0] for name in tools.registry} == {"other"}

    asyncio.run(whole())
