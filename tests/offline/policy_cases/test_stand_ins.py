"""
Stand-ins for recorded texts.
"""

import json

from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.text.signature import canonical, masked_result_hash
from guardrails.offline.policy_cases.stand_ins import MAX_TEXT, StandIns, letters


LONG = "one and two " * 500
SECRET = "sk-abcdefghijklmnopqrstuvwxyz"
TEXTS = st.one_of(
    st.text(max_size=8),
    st.sampled_from(["", "[redacted]", "[redacted] #b", "password: a", "password: b", LONG, LONG + "1", LONG + "2"]),
    st.builds(lambda head, n: head + LONG * n, st.text(max_size=3), st.integers(0, 4)),
)
VALUES = st.recursive(
    st.one_of(TEXTS, st.integers(), st.floats(), st.booleans(), st.none(), st.just(2**80)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=12,
)


@given(st.lists(TEXTS, max_size=12))
def test_texts_are_equal_where_their_stand_ins_are(texts: list[str]) -> None:
    stand_ins = StandIns()
    made = [stand_ins.text(text) for text in texts]
    for one, shown in zip(texts, made, strict=True):
        for other, also in zip(texts, made, strict=True):
            assert (one == other) is (shown == also)


@given(st.lists(st.one_of(TEXTS, st.sampled_from(["line 9", "line 10", "line x"])), max_size=12))
def test_failures_are_alike_but_for_digits_where_their_stand_ins_are(texts: list[str]) -> None:
    stand_ins = StandIns()
    hashes = [masked_result_hash(text) for text in texts]
    made = [stand_ins.text(text, key, numbers=False) for text, key in zip(texts, hashes, strict=True)]
    for one, shown in zip(hashes, made, strict=True):
        for other, also in zip(hashes, made, strict=True):
            assert (one == other) is (masked_result_hash(shown) == masked_result_hash(also))


@given(st.lists(st.one_of(TEXTS, st.dictionaries(TEXTS, VALUES, max_size=5)), max_size=6))
def test_calls_are_the_same_where_those_with_stand_ins_are(arguments: list[Any]) -> None:
    stand_ins = StandIns()
    made = [stand_ins.arguments("tool", each) for each in arguments]
    for one, shown in zip(arguments, made, strict=True):
        assert json.loads(json.dumps(shown, allow_nan=False)) == shown
        for other, also in zip(arguments, made, strict=True):
            assert (canonical(one) == canonical(other)) is (canonical(shown) == canonical(also))


@given(st.lists(TEXTS, max_size=8))
def test_stand_ins_are_the_same_each_time(texts: list[str]) -> None:
    one, other = StandIns(), StandIns()
    assert [one.text(text) for text in texts] == [other.text(text) for text in texts]


@pytest.mark.parametrize("length", [MAX_TEXT + 2, 5_000, 100_000, 3_000_000])
def test_a_long_text_keeps_its_beginning_and_is_told_by_letters(length: int) -> None:
    made = StandIns().text("ab" * (length // 2))
    assert made.startswith("ab" * 80 + "... #")
    assert made.removeprefix("ab" * 80 + "... #").isalpha()
    assert len(made) < MAX_TEXT + 20


def test_the_beginning_alone_does_not_make_long_texts_equal() -> None:
    stand_ins = StandIns()
    assert len({stand_ins.text(LONG * 100 + end) for end in ("", "a", "b")}) == 3


@pytest.mark.parametrize(
    "arguments",
    [
        {"password": "hunter2 in two words"},
        {"password": 'quoted " and \\ back\nslash'},
        {"api_key": 123_456},
        {"login": {"user": "me", "passwd": "hunter2"}},
        {"passwords": ["x"], "api-key": ["hunter2", "hunter3"]},
        {"header": f"Authorization: Bearer {SECRET}"},
        {"url": "https://me:hunter2@example.org"},
        {"nested": {"text": "x" * 2_000, "password": "hunter2"}},
        {f"key {SECRET}": 1},
        f"login --password hunter2 --token {SECRET}",
    ],
)
def test_secrets_are_left_out_by_their_names_and_by_their_form(arguments: Any) -> None:
    shown = json.dumps(StandIns().arguments("tool", arguments))
    for secret in ("hunter", "123456", "quoted", "slash", SECRET):
        assert secret not in shown
    assert "[redacted]" in shown


def test_two_secrets_stay_two_without_a_word_of_either() -> None:
    stand_ins = StandIns()
    made = [stand_ins.arguments("login", {"password": word}) for word in ("hunter2", "hunter3", "hunter2")]
    assert made == [{"password": "[redacted]"}, {"password": "[redacted] #b"}, {"password": "[redacted]"}]
    told = [stand_ins.text(f"use {SECRET}{n}") for n in range(2)]
    assert told == ["use [redacted]", "use [redacted] #b"]


def test_a_redacted_long_text_gives_no_hash_of_what_it_hides() -> None:
    one, other = (StandIns().text(f"password: {word}; {LONG}") for word in ("hunter2", "hunter3"))
    assert one == other


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ({}, {}),
        ({"n": 1.0, "m": [1, None, True]}, {"n": 1.0, "m": [1, None, True]}),
        ({"n": 2**70}, {"n": "400000000000000000"}),
        ({"n": float("inf")}, {"n": "inf"}),
        ([1, 2], {"": [1, 2]}),
        (None, {"": None}),
        ({"deep": [[[[[[[[[1]]]]]]]]]}, {"deep": "[[[[[[[[[1]]]]]]]]]"}),
        ({"set": {1, 2}}, {"set": "(a set)"}),
    ],
)
def test_what_a_case_file_cannot_hold_becomes_text(arguments: Any, shown: Any) -> None:
    assert StandIns().arguments("tool", arguments) == shown


def test_many_arguments_are_cut_and_stay_different() -> None:
    stand_ins = StandIns()
    many = [{f"k{n}": n for n in range(60)} | {"k59": last} for last in (1, 2)]
    one, other = (stand_ins.arguments("tool", each) for each in many)
    assert isinstance(one, dict)
    assert isinstance(other, dict)
    assert one["..."] == "10 more"
    assert other == one | {"#": "b"}


def test_a_recorded_signature_tells_calls_apart_whose_arguments_were_not_kept() -> None:
    stand_ins = StandIns()
    made = [stand_ins.arguments("tool", {}, sig) for sig in (7, 8, 7)]
    assert made == [{}, {"#": "b"}, {}]
    assert stand_ins.arguments("another", {}, 8) == {}


def test_calls_without_a_signature_are_never_alike() -> None:
    looped: dict[str, Any] = {}
    looped["self"] = looped
    stand_ins = StandIns()
    assert stand_ins.arguments("tool", looped) != stand_ins.arguments("tool", looped)


@pytest.mark.parametrize(("number", "written"), [(0, "a"), (25, "z"), (26, "ba"), (26 * 26, "baa")])
def test_marks_are_letters_only(number: int, written: str) -> None:
    assert letters(number) == written
