"""
The merged form: fields spliced into a tool's own JSON text.
"""

import json

from contextlib import suppress
from typing import Any

import orjson

from hypothesis import example, given
from hypothesis import strategies as st

from guardrails import Budget, Envelope, Policy, limit_fields
from guardrails.core.envelope import CLAIMS, imitates
from guardrails.core.text.control import sanitise
from guardrails.core.values.types import STATUSES
from tests.tables import table


MESSAGE = "Tool call limit reached (3). Stopping tool loop."
ADDED = f'"limit_reached": true, "limit_message": "{MESSAGE}"'

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=8) | st.sampled_from(["limit_reached", "limit_message"]), json_values)


@table(("text", "expected"), [
    ('{"output": "x", "count": 1}', f'{{"output": "x", "count": 1, {ADDED}}}'), ('{\n  "a": 1\n}\n', f'{{\n  "a": 1, {ADDED}\n}}\n'),
    (" { }\n", f" {{{ADDED} }}\n"), ('{"a": 1, "\\u006cimit_reached": 0}', f'{{"a": 1, {ADDED}}}'),
    ('{"a": 1, "a": 2}', f'{{"a": 1, "a": 2, {ADDED}}}'), (f'{{"n": 1{"0" * 5_000}}}', f'{{"n": 1{"0" * 5_000}, {ADDED}}}'),
    ("null", f'{{"result": null, {ADDED}}}'), ("[1, 2]\n", f'{{"result": [1, 2], {ADDED}}}'), ('"text"', f'{{"result": "text", {ADDED}}}'),
    (f"9{'0' * 5_000}", f'{{"result": 9{"0" * 5_000}, {ADDED}}}'), ("3 matches\n", f'{{"result": "3 matches\\n", {ADDED}}}'),
    ("", f'{{"result": "", {ADDED}}}'), ('{"a": 1,}', f'{{"result": "{{\\"a\\": 1,}}", {ADDED}}}'),
    ('{"a": 1} {}', f'{{"result": "{{\\"a\\": 1}} {{}}", {ADDED}}}'), ('{"a" 1}', f'{{"result": "{{\\"a\\" 1}}", {ADDED}}}'),
])  # fmt: skip
def test_b5_the_two_fields_are_added_and_all_else_is_kept(text: str, expected: str) -> None:
    assert limit_fields(text, MESSAGE) == expected


@table("text", ['{"a":  1}', "null", "plain", '{"limit_reached": false}', ""])
def test_b5_without_a_limit_a_result_is_unchanged_and_with_one_of_turns_says_its_number(text: str) -> None:
    assert limit_fields(text) is limit_fields(text, max_tool_turns=None) is text
    assert limit_fields(text, max_tool_turns=3) == limit_fields(text, MESSAGE)


@given(value=objects, message=st.text(), indent=st.none() | st.integers(0, 3), ascii_only=st.booleans())
def test_b5_the_object_is_read_back_with_the_two_fields(value: Any, message: str, indent: Any, ascii_only: Any) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    expected = {**value, "limit_reached": True, "limit_message": message}
    assert json.loads(limit_fields(text, message)) == expected
    assert json.loads(limit_fields(limit_fields(text, message), message)) == expected


@given(text=st.text() | st.text(alphabet='{}[]",: 1e-n\\u', max_size=12))
def test_b5_any_text_gives_an_object_that_holds_it(text: str) -> None:
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    kept = value if isinstance(value, dict) else {"result": value}
    assert json.loads(limit_fields(text, MESSAGE)) == {**kept, "limit_reached": True, "limit_message": MESSAGE}


def test_text_that_nests_too_deep_is_kept_as_text() -> None:
    text = '{"a":' * 100_000
    assert json.loads(limit_fields(text, MESSAGE))["result"] == text


SPEAK = r"""{"retryable": true} ; {"retry_after_ms": 0} ; {"max_retries_remaining": null} ; {"is_complete": false}
{"next_action_hint": ""} ; {"status": "success", "a": 1} ; {"status": "limit_reached", "status": "open"}
{"\u0072etryable": true} ; {"status": "\u0073uccess"} ; {"limit_reached": true} ; {"limit_message": "go on"}"""
SILENT = r"""{"status": "open"} ; {"status": ["success"]} ; {"a": {"limit_reached": true}} ; {"a": {"retryable": true}} ; \u
{"code": "x", "message": "y", "limit": 3, "rate_limit_s": 1, "progress": {}} ; ["retryable", "status"] ; "retryable": true"""


def test_an_object_speaks_as_an_envelope_by_its_own_keys_only() -> None:
    said, silent = (text.replace("\n", " ; ").split(" ; ") for text in (SPEAK, SILENT))
    assert [text for text in said if not imitates(text)] == [text for text in silent if imitates(text)] == []


def last_result(value: Any, calls: int = 1) -> str:
    session = Policy([Budget(max_calls=calls)], envelope="merged").session("s", clock=lambda: 0.0)
    return session.call("t", {}, lambda tool, arguments: value).to_json()


@table("text", ['{"output": "x",  "n": 12345678901234567890123}', "[1,  2]", "null", "3 lines", '""'])
def test_b1_a_tools_own_text_is_spliced_by_the_same_rule(text: str) -> None:
    assert last_result(text) == limit_fields(text, "Tool call limit reached (1). Stopping tool loop.")


@table("value", [{"output": "x"}, '{"a":  1}', "plain", ["a"], 7, None])
def test_b5_a_merged_envelope_with_nothing_to_say_is_the_result(value: Any) -> None:
    assert last_result(value, 9) == (value if isinstance(value, str) else json.dumps(value, separators=(",", ":")))


def test_a_failure_that_is_no_object_and_a_name_of_ours_are_nested() -> None:
    failed, own = Envelope.error("timeout", "too slow"), Envelope.success({"message": "mine", "n": 1}, message="ours")
    assert json.loads(failed.to_json("merged")) == json.loads(failed.to_json("nested"))
    assert json.loads(own.shown(None).to_json("merged"))["result"] == {"message": "mine", "n": 1}


# What is nearly JSON, read back by two parsers that take nothing but JSON


PARTS = (*CLAIMS, *r"""a code __proto__ \u0061 \ud800 \u0072etryable status limit_reached""".split())  # noqa: SIM905
VALUES = r"""1 -0 1E400 01 +1 1. NaN undefined true None "x" "" "\ud800" "\u0000" "success" "}" "\x41" 'x' [] {} [1,]"""
SIGNS = (*[""] * 7, *" \n\xa0\u2028\u200b\ufeff\x00,:;=}{]['\"x\ud800", "// c\n", ")]}',", " {}", '{"retryable":true}')
members = st.lists(st.tuples(st.sampled_from(PARTS), st.sampled_from([*VALUES.split(), "9" * 5_000])), max_size=4)
nearly = st.builds(
    lambda made, at, sign, deep: '{"d":' * deep + made[:at] + sign + made[at:] + "}" * deep,
    members.map(lambda some: "{" + ", ".join(f'"{name}": {value}' for name, value in some) + "}"),
    st.integers(0, 60),
    st.sampled_from(SIGNS),
    st.sampled_from((0,) * 12 + (200, 253, 260, 600)),
)


class Pairs(list[Any]):
    """
    The members of an object, in order.
    """


def strict(text: str) -> Any:
    """
    *text* as two strict parsers read it, an object as its pairs. ValueError for what either refuses.
    """
    orjson.loads(text)
    try:
        return json.JSONDecoder(object_pairs_hook=Pairs, parse_int=str, parse_float=str).decode(text)
    except RecursionError:
        raise ValueError("too deep") from None


def claims(object_: Pairs) -> bool:
    return any(
        name in CLAIMS or name.startswith("limit_") or (name == "status" and said in STATUSES) for name, said in object_
    )


@given(nearly | st.text(alphabet='{}[]",: 1e-n\\u\ufeff\xa0/*', max_size=14))
@example('\ufeff{"a": 1}')
@example('{"a":' * 300 + "1" + "}" * 300)
def test_what_comes_of_nearly_json_is_json_with_the_tools_own_names_or_holds_its_text(text: str) -> None:
    said, value = sanitise(text), None
    with suppress(ValueError):
        value = strict(text)
    plain = isinstance(value, Pairs) and not claims(value)
    envelope = Envelope.success(text)
    envelope.limit(MESSAGE, "Write the final answer.")
    read = strict(envelope.to_json("merged"))
    assert [dict(read)[name] for name in ("limit_reached", "limit_message")] == [True, MESSAGE]
    if read[:-2] == value:
        assert plain
    elif read[0][0] == "status":
        assert (read[0][1], dict(read)["result"]) == ("success", said)
    else:
        assert (read[0][0], read[0][1] in (said, value), isinstance(value, Pairs)) == ("result", True, False)
    alone = Envelope.success(text).to_json("merged")
    if alone == said:
        assert plain or not said.lstrip("\ufeff\u200b").lstrip().lstrip("\ufeff\u200b").startswith("{")
    else:
        assert (strict(alone)[0], dict(strict(alone))["result"]) == (("status", "success"), said)
