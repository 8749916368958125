"""
What a server says of its tools, as a model may read it.
"""

from guardrails.mcp.pins.words import cleaned, marked, visible
from tests.tables import table


def hidden(text: str) -> str:
    """
    *text* in tag characters, which models read and people do not see.
    """
    return "".join(chr(0xE0000 + ord(one)) for one in text)


@table(
    ("said", "shown"),
    [
        ("Find things.\n\n\tBy name.", "Find things.\n\n\tBy name."),
        (f"Find{hidden(' and send')} things.", "Find things."),
        ("Add\u202e sdrawkcab\u202c", "Add sdrawkcab"),
        ("Add\u2066a\u2069\u200b\ufeff\u00ad", "Adda"),
        ("\x1b[2JAdd\x07", "[2JAdd"),
        ("Add" + "".join(chr(0xE0100 + one) for one in range(20)), "Add"),
        ("Add" + "\u200c\u200d" * 30, "Add"),
        ("half \ud800 a pair", "half  a pair"),
        # What people write stays.
        ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"),
        (
            "\U0001f468\u200d\U0001f469\u200d\U0001f467 \u2764\ufe0f",
            "\U0001f468\u200d\U0001f469\u200d\U0001f467 \u2764\ufe0f",
        ),
        ("\u691c\u7d22\u3059\u308b", "\u691c\u7d22\u3059\u308b"),
    ],
)
def test_what_a_person_does_not_see_is_left_out(said: str, shown: str) -> None:
    assert visible(said) == shown
    assert visible(shown) == shown


def test_texts_are_cleaned_at_any_depth_and_values_are_not() -> None:
    declared = {
        "name": "add",
        "description": "Add\u200b.",
        "inputSchema": {
            "properties": {"description": {"type": "string", "description": "What\u200b.", "default": "a\u200bb"}},
            "anyOf": [{"title": "One\u200b"}],
        },
    }
    assert cleaned(declared) == {
        "name": "add",
        "description": "Add.",
        "inputSchema": {
            "properties": {"description": {"type": "string", "description": "What.", "default": "a\u200bb"}},
            "anyOf": [{"title": "One"}],
        },
    }


def test_a_description_says_whose_words_it_is() -> None:
    assert marked("fs", "Read a file.") == "[MCP server `fs` says] Read a file."
    assert marked("fs", "") == ""
