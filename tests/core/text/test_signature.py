"""
Which calls and results are the same: laws, golden vectors, and arguments that are hostile.
"""

import ctypes
import enum
import json
import re
import unicodedata

from collections import OrderedDict, defaultdict
from collections.abc import Iterator
from dataclasses import InitVar, dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, NoReturn
from uuid import UUID

from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, SecretStr

from guardrails.core.text import signature
from guardrails.core.text.signature import canonical, masked_result_hash, parse_arguments, result_hash, sign
from tests.core.text.test_truncation import VALUES
from tests.tables import table


GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "signature.json").read_text(encoding="utf-8"))
BUILDERS: dict[str, Any] = {
    "float": float, "int": int, "bytes": bytes.fromhex, "decimal": Decimal, "datetime": datetime.fromisoformat,
    "tuple": lambda items: tuple(map(built, items)), "set": lambda items: set(map(built, items)),
    "frozenset": lambda items: frozenset(map(built, items)), "object": lambda _: object(),
    "dict": lambda pairs: {built(key): built(item) for key, item in pairs},
}  # fmt: skip


def built(value: Any) -> Any:
    """
    A golden argument as Python's: `{"$": type, "of": content}` stands for what JSON cannot say.
    """
    if isinstance(value, list):
        return [built(item) for item in value]
    if isinstance(value, dict):
        return BUILDERS[value["$"]](value.get("of")) if "$" in value else {k: built(v) for k, v in value.items()}
    return value


@table("vector", GOLDEN["calls"])
def test_a_signature_is_what_it_always_was(vector: dict[str, Any]) -> None:
    digest, sig, encoded = sign(vector["tool"], built(vector["arguments"]))
    wanted = (vector["signature"], vector["sig"], vector["canonical"])
    assert (digest and digest.hex(), sig, encoded and encoded.decode()) == wanted


@table("vector", GOLDEN["results"])
def test_a_result_hash_is_what_it_always_was(vector: dict[str, Any]) -> None:
    text = vector["text"] * vector["times"]
    found = {(masked_result_hash(same), result_hash(same, vector["length"])) for same in (text, text.encode())}
    assert found == {(vector["masked"], vector["hash"])}


def test_a_result_is_told_apart_by_its_head_and_its_length_and_an_error_by_its_words_alone() -> None:
    head = "x" * signature.RESULT_HEAD
    assert result_hash("3 failed") != result_hash("2 failed")
    assert result_hash(head + "a") == result_hash(head + "b") != result_hash(head + "ab")
    assert result_hash(head, signature.RESULT_HEAD + 1) == result_hash(head + "a")
    assert masked_result_hash(head + "a") == masked_result_hash(head + "bc")
    assert masked_result_hash("line 9: boom") == masked_result_hash("line 10: boom") != masked_result_hash("line 9: no")


# Plain values


text = st.text(st.sampled_from('aB1 \n"\\é\u0301e都😀\x00\x7f\u1100\u1161\u11a8'), max_size=6) | st.text(max_size=6)
numbers = st.integers(-(2**63), 2**64 - 1) | st.integers(-2, 2) | st.floats(allow_nan=False, allow_infinity=False)
plain = st.recursive(
    st.none() | st.booleans() | numbers | text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=12,
)


def mapped(value: Any, change: Any) -> Any:
    """
    *value* with *change* made to each dict, list and scalar in it, inside out; keys are changed too.
    """
    if isinstance(value, dict):
        return change({change(key): mapped(item, change) for key, item in value.items()})
    return change([mapped(item, change) for item in value] if isinstance(value, list) else value)


def keys_stay_apart(value: Any) -> bool:
    if isinstance(value, dict):
        names = {unicodedata.normalize("NFC", key) for key in value}
        return len(names) == len(value) and all(map(keys_stay_apart, value.values()))
    return not isinstance(value, list) or all(map(keys_stay_apart, value))


@table("change", [
    lambda part: dict(reversed(part.items())) if isinstance(part, dict) else part,
    lambda part: float(part) if type(part) is int and float(part) == part else part,
    lambda part: int(part) if isinstance(part, float) and part.is_integer() else part,
    lambda part: unicodedata.normalize("NFD", part) if isinstance(part, str) else part,
    # Values that only the slower ways take.
    lambda part: tuple(part) if isinstance(part, list) else part,
    lambda part: OrderedDict(part) if isinstance(part, dict) else part,
])  # fmt: skip
@given(plain)
def test_a6_the_signature_is_blind_to_what_makes_no_difference(change: Any, value: Any) -> None:
    assume(keys_stay_apart(value))
    encoded = canonical(value)
    assert encoded is not None
    assert canonical(mapped(value, change)) == canonical(json.loads(encoded)) == encoded
    assert canonical([value, 1.0, OrderedDict()]) == b"[%b,1,{}]" % encoded
    assert sign("t", parse_arguments(json.dumps(value))[0]) == sign("t", value)


def test_tool_and_arguments_cannot_run_into_each_other_and_beyond_8_kib_text_is_signed_as_it_is() -> None:
    asked = [("ab", "c"), ("a", "bc"), ("a", "{}"), ("a{}", ""), ("a", "b"), ("b", "a")]
    assert len({sign(*each)[0] for each in asked}) == len(asked)
    composed, apart, long = "\u00e9", "e\u0301", {"q": "x" * 8_192}
    assert sign("t", {"q": composed}) == sign("t", {"q": apart})
    assert sign("t", {**long, "n": composed}) != sign("t", {**long, "n": apart}) == sign("t", {"n": apart, **long})


@table(("written", "value", "problem"), [
    *((text, {}, None) for text in ("", " \n", "{}")), ("null", None, None), ('{"a": 1, "a": 2}', {"a": 2}, None),
    ('{"n": 18446744073709551617}', {"n": 2**64 + 1}, None), ('{"n": -Infinity}', {"n": float("-inf")}, None),
    (r'{"q": "\ud83d\ude00 \ud800"}', {"q": "😀 \ud800"}, None), ('"free text"', "free text", None),
    ('{"a": }', None, "arguments are not JSON: expecting value (line 1 column 7)"),
    ('{"a": 1}\n}', None, "arguments are not JSON: extra data (line 2 column 1)"),
    ("[" * 100_000, None, "nested too deeply"), ("1" * 5_000, None, "too many digits"),
])  # fmt: skip
def test_argument_text_is_read_as_json_or_comes_back_with_its_problem(written: str, value: Any, problem: Any) -> None:
    read, said = parse_arguments(written)
    assert (read, said and problem in said) == ((written, True) if problem else (value, None))


# What JSON cannot say: its form is that of its plain copy, or none


class Color(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    ONE = 1


class Str(str):
    __slots__ = ()


@dataclass
class Point:
    x: Any
    y: Any = 0
    seen: InitVar[int] = 0


class Query(BaseModel):
    model_config = ConfigDict(extra="allow")

    text: str
    limit: float = 10


JST = timezone(timedelta(hours=9))
DISTINCT: list[Any] = [
    *json.loads(
        '[null, true, false, 0, "", [], {}, [[]], [{}], [1, 2], [2, 1], {"a": 1, "b": 2}, {"a": 2}, {"a": {"b": 1}}]'
    ),
    *(1, "1", {1}, {"1": 1}, {1: 1}, {(1,): 1}, {None: 1}, {True: 1}, Point(1), Point(2)),
    *(2**64, -(2**64), 10**700, 10**5_000, 1.5, Decimal("2.5"), "\ud800", "\\ud800", "😀", b"\xff", Color.RED),
    *(Query(text="a"), Query(text="a", more=1), UUID(int=1), PurePosixPath("src/**/*.py")),  # type: ignore[call-arg]
    # A time without a zone is another one.
    *(date(2026, 11, 21), time(9, 30), *(datetime(2026, 11, 21, tzinfo=zone) for zone in (None, UTC, JST))),
]


def test_different_things_have_different_forms() -> None:
    forms = {canonical(value) for value in DISTINCT}
    assert None not in forms
    assert len(forms) == len(DISTINCT)


@table(("value", "other"), [
    ((1, (2,)), [1, [2]]), (OrderedDict(b=1, a=2), {"a": 2, "b": 1}), (defaultdict(int, a=1), {"a": 1}),
    (MappingProxyType({"a": 1}), {"a": 1}), ({1, 2.0}, frozenset({2, 1.0})), ({1.0: "a", None: 2}, {None: 2.0, 1: "a"}),
    ({"e\u0301"}, {"é"}), ({("e\u0301", 1): 1}, {("é", 1.0): 1.0}), (2**64, float(2**64)),
    ([2**64, "e\u0301", -0.0, float("nan")], (2.0**64, "é", 0, None)), ({"\ud800": 1, "a": 1.0}, {"a": 1, "\ud800": 1.0}),
    (Point(x=Color.RED, y={1}), {"x": "red", "y": [1.0]}), (Query(text="é", limit=1), Query(text="e\u0301", limit=1.0)),
    ({"d", "a", "c", "b"}, ["a", "b", "c", "d"]), ({1, 2}, [1, 2]), (Level.ONE, True + 0), (Str("red"), b"red"), (float("inf"), None),
])  # fmt: skip
def test_equal_things_have_one_form(value: Any, other: Any) -> None:
    assert canonical(value) is not None
    assert canonical(value) == canonical(other)
    assert canonical({"in": [value]}) == canonical({"in": (other,)})


def fail(*_: object) -> NoReturn:
    raise ValueError("hostile")


def endless() -> Iterator[int]:
    while True:
        yield 1


class HostileHash:
    __eq__ = fail
    __hash__ = fail


class Login(BaseModel):
    password: SecretStr


# Factories, since pytest itself trips over some of these.
UNSIGNABLE: list[Any] = [
    *(HostileHash, object, endless, lambda: fail, lambda: SecretStr("a"), lambda: Login(password=SecretStr("a"))),
    *(lambda: re.compile("a"), lambda: (ctypes.c_void_p * 1)(1)),
]


@table("make", UNSIGNABLE)
def test_what_cannot_be_known_is_unsignable_and_never_raises(make: Any) -> None:
    value = make()
    for arguments in (value, {"a": value}, [1, (value,)], {"a": {1: value}}):
        assert sign("t", arguments) == (None, None, None)


def nested(times: int, wrap: Any, leaf: Any = 1) -> Any:
    for _ in range(times):
        leaf = wrap(leaf)
    return leaf


@table("leaf", [1, 1.0])
def test_what_has_no_end_is_unsignable(leaf: Any) -> None:
    endless_values = list[Any]()
    for holder in (lambda cycle: [cycle], lambda cycle: {"a": b"", "b": cycle}, lambda cycle: (cycle, 1.0)):
        cycle: list[Any] = [leaf]
        cycle.append(holder(cycle))
        endless_values += [cycle, {"a": [cycle]}]
    assert {sign("t", value) for value in endless_values} == {(None, None, None)}


@given(VALUES)
def test_any_value_is_signed_or_unsignable_but_never_raises(value: Any) -> None:
    digest, _, encoded = sign("t", value)
    assert (digest is None) == (encoded is None)
    if encoded is not None:
        json.loads(encoded.decode())
        assert canonical(value) == encoded
