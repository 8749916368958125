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
from guardrails.processes.sandbox.confinement import Name


pytest.importorskip("mcp")
SERVER = McpServer(name="s", command=sys.executable, args=(str(Path(__file__).with_name("server_that_looks.py")),))
Ask = Callable[..., Coroutine[Any, Any, Any]]


def asked(server: McpServer, work: Callable[[Ask], Coroutine[Any, Any, None]], sandbox: Name | None = "auto") -> None:
    """
    Let *work* ask the tools of *server*.
    """

    async def whole() -> None:
        async with McpTools([server], sandbox=sandbox) as tools:
            assert tools.problems == {}
            session = Policy([], tools=tools.registry.tools).session("s")

            async def ask(name: str, **arguments: Any) -> Any:
                said = await session.acall(f"s__{name}", arguments, tools.registry.aexecute)
                return json.loads(said.to_json()).get("result")

            await work(ask)

    asyncio.run(whole())


def works(name: Name) -> None:
    try:
        choose(name)
    except SandboxUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture
def port() -> Any:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.skipif(sys.platform == "win32", reason="there are no limits on Windows")
@pytest.mark.parametrize("sandbox", [None, "none", "auto"])
def test_a_server_has_limits_and_a_listed_environment_and_its_files_and_network(
    sandbox: Name | None, tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")
    left = []

    async def work(ask: Ask) -> None:
        limits = await ask("limits")
        assert (limits["RLIMIT_DATA"] == 8 << 30) is (sandbox == "auto")
        assert (limits["RLIMIT_FSIZE"] == 16 << 30) is (sandbox == "auto")
        variables = await ask("environment")
        assert "sk-planted" not in variables.values()
        assert (variables["HOME"], variables["OWN"]) == (os.environ["HOME"], "yes")
        assert await ask("reach", port=port) == "reached"
        assert await ask("write", path=str(tmp_path / "file")) == "written"
        left.append(int(await ask("leave")))

    asked(replace(SERVER, env={"OWN": "yes"}), work, sandbox)
    if sandbox == "auto":
        assert gone(left[0])
    else:
        os.kill(left[0], 9)


@pytest.mark.parametrize("sandbox", [None, "none", "auto"])
def test_one_that_may_not_use_the_network_keeps_its_files(sandbox: Name | None, tmp_path: Path, port: int) -> None:
    works("auto")

    async def work(ask: Ask) -> None:
        assert await ask("reach", port=port) != "reached"
        assert await ask("write", path=str(tmp_path / "file")) == "written"
        assert (tmp_path / "file").read_text() == "written"

    asked(replace(SERVER, network=False), work, sandbox)


@pytest.mark.parametrize("sandbox", ["bwrap", "landlock"])
@pytest.mark.parametrize("network", [True, False])
def test_one_in_a_sandbox_writes_into_its_folder_and_nowhere_else(
    sandbox: Name, network: bool, tmp_path: Path, port: int
) -> None:
    works(sandbox)
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

    asked(replace(SERVER, sandbox=sandbox, network=network, cwd=str(folder)), work)
    assert (folder / "file").read_text() == "written"
    assert not (tmp_path / "file").exists()


def test_one_that_cannot_be_confined_as_its_entry_asks_is_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    servers = [replace(SERVER, network=False), replace(SERVER, name="other"), replace(SERVER, name="no", command="/no")]

    async def whole() -> None:
        async with McpTools(servers, sandbox="auto") as tools:
            assert "macOS" in tools.problems["s"]
            assert "`sandbox: none`" in tools.problems["s"]
            assert "FileNotFoundError" in tools.problems["no"]
            assert {name.partition("__")[0] for name in tools.registry} == {"other"}

    asyncio.run(whole())
