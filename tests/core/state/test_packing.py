"""
A session's state as bytes.
"""

import json
import re

from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.state.admissions import admit, deny, expire, settle
from guardrails.core.state.packing import VERSION, Memo, pack, unpack
from guardrails.core.state.state import SessionState
from guardrails.core.state.totals import charge, extend, release, reserve, set_meters, touch
from guardrails.core.state.turns import begin_turn, end_turn
from guardrails.core.text.signature import low64, sign
from guardrails.core.values.errors import SessionError, StateUnreadable
from guardrails.core.values.types import ERROR_TYPES, Denial, Outcome, ToolCall
from tests.tables import table


KEPT = Path(__file__).parents[2] / "golden/0.2.0/state.bin"
NOW = 1_800_000_000_000


def call(tool: str, argument: object, call_id: str = "call_1") -> ToolCall:
    signature, canonical = sign(tool, argument)
    sig = None if signature is None else low64(signature)
    sketch = argument if type(argument) is int and argument % 2 else None
    return ToolCall(tool, argument, call_id, signature, sig, (), canonical, sketch=sketch)


def admitted(state: SessionState, made: ToolCall, window: int = 20, timeout_ms: int | None = None) -> Any:
    return admit(state, made, cost=100, tokens=7, timeout_ms=timeout_ms, changes=True, claimed=False, window=window)


def endless() -> object:
    loop: list[object] = []
    loop.append(loop)
    return loop


tools = st.sampled_from(["search", "read_file", "Straße", "x" * 24])
numbers = st.integers(-(2**70), 2**70)
steps = st.one_of(
    st.tuples(st.just("admit"), tools, st.integers(0, 5), st.booleans()),
    st.tuples(st.just("settle"), st.integers(0, 30), st.sampled_from([None, *ERROR_TYPES]), st.integers(0, 10**9)),
    st.tuples(st.just("deny"), tools, st.integers(0, 5), st.booleans()),
    st.tuples(st.just("turn"), st.integers(0, 5)),
    st.tuples(st.just("charge"), st.none() | st.integers(0, 10**9), st.integers(0, 10**6)),
    st.tuples(st.just("meter"), st.text(max_size=8), numbers),
    st.tuples(st.just("extend"), st.dictionaries(st.sampled_from(["max_calls", "max_cost"]), numbers)),
    st.tuples(st.just("child"), st.text(max_size=8), st.integers(0, 9), st.booleans()),
    st.tuples(st.just("time"), st.integers(0, 700_000)),
)


def take(state: SessionState, step: tuple[Any, ...]) -> None:
    match step:
        case ("admit", tool, argument, signed):
            admitted(state, call(tool, argument if signed else endless(), f"call_{state.n}"))
        case ("settle", at, kind, wait) if state.pending:
            pending = list(state.pending.values())[at % len(state.pending)]
            settle(state, pending, Outcome(1, kind, cost=3), at - 15, steady=at % 3, empty=at % 4)
            if kind is not None:
                pending.entry.retries_left, pending.entry.retry_at_ms = at, pending.entry.at_ms + wait
            pending.hints = (("mine.slow", "narrow it"),)
        case ("deny", tool, argument, ends):
            status: Any = "denied" if ends else "validation_error"
            deny(state, call(tool, argument), Denial(code="x.y", message="no", status=status, ends_session=ends))
        case ("turn", calls):
            end_turn(state)
            begin_turn(state, calls)
        case ("charge", cost, tokens):
            charge(state, cost, tokens)
        case ("meter", key, value):
            set_meters(state, {key: value})
        case ("extend", limits):
            extend(state, limits)
        case ("child", name, amount, back):
            (release if back else reserve)(state, name, {"max_calls": amount})
        case ("time", ms):
            touch(state, state.now_ms + ms)
            expire(state)


@given(st.lists(steps, max_size=60))
def test_what_is_unpacked_equals_what_was_packed(story: list[tuple[Any, ...]]) -> None:
    state = SessionState()
    touch(state, NOW)
    for step in story:
        take(state, step)
    assert unpack(pack(state)) == state


@given(st.lists(steps, max_size=60))
def test_what_is_packed_after_each_step_with_what_was_kept_of_the_last_is_the_same_state(
    story: list[tuple[Any, ...]],
) -> None:
    state, memo = SessionState(), Memo()
    touch(state, NOW)
    for step in story:
        take(state, step)
        again = unpack(pack(state, memo))
        assert again == state
        assert unpack(pack(state)) == state


def test_an_idle_session_with_a_full_window_packs_into_1600_bytes() -> None:
    state = SessionState()
    touch(state, NOW)
    for number in range(20):
        begin_turn(state, 1)
        tool = f"{'a_tool_with_a_long_name':<23}{number % 10}"
        assert len(tool) == 24
        pending = admitted(state, call(tool, {"query": number}, f"call_{'x' * 24}_{number}"))
        if number < 18:
            settle(state, pending, Outcome(None, "server_error"), -(2**63) + number)
            pending.entry.retry_at_ms, pending.entry.retries_left = NOW + 60_000, 3
        charge(state, 12_345, 54_321)
        end_turn(state)
    set_meters(state, {"growth.tokens": NOW * 20_000_000})
    set_meters(state, {"growth.requests": NOW * 20})
    set_meters(state, {"growth.calls": NOW * 50})
    assert len(pack(state)) <= 1_600, len(pack(state))


@table("name", ["\ud800", "x" * 100_000, "", "\x00\n", "😀" * 100])
def test_a_tool_name_or_call_id_that_a_model_made_up_can_be_packed(name: str) -> None:
    state = SessionState()
    admitted(state, call(name, 1, call_id=name))
    assert unpack(pack(state)) == state


@table(
    ("field", "value", "kept"),
    [
        ("retries_left", 10**9, 63),
        ("retries_left", -4, 0),
        ("retry_at_ms", NOW + 10**15, NOW + 2**31 - 1),
        ("retry_at_ms", NOW + 1_500.5, NOW + 1_500),
        ("retry_at_ms", NOW - 5, NOW),
    ],
)
def test_what_a_tool_claims_of_a_retry_cannot_break_the_state(field: str, value: Any, kept: int) -> None:
    state = SessionState()
    touch(state, NOW)
    settle(state, admitted(state, call("t", 1)), Outcome(None, "timeout"), 1)
    setattr(state.window[0], field, value)
    assert getattr(unpack(pack(state)).window[0], field) == kept


@table(
    "damage",
    [
        lambda b: b"",
        lambda b: b[:10],
        lambda b: b[:-1],
        lambda b: b"\x00" + b[1:],
        lambda b: b[:4] + b"\xff" * 4 + b[8:],
        lambda b: b[: b.index(b'{"t"')] + b'{"m":[],' + b[b.index(b'{"t"') + 1 :],
        lambda b: b[: b.index(b'{"t"')] + b'{"d":null,' + b[b.index(b'{"t"') + 1 :],
        lambda b: b[: b.index(b'{"t"')] + b'{"l":{"max_calls":"9"},' + b[b.index(b'{"t"') + 1 :],
        lambda b: re.sub(rb'"t":\[-?\d+', b'"t":[null', b),
        lambda b: re.sub(rb'"t":\[(-?\d+)', rb'"t":["\1"', b),
    ],
)
def test_bytes_that_are_no_state_are_an_error_and_not_a_new_session(damage: Callable[[bytes], bytes]) -> None:
    state = SessionState()
    settle(state, admitted(state, call("t", 1)), Outcome(1), 1)
    with pytest.raises(SessionError, match="session state"):
        unpack(damage(pack(state)))


@table("version", [0, VERSION - 1, VERSION + 1, 255])
def test_a_state_of_another_version_says_which_and_what_to_do(version: int) -> None:
    packed = bytes([version]) + pack(SessionState())[1:]
    said = f"is of version {version}, and this version of the library reads {VERSION}: .*; `forget` it only to start it afresh"
    with pytest.raises(StateUnreadable, match=said):
        unpack(packed)


def test_a_state_that_0_2_0_packed_is_read_as_it_read_it() -> None:
    """
    It has every field in use. `family` a state has in a step only; what guards keep no more is passed over.
    """
    packed, said = KEPT.read_bytes(), json.loads(KEPT.with_suffix(".json").read_text(encoding="utf-8"))
    made = unpack(packed)
    for name in said.keys() & {field.name for field in fields(SessionState)} - {"latest"}:
        _check_holds(_plain(getattr(made, name)), said[name], name)
    assert unpack(pack(made)) == made
    assert made.latest == {entry.sig: entry.seq for entry in made.window}


@given(cut=st.integers(0, 3_000), changed=st.integers(1, 3_000), byte=st.integers(0, 255))
def test_a_state_that_is_damaged_is_an_error_or_another_state(cut: int, changed: int, byte: int) -> None:
    packed = KEPT.read_bytes()
    at = changed % len(packed)
    for damaged in (packed[:cut], packed[:at] + bytes([byte]) + packed[at + 1 :]):
        with suppress(StateUnreadable):
            unpack(damaged)


def _check_holds(made: Any, said: Any, where: str) -> None:
    """
    Raises AssertionError unless *made* is *said*, but for fields that came later.
    """
    if isinstance(said, dict) and isinstance(made, dict):
        for name in said:
            _check_holds(made[name], said[name], f"{where}.{name}")
    elif isinstance(said, list) and isinstance(made, list):
        assert len(made) == len(said), where
        for own, other in zip(made, said, strict=True):
            _check_holds(own, other, where)
    else:
        assert made == said, where


def _plain(value: Any) -> Any:
    """
    *value* as JSON has it, a mapping as its pairs.
    """
    if is_dataclass(value):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value) if one.name != "entry"}
    if isinstance(value, dict):
        return [[_plain(key), _plain(one)] for key, one in value.items()]
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value.hex() if isinstance(value, bytes) else value
