"""
Which tools may be called at all.
"""

from typing import Any

from guardrails import Policy, Tool, ToolFilter
from tests.tables import table


def ok(*_: Any) -> str:
    return "ok"


def code(clock: Any, guard: ToolFilter, tool: str, **settings: Any) -> str | None:
    return Policy([guard], **settings).session("s", clock=clock).call(tool, {}, ok).code


@table(
    ("guard", "tool", "expected"),
    [
        (ToolFilter(), "anything", None),
        (ToolFilter(deny=("rm_*",)), "rm_file", "tool_filter.deny"),
        (ToolFilter(deny=("rm_*",)), "RM_file", None),
        (ToolFilter(deny=("rm_*",)), "form_x", None),
        (ToolFilter(allow=("read_*", "ls")), "read_file", None),
        (ToolFilter(allow=("read_*", "ls")), "lsof", "tool_filter.allow"),
        (ToolFilter(allow=("*",), deny=("shell",)), "shell", "tool_filter.deny"),
        (ToolFilter(deny=("*",)), "", "tool_filter.deny"),
        (ToolFilter(deny=("a[bc]",)), "ac", "tool_filter.deny"),
        (ToolFilter(deny=("rm",), mode="observe"), "rm", None),
        (ToolFilter(deny=("rm",), mode="off"), "rm", None),
    ],
)
def test_globs_allow_and_deny_and_deny_stands_above(
    guard: ToolFilter, tool: str, expected: str | None, clock: Any
) -> None:
    assert code(clock, guard, tool) == expected


def test_a_tool_is_unknown_only_where_tools_are_named(clock: Any) -> None:
    assert code(clock, ToolFilter(), "x") is None
    assert code(clock, ToolFilter(), "x", tools=[Tool(name="y")]) == "tool_filter.unknown"
    assert code(clock, ToolFilter(unknown="allow"), "x", tools=[Tool(name="y")]) is None
    session = Policy([ToolFilter()]).session("s", tools=[Tool(name="y")], clock=clock)
    assert [session.call(tool, {}, ok).code for tool in ("y", "x")] == [None, "tool_filter.unknown"]


def test_an_unknown_tool_is_told_the_name_it_was_meant_to_be_or_those_there_are(clock: Any) -> None:
    tools = [Tool(name=name) for name in ("search_hotels", "book_hotel")]
    session = Policy([ToolFilter()], tools=tools).session("s", clock=clock)
    near, far = session.call("search_hotel", {}, ok), session.call("zzz", {}, ok)
    assert near.next_action_hint == "Did you mean `search_hotels`?"
    assert far.next_action_hint == "The tools are: `book_hotel`, `search_hotels`."
    assert (near.status, near.error_type, near.retryable) == ("denied", "tool_missing", False)


def test_a_name_of_any_length_is_refused_briefly(clock: Any) -> None:
    session = Policy([ToolFilter()], tools=[Tool(name=f"t{n}") for n in range(500)]).session("s", clock=clock)
    refused = session.call("x" * 1_000_000, {}, ok)
    assert len(refused.to_json()) < 1_000
    assert f"There is no tool `{'x' * 64}`." in refused.to_json()


def test_a_function_that_is_wrapped_is_known_to_its_session(clock: Any) -> None:
    def book(city: str) -> str:
        return city

    policy = Policy([ToolFilter()], tools=[Tool(name="y")])
    session = policy.session("s", clock=clock)
    assert session.wrap(book, returns="value")("Kyoto") == "Kyoto"
    assert [session.call(tool, {}, ok).code for tool in ("y", "x")] == [None, "tool_filter.unknown"]
    assert policy.session("other", clock=clock).call("book", {}, ok).code == "tool_filter.unknown"
