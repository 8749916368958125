"""
The built-in tools as one registry: declared, guarded, told as data; sub-agents and messages.
"""

import threading

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guardrails import Budget, Policy, Session, Shell, Tool, Workspace
from guardrails.agent.builtin import Spawn, Web, builtin_tools
from guardrails.core.values.types import ERROR_TYPES
from tests.tables import table


ALL = "edit_file exec_shell list_directory memory_read memory_write message read_file spawn web_fetch web_search write_file"


def everything(folder: Path) -> Any:
    def nobody() -> Session:
        raise AssertionError

    web, spawn = Web(search="http://127.0.0.1:1/?q={query}"), Spawn(nobody, lambda *_: "")
    return builtin_tools(folder, memory=folder / "m.db", web=web, spawn=spawn, message=print)


def test_d10_there_are_eleven_tools_with_their_declarations(tmp_path: Path) -> None:
    registry = everything(tmp_path)
    assert " ".join(registry.entries) == ALL
    assert all(tool.description and tool.timeout and tool.idempotent is not None for tool in registry.tools)
    tools = {tool.name: tool for tool in registry.tools}
    assert (tools["read_file"].paths, tools["read_file"].read_only) == (("path",), True)
    assert (tools["exec_shell"].commands, tools["exec_shell"].timeout) == (("command",), 630)
    few = builtin_tools(tmp_path, shell=False, web=False)
    assert list(few) == ["edit_file", "list_directory", "read_file", "write_file"]


@pytest.mark.system
def test_guards_stand_before_them(tmp_path: Path) -> None:
    registry = builtin_tools(tmp_path, sandbox="none")
    policy = Policy([Workspace(root=str(tmp_path)), Shell(deny=("sudo",))], tools=registry.tools)
    with policy.session("s") as session:
        for tool, arguments, said in [
            ("write_file", {"path": "a", "content": "x"}, "success"),
            ("read_file", {"path": "../a"}, "workspace.root"),
            ("exec_shell", {"command": "ls; sudo id"}, "shell.deny"),
            ("exec_shell", {"command": "cat a"}, "success"),
            ("read_file", {"path": "a", "limit": 0}, "validation_error"),
        ]:
            envelope = session.call(tool, arguments, registry.execute)
            assert said in (envelope.code, envelope.status), arguments


@table("arguments", [{}, {"path": 3}, {"path": None, "content": []}, {"path": "a", "more": 1}, "[", []])
def test_d4_arguments_that_do_not_fit_are_errors_of_the_closed_list(tmp_path: Path, arguments: Any) -> None:
    registry = everything(tmp_path)
    for name in registry.entries:
        said = registry.execute(name, arguments)
        assert getattr(said, "error_type", None) in (None, *ERROR_TYPES)


# spawn


def spawning(agent: Callable[[str, Session], object], limit: int, **amounts: Any) -> tuple[Session, Any]:
    session = Policy([Budget(max_calls=limit)]).session("main")
    return session, Spawn(session, agent, **amounts).tools["spawn"]


def test_d10_spawn_works_on_a_share_of_the_budget_and_gives_back_the_rest() -> None:
    def agent(task: str, session: Session) -> str:
        for number in range(3):
            session.call("search", {"q": number}, lambda *_: "hit")
        if task == "fail":
            raise RuntimeError("broken")
        return f"done: {task}"

    session, spawn = spawning(agent, 10, max_calls=5)
    with session:
        assert spawn("look") == {"answer": "done: look", "calls_used": 3, "ended_by": None}
        with pytest.raises(RuntimeError):
            spawn("fail")
        assert session.ledger.progress["calls_left"] == 4
        assert spawn("more than is left").error_type == "precondition"


def test_sub_agents_of_sub_agents_end_somewhere() -> None:
    def agent(task: str, session: Session) -> object:
        said = Spawn(session, agent, max_calls=1).tools["spawn"]("deeper")
        return said if isinstance(said, dict) else said.error_type

    session, spawn = spawning(agent, 100, max_calls=50)
    with session:
        assert "permission" in spawn("go")["answer"]


@pytest.mark.system
def test_d12_a_sub_agent_whose_time_is_up_makes_no_further_call() -> None:
    ran: list[int] = []
    over = threading.Event()

    def look(*_: object) -> bool:
        ran.append(len(ran))
        return over.wait(0.05)

    def agent(task: str, session: Session) -> str:
        while session.exhausted is None:
            session.call("look", {"n": len(ran)}, look)
        over.set()
        return "late"

    policy = Policy([Budget(max_calls=1_000)], tools=[Tool(name="spawn", timeout=0.3)])
    session = policy.session("main")
    spawn = Spawn(session, agent).tools["spawn"]
    said = session.call("spawn", {"task": "look"}, lambda _, given: spawn(**given))
    before = len(ran)
    assert said.error_type == "timeout" or said.value["ended_by"] == "budget.max_elapsed"
    assert over.wait(10)
    assert 0 < before < 20
    assert len(ran) <= before + 1


# message


def test_d10_message_is_delivered_without_control_characters_d9(tmp_path: Path) -> None:
    said: list[str] = []
    tools = builtin_tools(tmp_path, shell=False, web=False, message=said.append)
    assert tools.execute("message", {"text": "a\0b\x1b[31m\x7f\n\tc "}) == {"delivered": True}
    for text in ("", "x" * 20_000):
        assert tools.execute("message", {"text": text}).status == "validation_error"
    assert said == ["ab[31m\n\tc"]
