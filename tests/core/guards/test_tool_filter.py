"""
Which tools may be called at all, and which are held until somebody has looked at them.
"""

from typing import Any

from guardrails import MemorySink, Policy, Tool, ToolFilter
from guardrails.core.chain import Rule
from guardrails.core.guards.tool_filter import Held
from tests.core.guards.calls import make, ok, said
from tests.replaying import replay
from tests.tables import table


NAMED: dict[str, Any] = {"tools": [Tool(name="y")]}
WHY = "its server changed its description"


@table(("guard", "settings", "tool", "code"), [
    (ToolFilter(deny=("rm_*",)), {}, "rm_file", "tool_filter.deny"),
    (ToolFilter(deny=("rm_*",)), {}, "RM_file", None),
    (ToolFilter(allow=("read_*", "ls")), {}, "read_file", None),
    (ToolFilter(allow=("read_*", "ls")), {}, "lsof", "tool_filter.deny"),
    (ToolFilter(allow=("*",), deny=("shell",)), {}, "shell", "tool_filter.deny"),
    (ToolFilter(deny=("a[bc]",)), {}, "ac", "tool_filter.deny"),
    (ToolFilter(deny=("rm",), mode="observe"), {}, "rm", None),
    (ToolFilter(), NAMED, "x", "tool_filter.unknown"),
    (ToolFilter(), NAMED, "y", None),
    (ToolFilter(unknown="allow"), NAMED, "x", None),
])  # fmt: skip
def test_deny_stands_above_allow_and_tools_are_known(
    guard: ToolFilter, settings: Any, tool: str, code: str | None, clock: Any
) -> None:
    assert make(clock, guard, **settings).call(tool, {}, ok).code == code


@table(("tools", "called", "hint"), [
    (["search_hotels", "book_hotel"], "search_hotel", "Did you mean `search_hotels`?"),
    (["search_hotels", "book_hotel"], "zzz", "The tools are: `book_hotel`, `search_hotels`."),
    ([f"t{n}" for n in range(500)], "x" * 1_000_000, "The tools are: `t0`, "),
])  # fmt: skip
def test_an_unknown_tool_is_told_the_names_that_there_are_briefly(
    tools: list[str], called: str, hint: str, clock: Any
) -> None:
    refused = make(clock, ToolFilter(), tools=[Tool(name=name) for name in tools]).call(called, {}, ok)
    assert said(refused, "status", "error_type", "retryable") == ("denied", "tool_missing", False)
    assert (refused.next_action_hint or "").startswith(hint)
    assert refused.message == f"There is no tool `{called[:64]}`."
    assert len(refused.to_json()) < 1_000


def test_the_tools_that_a_session_brings_or_wraps_are_known_to_it_alone(clock: Any) -> None:
    def book(city: str) -> str:
        return city

    policy = Policy([ToolFilter()], **NAMED)
    session = policy.session("s", clock=clock, tools=[Tool(name="z")])
    assert session.wrap(book, returns="value")("Kyoto") == "Kyoto"
    assert [session.call(tool, {}, ok).code for tool in ("y", "z", "x")] == [None, None, "tool_filter.unknown"]
    assert policy.session("other", clock=clock).call("book", {}, ok).code == "tool_filter.unknown"


# Held tools


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


def test_a_policy_may_hold_a_tool_itself_and_others_do_not_meet_the_guard(clock: Any) -> None:
    session = make(clock, rules=[Rule(match="pay_*", declared={"held": "not before the audit"})])
    assert [session.call(tool, {}, ok).code for tool in ("pay_rent", "read")] == ["held.tool", None]
    assert not any(isinstance(guard, Held) for guard in Policy.load("default").chain.plan("add").guards)
