"""
Which tools may be called at all, and which are held until somebody has looked at them.
"""

from typing import Any

from guardrails import MemorySink, Policy, Tool, ToolFilter
from guardrails.core.guards.tool_filter import Held
from tests.core.guards.calls import make, ok
from tests.replaying import replay
from tests.tables import table


WHY = "its server changed its description"


def test_of_many_tools_few_are_named_and_of_a_long_name_the_beginning(clock: Any) -> None:
    tools = [Tool(name=f"t{n}") for n in range(500)]
    refused = make(clock, ToolFilter(), tools=tools).call("x" * 1_000_000, {}, ok)
    assert refused.message == f"There is no tool `{'x' * 64}`."
    assert len(refused.to_json()) < 1_000


def test_the_tools_that_a_session_brings_or_wraps_are_known_to_it_alone(clock: Any) -> None:
    def book(city: str) -> str:
        return city

    policy = Policy([ToolFilter()], tools=[Tool(name="y")])
    session = policy.session("s", clock=clock, tools=[Tool(name="z")])
    assert session.wrap(book, returns="value")("Kyoto") == "Kyoto"
    assert [session.call(tool, {}, ok).code for tool in ("y", "z", "x")] == [None, None, "tool_filter.unknown"]
    assert policy.session("other", clock=clock).call("book", {}, ok).code == "tool_filter.unknown"


@table("name", ["default", "strict", None])
def test_a_held_tool_is_refused_under_any_policy_until_it_is_declared_again(name: str | None) -> None:
    policy, sink = Policy([]) if name is None else Policy.load(name), MemorySink()
    codes = []
    with policy.session("s", records=sink) as session:
        for n, held in enumerate(("", WHY, "", "its name looks like that of `ad`")):
            session.calls.declare(Tool(name="add", held=held))
            envelope = session.call("add", {"a": n}, ok)
            codes.append(envelope.code)
            assert held == "" or envelope.message == f"`add` is held: {held}. It was not called."
    assert codes == [None, "held.tool", None, "held.tool"]
    replayed = list(replay(policy.chain, sink.records))
    assert [one.made["code"] for one in replayed] == codes
    assert all(one.same for one in replayed)


def test_a_chain_without_held_tools_has_no_guard_for_them() -> None:
    assert not any(isinstance(guard, Held) for guard in Policy.load("default").chain.plan("add").guards)
