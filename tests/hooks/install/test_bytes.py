"""
What is put into a settings file is taken out without a trace, whatever a person wrote around it.
"""

import json

from typing import Any, Final

import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrails.hooks.install.entries import entries, folder_is_ours, installed, removed
from guardrails.hooks.install.scanner import NotJson, parse
from tests.tables import table


COMMAND: Final = "/opt/py/bin/python3 -I -m guardrails hook --client=claude --policy=default"
OTHER: Final = {"type": "command", "command": "/usr/local/bin/their-hook --fast"}
EVENTS: Final = ("PreToolUse", "PostToolUse", "Stop")


def ours(command: str) -> bool:
    return "-m guardrails hook" in command


def wanted(command: str = COMMAND) -> dict[str, dict[str, Any]]:
    return {event: {"type": "command", "command": command, "timeout": 30} for event in EVENTS}


def there(text: str) -> dict[str, Any]:
    return {entry.event: entry.handler for entry in entries(parse(text), ours) if entry.counts}


NASTY: Final = (
    "",
    "\n",
    "\ufeff",
    "// nothing yet",
    "/* nothing */\r\n// yet\r\n",
    "{}",
    "{}\n",
    "{ }",
    "{\n}\n",
    "{\n\n  \n}",
    "{ /* empty */ }",
    "{ // empty\n}",
    "\ufeff{}\r\n",
    '{"a":1}',
    '{"a":1,"b":[1,2,{"c":null}]}',
    '{ "a": 1 }\n',
    '{"a": 1,}',
    '{"a": 1 , }  ',
    '{\n\t"a": 1\n}\n',
    '{\r\n    "a": 1, // one\r\n    "b": 2 // two\r\n}\r\n',
    '{\n  "a": 1, // one\n  // the end\n}\n',
    '{\n  "a": 1 /* of\n  two lines */\n}\n',
    '{\n"a": 1\n}',
    '{\n   "a": 1,\n     "b": 2,\n "c": 3}',
    '\n\n  {\n    "a": 1\n  }\n\n// after\n',
    '{"hooks":{}}',
    '{"hooks": { }}',
    '{\n  "hooks": {\n  }\n}\n',
    '{\n  "hooks": { // mine\n  }\n}\n',
    '{"hooks":{"PreToolUse":[]}}',
    '{"hooks":{"PreToolUse":[ ],"Stop":[/* */]}}',
    '{\n  "hooks": {\n    "Stop": [\n      // nothing\n    ]\n  }\n}',
    '{"hooks":{"PreToolUse":[{"hooks":[]}]}}',
    '{"hooks":{"Stop":[1, "two", null]}}',
    '{"hooks":{"Stop":[{"hooks":"no list"}, {"hooks":[{"type":"command"}]}]}}',
    '{"hooks":{"Stop":[]},"hooks":{"Stop":[1]}}',
    '{"hooks":7,"hooks":{"Stop":[],"Stop":[]}}',
    '{"\\u0068ooks":{"St\\u006fp":[1 /* a */ , /* b */ // c\n]}}',
    '{"hooks":{"Notification":[{"hooks":[{"type":"command","command":"x"}]}]}, "a": "\\"hooks\\": {"}',
    '{"a": "// no comment", "b": "/* none */", "c": "\\\\", "d": "\\""}',
    '{"a": "\u00fc\u20ac\U0001f600", "\u00e9": "\\ud83d\\ude00"}',
    '{"a": "\udcff\udc80"}',
    '{"a": "\x000\x00", "hooks": {"Stop": [{"hooks": ["\x001\x00"]}]}}',
    '{"a":1}\r',
    '{\r  "a": 1\r}\r',
    '{"a":' + "[" * 150 + "]" * 150 + "}",
    json.dumps({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [OTHER]}], "X": []}, "b": {}}, indent=2),
    json.dumps({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [OTHER]}]}}, indent="\t").replace("\n", "\r\n"),
    json.dumps({"hooks": {"Stop": [{"hooks": [OTHER, OTHER]}]}}, separators=(",", ":")),
    '{\n  "hooks":\n  {\n    "Stop":\n    [\n      {\n        "hooks": [ {"command": "x"} ]\n      } // last\n    ]\n  }\n}\n',
    '{\n  "hooks": {\n    "Stop": [\n      {"hooks": []}, // last, with a comma\n    ], // and here\n  }, /* too */\n}\n',
)


@table("text", NASTY)
def test_a_file_is_byte_identical_after_install_and_uninstall(text: str) -> None:
    after = installed(text, wanted(), ours)
    assert there(after) == wanted()
    assert removed(after, ours) == text


@table("text", NASTY)
def test_installed_twice_changes_nothing_and_other_options_replace_ours(text: str) -> None:
    first = installed(text, wanted(), ours)
    assert installed(first, wanted(), ours) == first
    other = wanted(f"{COMMAND} --observe")
    second = installed(first, other, ours)
    assert there(second) == other
    assert removed(second, ours) == text


# Any file

_SPACE = st.sampled_from(("", "", "", " ", "  ", "\t", "\n", "\n  ", "\r\n\t", "\n\n    "))
_COMMENT = st.sampled_from(("/* c */", "/**/", "// c\n", "//\r\n", "/* a\n b */", '// "hooks": {\n', "/* { */"))
_TRIVIA = st.one_of(_SPACE, _SPACE, _SPACE, st.builds("".join, st.tuples(_SPACE, _COMMENT, _SPACE)))
_KEYS = st.sampled_from(('"a"', '"b"', '"c // d"', '"\\u0061"', '"\u00fc"', '"hooks"', '"Stop"', '"PreToolUse"'))
_SCALARS = st.sampled_from(('"x"', "1", "-0.5e+3", "true", "null", '"// x"', '"\\"]}"', '"\\\\"', '"\u20ac"', '"/*"'))


def _listed(opened: str, parts: list[str], trivia: list[str], closed: str, *, comma: bool) -> str:
    space = iter(trivia)
    text = opened + next(space)
    for n, part in enumerate(parts):
        text += part + next(space)
        if n < len(parts) - 1 or comma:
            text += "," + next(space)
    return text + closed


@st.composite
def arrays(draw: st.DrawFn, elements: st.SearchStrategy[str]) -> str:
    parts = draw(st.lists(elements, max_size=3))
    trivia = draw(st.lists(_TRIVIA, min_size=8, max_size=8))
    return _listed("[", parts, trivia, "]", comma=bool(parts) and draw(st.booleans()))


@st.composite
def objects(draw: st.DrawFn, members: st.SearchStrategy[tuple[str, str]]) -> str:
    parts = [f"{key}{draw(_TRIVIA)}:{draw(_TRIVIA)}{value}" for key, value in draw(st.lists(members, max_size=3))]
    trivia = draw(st.lists(_TRIVIA, min_size=8, max_size=8))
    return _listed("{", parts, trivia, "}", comma=bool(parts) and draw(st.booleans()))


_VALUES = st.recursive(_SCALARS, lambda inner: arrays(inner) | objects(st.tuples(_KEYS, inner)), max_leaves=6)
_COMMANDS = st.sampled_from(('"x"', '"their hook"', f'"{COMMAND}"', f'"{COMMAND} --observe"'))
_HANDLERS = objects(
    st.one_of(st.tuples(st.just('"command"'), _COMMANDS), st.tuples(st.just('"type"'), st.just('"command"')))
)
_OTHERS = objects(st.tuples(st.just('"command"'), st.sampled_from(('"x"', '"their hook"'))))


def _files(handlers: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    groups = objects(
        st.one_of(st.tuples(st.just('"matcher"'), _SCALARS), st.tuples(st.just('"hooks"'), arrays(handlers)))
    )
    events = st.tuples(st.sampled_from(('"Stop"', '"PreToolUse"', '"Other"')), arrays(groups))
    hooks = st.tuples(st.sampled_from(('"hooks"', '"h\\u006foks"')), objects(events))
    root = objects(st.one_of(hooks, st.tuples(st.sampled_from(('"a"', '"b"')), _VALUES)))
    return st.builds(
        "".join, st.tuples(st.sampled_from(("", "", "\ufeff")), _TRIVIA, st.one_of(root, root, st.just("")), _TRIVIA)
    )


@given(_files(_OTHERS))
@settings(max_examples=100, deadline=None)
def test_any_file_is_byte_identical_after_install_and_uninstall(text: str) -> None:
    after = installed(text, wanted(), ours)
    assert there(after) == wanted()
    assert installed(after, wanted(), ours) == after
    assert removed(after, ours) == text


@given(_files(_HANDLERS))
@settings(max_examples=100, deadline=None)
def test_whatever_stands_in_a_file_uninstall_takes_out_ours_and_nothing_else(text: str) -> None:
    left = removed(text, ours)
    if left is not None:
        root = parse(left)
        assert not list(entries(root, ours))
    after = installed(text, wanted(), ours)
    assert there(after) == wanted()
    assert len(list(entries(parse(after), ours))) == len(EVENTS)


# What a person, or the client, changes in between


def test_a_file_that_was_not_there_is_gone_again() -> None:
    for new_folder in (False, True):
        text = installed(None, wanted(), ours, new_folder=new_folder)
        assert json.loads(text)["hooks"].keys() == set(EVENTS)
        assert removed(text, ours) is None
        assert folder_is_ours(text) is new_folder


def test_what_was_added_in_between_stays() -> None:
    text = installed('{\n  "a": 1\n}\n', wanted(), ours)
    text = text.replace('"a": 1', '"a": 2, // two\n  "b": []')
    text = text.replace('"hooks": {\n', '"hooks": {\n    "Mine": [], // mine\n', 1)
    assert removed(text, ours) == '{\n  "a": 2, // two\n  "b": [],\n  "hooks": {\n    "Mine": [] // mine\n  }\n}\n'


def test_a_file_made_by_us_stays_when_something_was_added() -> None:
    text = installed(None, wanted(), ours)
    assert removed(text.replace("{\n", '{\n    "model": "x",\n', 1), ours) == '{\n    "model": "x"\n}\n'
    assert removed(text + "// mine\n", ours) == "{\n}\n// mine\n"
    assert removed(text.replace("{\n", "{ // mine\n", 1), ours) == "{ // mine\n}\n"


# What is refused


@table(
    ("text", "at"),
    [
        ("{", (1, 2)),
        ('{"a" 1}', (1, 6)),
        ("{'a': 1}", (1, 2)),
        ('{"a": 1\n "b": 2}', (2, 2)),
        ('\ufeff{"a": 1]', (1, 8)),
        ('{"a": 1}\r\n}', (2, 1)),
        ("{,}", (1, 2)),
        ('{"a": NaN}', (1, 7)),
        ('{"a": 01}', (1, 7)),
        ('{"a": "x\ny"}', (1, 7)),
        ('{"a": "\\x"}', (1, 7)),
        ("/* no end", (1, 1)),
        ("# no comment\n{}", (1, 1)),
        ("[]", (1, 1)),
        ('"text"', (1, 1)),
        ('{"hooks": []}', (1, 11)),
        ('{"hooks": null}', (1, 11)),
        ('{\n  "hooks": {"Stop": {}}\n}', (2, 21)),
        ("[" * 5_000, (1, 201)),
    ],
)
def test_what_cannot_be_edited_is_refused_with_line_and_column(text: str, at: tuple[int, int]) -> None:
    with pytest.raises(NotJson) as refused:
        installed(text, wanted(), ours)
    assert (refused.value.line, refused.value.column) == at
    assert str(refused.value).startswith(f"line {at[0]}, column {at[1]}: ")
