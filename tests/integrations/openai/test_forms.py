"""
Tools and tool choices in the two forms of the API.
"""

from typing import Any

from guardrails.integrations.openai.forms import flat, flat_choice, named, nested, nested_choice
from tests.tables import table


SCHEMA = {"type": "object", "properties": {}}


@table(
    ("chat", "responses"),
    [
        (
            {"type": "function", "function": {"name": "x", "parameters": SCHEMA, "strict": True}},
            {"type": "function", "name": "x", "parameters": SCHEMA, "strict": True},
        ),
        ({"type": "custom", "custom": {"name": "sql"}}, {"type": "custom", "name": "sql"}),
        ({"type": "web_search"}, {"type": "web_search"}),
        ({"type": "mcp", "server_label": "docs"}, {"type": "mcp", "server_label": "docs"}),
    ],
)
def test_a_tool_goes_from_each_form_to_the_other_and_stays_in_its_own(chat: Any, responses: Any) -> None:
    assert (flat(chat), nested(responses)) == (responses, chat)
    assert (nested(chat), flat(responses)) == (chat, responses)
    assert named(chat)[0] == named(responses)[0]


@table(
    ("chat", "responses"),
    [
        ("auto", "auto"),
        (None, None),
        ({"type": "function", "function": {"name": "x"}}, {"type": "function", "name": "x"}),
        (
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "x"}}]},
            },
            {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "x"}]},
        ),
        ({"type": "web_search"}, {"type": "web_search"}),
    ],
)
def test_a_choice_goes_from_each_form_to_the_other_and_stays_in_its_own(chat: Any, responses: Any) -> None:
    assert (flat_choice(chat), nested_choice(responses)) == (responses, chat)
    assert (nested_choice(chat), flat_choice(responses)) == (chat, responses)
