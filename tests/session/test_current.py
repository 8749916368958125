"""
The session whose call runs here.
"""

import asyncio
import threading

from typing import Any

from guardrails import Policy, Tool, current_session


def name() -> str | None:
    session = current_session()
    return None if session is None else session.id


def told(tool: str, arguments: Any) -> str | None:
    return name()


async def told_later(tool: str, arguments: Any) -> str | None:
    await asyncio.sleep(0)
    return name()


def test_it_is_none_outside_of_a_call_and_the_session_in_one() -> None:
    assert current_session() is None
    session = Policy().session("s")
    assert session.call("t", {}, told).value == "s"
    assert session.call("t", {}, lambda tool, arguments: current_session() is session).value is True
    assert current_session() is None


def test_calls_within_calls_and_children_have_their_own_and_restore_the_other() -> None:
    session = Policy().session("s")

    def delegate(tool: str, arguments: Any) -> list[str | None]:
        seen = [name()]
        with session.child("sub") as child:
            seen.append(child.call("t", {}, told).value)
        seen.append(Policy().session("other").call("t", {}, told).value)
        return [*seen, name()]

    assert session.call("delegate", {}, delegate).value == ["s", "s/sub", "other", "s"]


def test_it_is_there_in_the_thread_of_a_tool_that_has_a_timeout() -> None:
    session = Policy().session("s", tools=[Tool(name="t", timeout=10)])
    assert session.call("t", {}, lambda tool, arguments: [name(), threading.current_thread().name]).value == [
        "s",
        "guardrails-tool",
    ]
    assert asyncio.run(session.acall("t", {"a": 1}, told)).value == "s"
    assert asyncio.run(session.acall("t", {"a": 2}, told_later)).value == "s"
