"""
The built-in tools as one registry: declared, guarded, told as data; notes, sub-agents and messages.
"""

import sqlite3
import threading

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guardrails import Budget, Policy, Session, Tool
from guardrails.agent import builtin as module
from guardrails.agent.builtin import Memory, Spawn, Web, builtin_tools


ALL = "edit_file exec_shell list_directory memory_read memory_write message read_file spawn web_fetch web_search write_file"


def everything(folder: Path, deliver: Callable[[str], object] = print) -> Any:
    web, spawn = Web(search="http://127.0.0.1:1/?q={query}"), Spawn(Policy().session("s"), lambda *_: "")
    return builtin_tools(folder, memory=folder / "m.db", web=web, spawn=spawn, message=deliver)


def test_d10_there_are_eleven_tools_with_their_declarations(tmp_path: Path) -> None:
    registry = everything(tmp_path)
    assert " ".join(registry.entries) == ALL
    assert all(tool.description and tool.timeout and tool.idempotent is not None for tool in registry.tools)
    tools = {tool.name: tool for tool in registry.tools}
    assert (tools["read_file"].paths, tools["read_file"].read_only) == (("path",), True)
    assert (tools["exec_shell"].commands, tools["exec_shell"].timeout) == (("command",), 630)
    few = builtin_tools(tmp_path, shell=False, web=False)
    assert " ".join(few.entries) == "edit_file list_directory read_file write_file"


def test_d4_arguments_that_do_not_fit_are_told_by_every_tool(tmp_path: Path) -> None:
    registry, unfit = everything(tmp_path), list[Any]([{"path": 3, "limit": "x"}, {"path": "a", "more": 1}, "[", []])
    for name in registry.entries:
        for arguments in unfit:
            assert registry.execute(name, arguments).status == "validation_error", name


# spawn


def test_d10_spawn_works_on_a_share_of_the_budget_and_gives_back_the_rest() -> None:
    def agent(task: str, session: Session) -> str:
        for number in range(3):
            session.call("search", {"q": number}, lambda *_: "hit")
        if task == "fail":
            raise RuntimeError("broken")
        return f"done: {task}"

    with Policy([Budget(max_calls=10)]).session("main") as session:
        spawn = Spawn(session, agent, max_calls=5).tools["spawn"]
        assert spawn("look") == {"answer": "done: look", "calls_used": 3, "ended_by": None}
        with pytest.raises(RuntimeError):
            spawn("fail")
        assert session.ledger.progress["calls_left"] == 4
        assert spawn("more than is left").error_type == "precondition"


def test_sub_agents_of_sub_agents_end_somewhere() -> None:
    def agent(task: str, session: Session) -> object:
        said = Spawn(session, agent, max_calls=1).tools["spawn"]("deeper")
        return said if isinstance(said, dict) else said.error_type

    with Policy([Budget(max_calls=100)]).session("main") as session:
        assert "permission" in Spawn(session, agent, max_calls=50).tools["spawn"]("go")["answer"]


@pytest.mark.system
def test_d12_a_sub_agent_whose_time_is_up_makes_no_further_call() -> None:
    ran: list[int] = []
    over = threading.Event()

    def look(*_: object) -> bool:
        ran.append(len(ran))
        return over.wait(0.2)

    def agent(task: str, session: Session) -> str:
        while session.exhausted is None:
            session.call("look", {"n": len(ran)}, look)
        over.set()
        return "late"

    policy = Policy([Budget(max_calls=1_000)], tools=[Tool(name="spawn", timeout=2)])
    session = policy.session("main")
    spawn = Spawn(session, agent).tools["spawn"]
    said = session.call("spawn", {"task": "look"}, lambda _, given: spawn(**given))
    before = len(ran)
    assert said.error_type == "timeout" or said.value["ended_by"] == "budget.max_elapsed"
    assert over.wait(60)
    assert 0 < before < 20
    assert len(ran) <= before + 1


def test_a_sub_agent_has_the_time_that_is_left_of_the_session_if_that_is_less_than_its_limit() -> None:
    session = Policy([Budget(max_elapsed=60)], tools=[Tool(name="spawn", timeout=1_800)]).session("main")
    spawn = Spawn(session, lambda _, child: child.ledger.progress["seconds_left"]).tools["spawn"]
    said = session.call("spawn", {"task": "look"}, lambda _, given: spawn(**given))
    assert said.ok, said.error_message
    assert 0 < int(said.value["answer"]) <= 60


# message, memory


def test_d10_message_is_delivered_without_control_characters_d9(tmp_path: Path) -> None:
    said: list[str] = []
    tools = everything(tmp_path, said.append)
    assert tools.execute("message", {"text": "a\0b\x1b[31m\x7f\n\tc "}) == {"delivered": True}
    for text in ("", "x" * 20_000):
        assert tools.execute("message", {"text": text}).status == "validation_error"
    assert said == ["ab[31m\n\tc"]


def write(file: Path, key: str, text: str, at: float = 1.0) -> Any:
    return Memory(file, clock=lambda: at).tools["memory_write"](key, text)


def read(file: Path, query: str = "", limit: int = 20) -> Any:
    return Memory(file).tools["memory_read"](query, limit)


def test_d10_memory_read_gives_what_another_session_wrote_by_memory_write(tmp_path: Path) -> None:
    file = tmp_path / "m.db"
    assert write(file, "color", "blue") == {"key": "color", "created": True}
    assert file.stat().st_mode & 0o777 == 0o600
    assert write(file, "color", "grün", at=2.0)["created"] is False
    assert read(file).value == [{"key": "color", "text": "grün", "changed_ms": 2_000}]
    assert write(file, "color", "") == {"key": "color", "deleted": True}
    for at, (key, text) in enumerate([("a", "one"), ("b%", "two"), ("c_d", "three")]):
        write(file, key, text, at)
    for query, keys in {"": ["c_d", "b%", "a"], "%": ["b%"], "_": ["c_d"], "ONE": ["a"], "' OR 1=1 --": []}.items():
        assert [note["key"] for note in read(file, query).value] == keys
    write(file, "long", "x" * 60_000, at=9)
    few = read(file)
    assert (few.is_complete, few.total_matches, len(few.value), read(file, limit=1).is_complete) == (False, 4, 1, False)


def test_keys_texts_and_their_number_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_NOTES", 1)
    assert write(tmp_path / "m.db", "one", "x")["created"]
    assert write(tmp_path / "m.db", "two", "x").error_type == "too_large"
    assert write(tmp_path / "m.db", "one", "y")["created"] is False
    tools = everything(tmp_path)
    for key, text in (("", "x"), ("k" * 257, "x"), ("k", "x" * 65_537)):
        assert tools.execute("memory_write", {"key": key, "text": text}).status == "validation_error"


def test_a_memory_that_cannot_be_used_is_an_error_and_nothing_is_written(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "BUSY_S", 0.05)
    file = tmp_path / "m.db"
    write(file, "k", "x")
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert write(file, "k", "y").error_type == "unavailable"
    other.execute("ROLLBACK")
    other.close()
    assert read(file).value[0]["text"] == "x"
    assert read(tmp_path / "none" / "x").error_type == "not_found"
    file.write_bytes(b"no database at all" * 100)
    assert read(file).error_type == "other"
