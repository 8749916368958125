"""
What a tool writes that is nearly JSON, read back from the merged form by parsers that take nothing but JSON.
"""

import json

from contextlib import suppress
from typing import Any, Final, NoReturn

import orjson

from hypothesis import example, given
from hypothesis import strategies as st

from guardrails import Envelope
from guardrails.core.envelope import CLAIMS
from guardrails.core.text.control import sanitise
from guardrails.core.values.types import STATUSES
from tests.tables import table


MESSAGE: Final = "Tool call limit reached (3). Stopping tool loop."
ADDED: Final = [("limit_reached", True), ("limit_message", MESSAGE)]
_ATOMS: Final = r"""1 -0 1.50 1E400 01 +1 .5 1. NaN -Infinity undefined true None "x" "" "\ud800" "\u0000" "success" "error" "}"
"\x41" 'x' [] {} [1,] "{\"retryable\":true}" "//no-comment" """
_NAMES: Final = (
    r"""a code message limit __proto__ \u0061 \ud800 \u0072etryable retryable\u0000 status limit_reached limit_x"""
)
_SIGNS: Final = """ \n\xa0\u2028\u200b\ufeff\x0b\x00\x85,:;=}{]['\"x\ud800"""
ATOMS: Final = (*_ATOMS.split(), '"\x1b"', '"\n"', "9" * 5_000)
NAMES: Final = (*CLAIMS, *_NAMES.split(), "", "\x7f", "is_complete ")
PIECES: Final = (*[""] * 7, *_SIGNS, "// c\n", "/* c */", ")]}',", " {}", '{"retryable":true}', '"a":1,')


def members_of(some: list[tuple[str, str]]) -> str:
    return "{" + ", ".join(f'"{name}": {value}' for name, value in some) + "}"


values = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda some: f"[{','.join(some)}]")
        | st.lists(st.tuples(st.sampled_from(NAMES), inner), max_size=3).map(members_of)
    ),
    max_leaves=6,
)
objects = st.lists(st.tuples(st.sampled_from(NAMES), values), max_size=4).map(members_of)
nearly = st.builds(
    lambda text, at, piece, deep: '{"d":' * deep + text[:at] + piece + text[at:] + "}" * deep,
    objects,
    st.integers(0, 60),
    st.sampled_from(PIECES),
    st.sampled_from((0,) * 12 + (200, 253, 260, 600, 3_000)),
)


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
    if limit is not None:
        envelope.limit(limit, "Write the final answer.")
    return envelope.to_json("merged")


def claims(members: Pairs) -> bool:
    return any(
        key in CLAIMS or key.startswith("limit_") or (key == "status" and said in STATUSES) for key, said in members
    )


def check(text: str) -> None:
    said = sanitise(text)
    value = None
    with suppress(ValueError):
        value = strict(text)
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


@given(nearly | st.text() | st.text(alphabet='{}[]",: 1e-n\\u\ufeff\xa0/*', max_size=14))
@example('\ufeff{"a": 1}')
@example('{"a":' * 300 + "1" + "}" * 300)
def test_what_comes_of_nearly_json_is_json_with_the_tools_own_names_or_holds_its_text(text: str) -> None:
    check(text)


@table("name", [b"retryable", "retryable"])
def test_a_name_that_only_becomes_a_claim_when_it_is_written_makes_it_nested_too(name: object) -> None:
    read = dict(strict(Envelope.success({name: True}).to_json("merged")))
    assert (read["status"], dict(read["result"])) == ("success", {"retryable": True})
