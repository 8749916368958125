"""
What a tool writes that is nearly JSON, read back from the merged form by parsers that take nothing but JSON.
"""

import json
import random

from collections.abc import Callable
from typing import Any, Final, NoReturn

import orjson
import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Envelope
from guardrails.core.envelope.merged import CLAIMS
from guardrails.core.result.redaction import sanitise
from guardrails.core.values.types import STATUSES


MESSAGE: Final = "Tool call limit reached (3). Stopping tool loop."
ADDED: Final = [("limit_reached", True), ("limit_message", MESSAGE)]
SPACES: Final = (
    "",
    " ",
    "\n",
    "\t",
    "\r",
    "\xa0",
    "\u2028",
    "\u3000",
    "\u200b",
    "\ufeff",
    "\x0b",
    "\x0c",
    "\x00",
    "\x85",
)
NAMES: Final = (
    *("a", "", "b c", "a\\u0000", "\\ud800", "\\u0061", "ü", "\x7f", "code", "message", "limit", "__proto__"),
    *(
        *CLAIMS,
        "status",
        "limit_reached",
        "limit_message",
        "limit_x",
        "\\u0072etryable",
        "retryable\\u0000",
        "is_complete ",
    ),
)
SCALARS: Final = (
    *("1", "-0", "1.50", "1e5", "1E400", "9" * 40, "9" * 400, "9" * 5_000, "01", "+1", ".5", "1.", "0x1", "1_0", "--1"),
    *("true", "false", "null", "True", "None", "NaN", "-Infinity", "Infinity", "nan", "undefined", "tru"),
    *('"x"', '""', '"\\ud83d\\ude00"', '"\\ud800"', '"\\u0000"', '"\x1b"', '"\n"', '"\\x41"', '"a', "'x'", "x"),
    *(
        '"success"',
        '"error"',
        '"{\\"retryable\\": true}"',
        '"// no comment"',
        '"}"',
        '"\\\\"',
        "[]",
        "{}",
        "[1,]",
        "{,}",
        "[[]",
    ),
)
AFTER: Final = (
    "",
    "",
    "",
    "",
    "\n",
    " {}",
    "[]",
    "x",
    "}",
    ",",
    "\x00",
    '{"retryable":true}',
    "// c",
    "\n\n",
    "\u2029",
    "NaN",
    "\ud800",
)
BEFORE: Final = (
    "",
    "",
    "",
    "",
    "",
    "\ufeff",
    "\xa0",
    " \n",
    "// c\n",
    "/* c */",
    ")]}',",
    "#",
    "\x1e",
    "\ud800",
    "data: ",
)


def adversarial(draw: Callable[[Any], Any]) -> str:
    """
    An object or a list, nearly; *draw* chooses one of several.
    """

    def value(depth: int) -> str:
        if depth < 3 and draw((False, False, True)):
            return written(depth + 1)
        return str(draw(SCALARS if draw((False, True)) else SCALARS[:4]))

    def written(depth: int) -> str:
        odd = draw((False, False, True))

        def space() -> str:
            return str(draw(SPACES)) if odd and draw((False, True)) else ""

        def member() -> str:
            quote = draw(("'", "")) if odd and draw((False, False, True)) else '"'
            colon = draw((":", ":", "=", "::", "")) if odd else ":"
            return f"{quote}{draw(NAMES)}{quote}{space()}{colon}{space()}{value(depth)}"

        comma = draw((",", ",", ",,", ";", "\n", "/**/,")) if odd else ","
        members = [f"{space()}{member()}{space()}" for _ in range(draw((0, 1, 1, 2, 3)))]
        end = comma if members and odd and draw((False, True)) else ""
        opening, closing = draw(("{}", "{}", "{}", "[]")) if depth else draw(("{}", "{}", "{}", "{}", "[]"))
        if opening == "[":
            members = [value(depth) for _ in members]
        return f"{opening}{comma.join(members)}{end}{space()}{closing}"

    deep = draw((0,) * 12 + (200, 253, 260, 600, 1_100, 3_000))
    inner = written(0)
    text = '{"d":' * deep + inner + "}" * deep if draw((True, False)) else f'{{"d":{"[" * deep}{inner}{"]" * deep}}}'
    return f"{draw(BEFORE)}{text if deep else inner}{draw(AFTER)}"


def refused(name: str) -> NoReturn:
    raise ValueError(name)


def strict(text: str) -> Any:
    """
    *text* as two parsers read it that take nothing but JSON: an object as its pairs. ValueError for what either refuses.
    """
    orjson.loads(text)
    made = json.JSONDecoder(object_pairs_hook=Pairs, parse_constant=refused, parse_int=str, parse_float=str)
    try:
        return made.decode(text)
    except RecursionError:
        raise ValueError("too deep") from None


class Pairs(list[Any]):
    """
    The members of an object, in order.
    """


def merged(text: str, limit: str | None) -> str:
    envelope = Envelope.success(text)
    envelope.merged = True
    if limit is not None:
        envelope.limit(limit, "Write the final answer.")
    return envelope.to_json()


def claims(members: Pairs) -> bool:
    return any(
        key in CLAIMS or key.startswith("limit_") or (key == "status" and said in STATUSES) for key, said in members
    )


def check(text: str) -> None:
    said = sanitise(text)
    try:
        value = strict(text)
    except ValueError:
        value = None
        plain = False
    else:
        plain = isinstance(value, Pairs) and not claims(value)
    read = strict(merged(text, MESSAGE))
    assert isinstance(read, Pairs)
    last = dict(read)
    assert [(key, last[key]) for key, _ in ADDED] == ADDED
    if read[: -len(ADDED)] == value:
        assert plain
    elif read[0][0] == "status":
        assert (read[0][1], last["result"]) == ("success", said)
    else:
        assert (read[0][0], read[1:]) == ("result", ADDED)
        assert read[0][1] in (said, value)
        assert not isinstance(value, Pairs)
    alone = merged(text, None)
    if alone == said:
        opened = said.lstrip("\ufeff\u200b").lstrip().lstrip("\ufeff\u200b").startswith("{")
        assert plain or not opened
    else:
        nested = strict(alone)
        assert (nested[0], dict(nested)["result"]) == (("status", "success"), said)


@given(st.data())
def test_what_comes_of_nearly_json_is_json_with_the_tools_own_names_or_holds_its_text(data: Any) -> None:
    check(adversarial(lambda choices: data.draw(st.sampled_from(choices))))


@given(st.text() | st.text(alphabet='{}[]",: 1e-n\\u\ufeff\xa0/*', max_size=14))
def test_so_does_any_text(text: str) -> None:
    check(text)


@pytest.mark.parametrize("count", [2_000, pytest.param(20_000, marks=pytest.mark.system)])
def test_adversarial_texts_are_read_by_strict_parsers(count: int, long: bool) -> None:
    count *= 5 if long else 1
    drawn = random.Random(count)
    for _ in range(count):
        text = adversarial(drawn.choice)
        try:
            check(text)
        except (AssertionError, ValueError) as error:
            raise AssertionError(f"{text[:2_000]!r}") from error


@pytest.mark.parametrize(
    "text",
    [
        '\ufeff{"a": 1}',
        '\xa0{"retryable": true}',
        '{"a": 1,}',
        '{"a": NaN}',
        '{"a": 1e999}',
        '{"a": "\\ud800"}',
        '{"a": 1} {"b": 2}',
        "{'a': 1}",
        '{"a": 1 /* one */}',
        '{"a":' * 300 + "1" + "}" * 300,
        '{"limit_reached": false, "a": 1}',
        '{"limit_per_page": 3}',
        '{"a\x7f": 1, "a": 2}',
    ],
)
@pytest.mark.parametrize("limit", [None, MESSAGE])
def test_what_is_nearly_json_is_nested(text: str, limit: str | None) -> None:
    read = dict(strict(merged(text, limit)))
    assert (read["status"], read["result"]) == ("success", sanitise(text))


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ({1: 2}, "1"),
        ({"code": "x", "message": "y", "limit": 3}, "code"),
        ('{"code": "x", "rate_limit_s": 3}', "code"),
    ],
)
def test_an_honest_object_keeps_its_names_at_the_top(value: Any, name: str) -> None:
    envelope = Envelope.success(value)
    envelope.merged = True
    assert name in dict(strict(envelope.to_json()))


class Named:
    def __str__(self) -> str:
        return "retryable"


@pytest.mark.parametrize("name", [b"retryable", Named()])
def test_a_name_that_only_becomes_a_claim_when_it_is_written_makes_it_nested_too(name: object) -> None:
    envelope = Envelope.success({name: True})
    envelope.merged = True
    assert json.loads(envelope.to_json()) == {"status": "success", "result": {"retryable": True}}
