"""
Which calls and results are the same: laws, golden vectors, and arguments that are hostile.
"""

import json
import os
import subprocess
import sys
import unicodedata

from collections import OrderedDict
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from hypothesis import assume, given
from hypothesis import strategies as st

from guardrails.core.text.signature import (
    RESULT_HEAD,
    canonical,
    masked_result_hash,
    parse_arguments,
    result_hash,
    sign,
)
from tests.tables import table


GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "signature.json").read_text(encoding="utf-8"))

BUILDERS: dict[str, Any] = {
    "float": float,
    "int": int,
    "tuple": lambda items: tuple(map(built, items)),
    "set": lambda items: set(map(built, items)),
    "frozenset": lambda items: frozenset(map(built, items)),
    "dict": lambda pairs: {built(key): built(item) for key, item in pairs},
    "bytes": bytes.fromhex,
    "decimal": Decimal,
    "datetime": datetime.fromisoformat,
    "object": lambda _: object(),
}


def built(value: Any) -> Any:
    """
    A golden argument as Python's: `{"$": type, "of": content}` stands for what JSON cannot say.
    """
    if isinstance(value, list):
        return [built(item) for item in value]
    if isinstance(value, dict):
        return BUILDERS[value["$"]](value.get("of")) if "$" in value else {k: built(v) for k, v in value.items()}
    return value


text = st.text(st.sampled_from('aB1 \n"\\é\u0301e都😀\x00\x7f\u1100\u1161\u11a8'), max_size=6) | st.text(max_size=6)
numbers = st.integers(-(2**63), 2**64 - 1) | st.integers(-2, 2) | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | numbers | text
plain = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=12,
)


def mapped(value: Any, change: Any) -> Any:
    """
    *value* with *change* made to each dict, list and scalar in it, inside out; keys are changed too.
    """
    if isinstance(value, dict):
        return change({change(key): mapped(item, change) for key, item in value.items()})
    if isinstance(value, list):
        return change([mapped(item, change) for item in value])
    return change(value)


def model(value: Any) -> Any:
    """
    What the signature is to tell apart, written in another way: hashable, and equal where the values are to be equal.
    """
    if isinstance(value, dict):
        return "dict", frozenset((unicodedata.normalize("NFC", key), model(item)) for key, item in value.items())
    if isinstance(value, list):
        return "list", tuple(model(item) for item in value)
    if isinstance(value, str):
        return "str", unicodedata.normalize("NFC", value)
    return ("bool" if isinstance(value, bool) else "number"), value


def keys_stay_apart(value: Any) -> bool:
    if isinstance(value, dict):
        names = {unicodedata.normalize("NFC", key) for key in value}
        return len(names) == len(value) and all(map(keys_stay_apart, value.values()))
    return not isinstance(value, list) or all(map(keys_stay_apart, value))


@table("vector", GOLDEN["calls"])
def test_a_signature_is_what_it_always_was(vector: dict[str, Any]) -> None:
    digest, sig, encoded = sign(vector["tool"], built(vector["arguments"]))
    if vector["signature"] is None:
        assert (digest, sig, encoded) == (None, None, None)
        return
    assert digest is not None
    assert encoded is not None
    assert encoded.decode() == vector["canonical"]
    assert digest.hex() == vector["signature"]
    assert sig == vector["sig"]


@table("vector", GOLDEN["results"])
def test_a_result_hash_is_what_it_always_was(vector: dict[str, Any]) -> None:
    payload = vector["text"] * vector["times"]
    assert masked_result_hash(payload) == masked_result_hash(payload.encode()) == vector["masked"]
    for same in (payload, payload.encode()):
        assert result_hash(same, vector["length"]) == vector["hash"]


@table(("tool", "other"), [(("ab", "c"), ("a", "bc")), (("a", "{}"), ("a{}", "")), (("a", "b"), ("b", "a"))])
def test_tool_and_arguments_cannot_run_into_each_other(tool: tuple[str, str], other: tuple[str, str]) -> None:
    assert sign(*tool)[0] != sign(*other)[0]


def shuffled(part: Any) -> Any:
    return dict(reversed(part.items())) if isinstance(part, dict) else part


def as_float(part: Any) -> Any:
    return float(part) if type(part) is int and float(part) == part else part


def as_int(part: Any) -> Any:
    return int(part) if isinstance(part, float) and part.is_integer() else part


@table(
    "change",
    [
        shuffled,
        as_float,
        as_int,
        lambda part: unicodedata.normalize("NFC", part) if isinstance(part, str) else part,
        lambda part: unicodedata.normalize("NFD", part) if isinstance(part, str) else part,
        # Values that only the slower ways take.
        lambda part: tuple(part) if isinstance(part, list) else part,
        lambda part: OrderedDict(part) if isinstance(part, dict) else part,
    ],
)
@given(plain)
def test_a6_the_signature_is_blind_to_what_makes_no_difference(change: Any, value: Any) -> None:
    assume(keys_stay_apart(value))
    encoded = canonical(value)
    assert encoded is not None
    assert canonical(mapped(value, change)) == canonical(json.loads(encoded)) == encoded
    assert canonical([value, 1.0, OrderedDict()]) == b"[%b,1,{}]" % encoded
    assert sign("t", parse_arguments(json.dumps(value))[0]) == sign("t", value)


@given(plain, plain)
def test_two_plain_values_are_one_exactly_where_they_should_be(value: Any, other: Any) -> None:
    assume(keys_stay_apart(value) and keys_stay_apart(other))
    assert (canonical(value) == canonical(other)) == (model(value) == model(other))


def nested(times: int, wrap: Any, leaf: Any = 1) -> Any:
    for _ in range(times):
        leaf = wrap(leaf)
    return leaf


def cyclic(holder: Any) -> Any:
    cycle: list[Any] = [1]
    cycle.append(holder(cycle))
    return cycle


@table(
    "holder",
    [
        lambda cycle: [cycle],
        lambda cycle: {"a": b"", "b": cycle},
        lambda cycle: (cycle, 1.0),
        lambda cycle: [cycle] * 2,
    ],
)
@table("leaf", [1, 1.0])
def test_what_has_no_end_is_unsignable(holder: Any, leaf: Any) -> None:
    cycle, doubled = cyclic(holder), nested(100, lambda inner: [inner, inner], leaf)
    for value in (cycle, {"a": [cycle]}, doubled, nested(5, lambda inner: [inner] * 1_000, leaf)):
        assert sign("t", value) == (None, None, None)


@pytest.mark.system
def test_signatures_are_the_same_in_every_process() -> None:
    script = (
        "from guardrails.core.text.signature import sign\n"
        "value = {'s': {'a', 'b', 'c', 1, 2.5, None, (1, 'x'), frozenset({'y', 'z'})}, 'k': {1: 'a', 'b': {'q', 'r'}}}\n"
        "digest, sig, encoded = sign('tool', value)\n"
        "print(digest.hex(), encoded.decode())"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[3])},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(seen) == 1


def test_a_result_is_told_apart_by_its_head_and_its_length_and_an_error_by_its_words_alone() -> None:
    head = "x" * RESULT_HEAD
    assert result_hash("3 failed") != result_hash("2 failed")
    assert result_hash(head + "a") == result_hash(head + "b") != result_hash(head + "ab")
    assert result_hash(head, RESULT_HEAD + 1) == result_hash(head + "a")
    assert masked_result_hash(head + "a") == masked_result_hash(head + "bc")
    assert masked_result_hash("line 9: boom") == masked_result_hash("line 10: boom")
    assert masked_result_hash("line 10: boom") != masked_result_hash("line 9: bang")


@table(
    ("written", "value"),
    [
        *((text, {}) for text in ("", " \n", "{}")),
        ("null", None),
        ('{"a": 1, "a": 2}', {"a": 2}),
        ('{"n": 18446744073709551617}', {"n": 2**64 + 1}),
        ('{"n": -Infinity}', {"n": float("-inf")}),
        (r'{"q": "\ud83d\ude00 \ud800"}', {"q": "😀 \ud800"}),
        ('"free text"', "free text"),
    ],
)
def test_argument_text_is_read_as_json(written: str, value: Any) -> None:
    assert parse_arguments(written) == (value, None)


@table(
    ("written", "problem"),
    [
        ('{"a": }', "arguments are not JSON: expecting value (line 1 column 7)"),
        ('{"a": 1}\n}', "arguments are not JSON: extra data (line 2 column 1)"),
        ("*** Begin Patch", "arguments are not JSON: expecting value (line 1 column 1)"),
        ("[" * 100_000, "arguments are nested too deeply"),
        ("1" * 5_000, "arguments have an integer of more than 4300 digits"),
    ],
)
def test_argument_text_that_cannot_be_read_comes_back_with_its_problem(written: str, problem: str) -> None:
    assert parse_arguments(written) == (written, problem)


def test_beyond_8_kib_text_is_signed_as_it_is() -> None:
    composed, apart = "\u00e9", "e\u0301"
    long = {"q": "x" * 8_192}
    assert sign("t", {"q": composed}) == sign("t", {"q": apart})
    assert sign("t", {**long, "n": composed}) != sign("t", {**long, "n": apart})
    assert sign("t", {**long, "n": apart}) == sign("t", {"n": apart, **long})
