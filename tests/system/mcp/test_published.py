"""
Servers and a client as others publish them, which `python -m tests.system.mcp` installs: work runs, a look after work runs, a caller that is
stuck is stopped, and a client that checks schemas takes every answer.
"""

import json
import shutil
import sys

from pathlib import Path
from typing import Any

import pytest

from tests.children import ran
from tests.mcp.process import Process, tap, words
from tests.system.mcp.chains import STDIO, node, program, script


pytestmark = pytest.mark.system
ZONES = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
SERVERS: dict[str, tuple[str, str, dict[str, str]]] = {
    "time": ("mcp-server-time --local-timezone UTC", "convert_time", ZONES),
    "git": ("mcp-server-git --repository HERE", "git_branch", {"repo_path": "HERE", "branch_type": "local"}),
    "fetch": ("mcp-server-fetch", "fetch", {"url": "http://127.0.0.1:9/"}),
    "filesystem": ("server-filesystem HERE", "list_directory", {"path": "HERE"}),
    "everything": ("server-everything stdio", "get-structured-content", {"location": "New York"}),
    "memory": ("server-memory", "read_graph", {}),
}
"""By name: the command, a tool that only looks, and its arguments; HERE stands for a folder."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "work"
    found.mkdir()
    (found / "note.txt").write_text("a note")
    ran("git", "init", "-q", "-b", "main", found, check=True)
    return found


def guarded(name: str, folder: Path) -> Process:
    given = {"policy": "default", "store": folder.parent / "s.db", "records": folder.parent / "records.jsonl"}
    first, *rest = SERVERS[name][0].replace("HERE", str(folder)).split()
    command = (program(first),) if first.startswith("mcp-") else script(first)
    return Process(*tap(*command, *rest, **given), MEMORY_FILE_PATH=str(folder.parent / "memory.jsonl"))


@pytest.mark.parametrize("name", SERVERS)
def test_a_caller_that_is_stuck_on_a_published_server_is_stopped(name: str, folder: Path) -> None:
    _, tool, arguments = SERVERS[name]
    given = {key: value.replace("HERE", str(folder)) for key, value in arguments.items()}
    with guarded(name, folder) as one:
        one.start()
        found = [one.call(tool, given, n) for n in range(20)]
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
    with guarded("filesystem", folder) as one:
        one.start()
        for n in range(15):
            change = {"content": f"version {n}"} if n < 10 else {"edits": [{"oldText": "ver", "newText": f"v{n} ver"}]}
            made = one.call("write_file" if n < 10 else "edit_file", {"path": path, **change})
            assert not made.get("isError"), made
            sign = f"version {n}" if n < 10 else f"v{n} "
            assert sign in words(one.call("read_text_file", {"path": path}))


# The SDK for TypeScript raises if structured content does not fit the tool's schema, or is missing

Calls = list[tuple[str, dict[str, Any]]]
Results = list[dict[str, Any]]


def checked(folder: Path, command: tuple[str, ...], calls: Calls) -> tuple[dict[str, Any], Results]:
    """
    The schemas of results as the client reads them, and what each of the *calls* gave, none of which was an exception.
    """
    modules = Path(script("conformance")[1]).parents[3]
    (folder / "node_modules").symlink_to(modules)
    shutil.copy(Path(__file__).with_name("client.mjs"), folder)
    read = json.loads(ran(node(), "client.mjs", json.dumps(calls), *command, cwd=folder, check=True).stdout)
    assert [one for one in read["found"] if "raised" in one] == []
    return {tool["name"]: tool.get("outputSchema") for tool in read["tools"]}, read["found"]


def ours(result: dict[str, Any]) -> bool:
    """
    Whether *result* is a refusal of ours.
    """
    return "isError" in result and words(result).startswith("[guardrails:") and "structuredContent" not in result


def test_a_denied_call_a_cut_result_and_a_note_are_all_valid_to_a_client_that_checks(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text("version: 1\nextends: default\nbudget: {max_calls: 10}\n")
    rows = [3, 3, 3, 3, 5_000, *range(10, 20)]
    schemas, found = checked(tmp_path, tap(*STDIO, policy=tmp_path / "policy.yaml"), [("rows", {"n": n}) for n in rows])
    assert found[0]["structuredContent"]["total"] == 3
    assert [one.get("isError", False) for one in found] == [ours(one) for one in found]
    assert (ours(found[3]), ours(found[-1])) == (True, True), "a repeat, and what is beyond the budget"
    cut = found[4]["structuredContent"]
    assert (cut["total"], 0 < len(cut["rows"]) < 5_000, "_guardrails" in cut) == (5_000, True, True)
    assert "_guardrails" in schemas["rows"]["properties"]
    ran = [one["structuredContent"]["total"] for one in found[5:] if not one.get("isError")]
    assert ran == [*range(10, 10 + len(ran))]


def test_a14_a_client_that_checks_takes_what_an_authors_tools_answer(tmp_path: Path) -> None:
    shutil.copy(Path(__file__).with_name("hotels.py.txt"), tmp_path / "hotels.py")
    cities = ("Bern", "Bern", "Bern", "down")
    command = (sys.executable, "hotels.py")
    schemas, found = checked(tmp_path, command, [("search_hotels", {"city": city}) for city in cities])
    assert schemas["search_hotels"]["properties"]["is_complete"]
    first, second, _, down = found
    assert first["structuredContent"]["results"] == [{"id": "h_1", "city": "Bern"}]
    assert ours(second)
    assert words(second).startswith("[guardrails:duplicates.evidence]")
    assert ours(down)
    assert '"retryable":true' in words(down)
