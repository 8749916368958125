"""
The tool choice of the next model request.
"""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from guardrails.session.final_answer import Strategy, ToolChoice, forces, next_tool_choice
from tests.tables import table


CHAT_NAMED = {"type": "function", "function": {"name": "search"}}
TOOLS = [{"type": "function", "name": "search"}]
FORCING: list[Any] = [
    *(
        "required",
        "any",
        "search",
        CHAT_NAMED,
        {"type": "function", "name": "search"},
        {"type": "tool", "name": "search"},
    ),
    *({"type": "custom", "custom": {"name": "sql"}}, {"type": "custom", "name": "sql"}),
    {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": TOOLS}},
    {"type": "allowed_tools", "mode": "required", "tools": TOOLS},
    *({"type": "mcp", "server_label": "docs", "name": "lookup"}, {"type": "file_search"}, {"type": "shell"}),
]
FREE: list[Any] = [
    *(None, "auto", "none", {"type": "auto"}, {"type": "none"}),
    {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": TOOLS}},
    {"type": "allowed_tools", "mode": "auto", "tools": TOOLS},
]
choices = st.sampled_from(FORCING + FREE)


def always(choice: ToolChoice) -> Strategy:
    def strategy(call_count: int, turn_count: int) -> ToolChoice:
        return choice

    return strategy


@table("choice", FORCING + FREE)
def test_c1_a_forcing_choice_is_kept_for_the_first_request_only_and_a_free_one_stays(choice: ToolChoice) -> None:
    forcing = choice in FORCING
    assert forces(choice) is forcing
    assert next_tool_choice(choice, None, first=True, exhausted=False) == choice
    assert next_tool_choice(choice, None, first=False, exhausted=False) == (None if forcing else choice)


def test_c2_a_strategy_decides_turn_by_turn_from_the_counts() -> None:
    def strategy(call_count: int, turn_count: int) -> ToolChoice:
        return "required" if turn_count < 2 else CHAT_NAMED if call_count < 5 else None

    says = [
        next_tool_choice("auto", strategy, first=t == 0, exhausted=False, calls=c, turns=t)
        for c, t in [(0, 0), (1, 1), (4, 2), (5, 3)]
    ]
    assert says == ["required", "required", CHAT_NAMED, None]


@given(requested=choices, strategic=st.none() | choices.map(always), first=st.booleans())
def test_c2_an_exhausted_session_says_none_above_everything(requested: Any, strategic: Any, first: bool) -> None:
    assert next_tool_choice(requested, strategic, first=first, exhausted=True) == "none"
