"""
Published servers behind the proxy: work runs, a look after work runs, and a caller that is stuck is stopped.
"""

import subprocess

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.proxy.lines import Lines, tap, words
from tests.system.mcp.proxy.published import home, program, script


pytestmark = pytest.mark.system


Start = Callable[[Path], tuple[str, ...]]
SERVERS: dict[str, tuple[Start, str, Callable[[Path], dict[str, Any]]]] = {
    "time": (
        lambda _: (program("mcp-server-time"), "--local-timezone", "UTC"),
        "convert_time",
        lambda _: {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"},
    ),
    "git": (
        lambda folder: (program("mcp-server-git"), "--repository", str(folder)),
        "git_branch",
        lambda folder: {"repo_path": str(folder), "branch_type": "local"},
    ),
    "fetch": (lambda _: (program("mcp-server-fetch"),), "fetch", lambda _: {"url": "http://127.0.0.1:9/"}),
    "filesystem": (
        lambda folder: (*script("server-filesystem"), str(folder)),
        "list_directory",
        lambda folder: {"path": str(folder)},
    ),
    "everything": (
        lambda _: (*script("server-everything"), "stdio"),
        "get-structured-content",
        lambda _: {"location": "New York"},
    ),
    "memory": (lambda _: script("server-memory"), "read_graph", lambda _: {}),
}


def guarded(name: str, folder: Path) -> Lines:
    subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True)
    given = {"policy": "default", "store": folder.parent / "s.db", "records": folder.parent / "records.jsonl"}
    return Lines(*tap(*SERVERS[name][0](folder), **given), MEMORY_FILE_PATH=str(folder.parent / "memory.jsonl"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    home()
    found = tmp_path / "work"
    found.mkdir()
    (found / "note.txt").write_text("a note")
    return found


@pytest.mark.parametrize("name", SERVERS)
def test_a_caller_that_is_stuck_on_a_published_server_is_stopped(name: str, folder: Path) -> None:
    _, tool, arguments = SERVERS[name]
    with guarded(name, folder) as lines:
        lines.start()
        found = [lines.call(tool, id=n, within=60, **arguments(folder)) for n in range(20)]
    assert bool(found[0].get("isError")) is (name == "fetch")  # It refuses loopback by itself.
    denied = [one for one in found if words(one).startswith("[guardrails:") and '"status":"error"' not in words(one)]
    assert found[0] not in denied
    assert len(denied) >= 15
    assert all(one["isError"] and "structuredContent" not in one for one in denied)
    assert found[-1] in denied


def test_a_file_that_was_written_between_is_read_each_time(folder: Path) -> None:
    """
    The same call ten times, each after work on what it shows, is no loop.
    """
    path = str(folder / "note.txt")
    with guarded("filesystem", folder) as lines:
        lines.start()
        for n in range(10):
            assert not lines.call("write_file", path=path, content=f"version {n}").get("isError")
            assert words(lines.call("read_text_file", path=path)).startswith(f"version {n}")
        for n in range(5):
            assert not lines.call(
                "edit_file", path=path, edits=[{"oldText": "version", "newText": f"v{n} version"}]
            ).get("isError")
            assert f"v{n}" in words(lines.call("read_text_file", path=path))


def test_what_a_published_server_offers_beside_tools_passes(folder: Path) -> None:
    with guarded("everything", folder) as lines:
        lines.start()
        assert lines.ask("resources/list", {})["result"]["resources"]
        assert lines.ask("prompts/list", {})["result"]["prompts"]
        call = {"name": "trigger-long-running-operation", "arguments": {"duration": 1, "steps": 4}}
        found = lines.ask("tools/call", {**call, "_meta": {"progressToken": "p"}})
        assert not found["result"].get("isError")
        for n in range(3):
            assert "structuredContent" in lines.call("get-structured-content", location=["Chicago", "New York"][n % 2])
