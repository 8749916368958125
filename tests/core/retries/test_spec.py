import json

from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.retries.factors import MAX_CODE
from guardrails.core.retries.spec import ACTION, CONTEXT, MAX_DOCUMENT, FeatureSpec, FeatureSpecError
from guardrails.policy.models import SHIPPED, load_spec, shipped_spec
from tests.core.retries.pinned import SPEC
from tests.tables import table


def test_the_shipped_specification_has_the_four_features_of_the_seed() -> None:
    """A10: error type is a key of every cell; the others are factors."""
    shipped = shipped_spec()
    assert {"tool_run", "elapsed", "prev"} <= shipped.by_name.keys()
    assert set(shipped.by_name) <= {*CONTEXT, *ACTION}
    assert shipped.contexts < MAX_CODE
    assert shipped.actions < MAX_CODE


def test_a_specification_is_its_document() -> None:
    again = FeatureSpec.parse(json.dumps(SPEC.document()))
    assert again == SPEC
    assert hash(again) == hash(SPEC)
    assert again.digest == SPEC.digest
    assert load_spec(SHIPPED) == shipped_spec()


def test_codes_do_not_depend_on_the_order_in_which_a_document_is_written() -> None:
    text = json.dumps(SPEC.document(), sort_keys=True)
    assert FeatureSpec.parse(text).context == SPEC.context


def test_other_candidate_waits_leave_the_cells_as_they_are() -> None:
    other = FeatureSpec.parse({**SPEC.document(), "delays_ms": [0, 7_000]})
    assert other != SPEC
    assert other.digest == SPEC.digest


@given(st.data())
def test_a_code_tells_its_levels(data: st.DataObject) -> None:
    levels = {factor.name: data.draw(st.integers(0, factor.radix - 1)) for factor in SPEC.context}
    assert SPEC.decode_context(SPEC.encode_context(levels)) == levels


@given(st.integers(0, SPEC.contexts - 1))
def test_every_code_is_of_some_levels(code: int) -> None:
    assert SPEC.encode_context(SPEC.decode_context(code)) == code


@table("code", [-1, SPEC.contexts])
def test_a_code_that_there_is_not_is_refused(code: int) -> None:
    with pytest.raises(ValueError, match=f"no code {code}"):
        SPEC.decode_context(code)


@table(
    ("name", "value", "level", "shown"),
    [
        ("ra", None, 0, "unknown"),
        ("ra", 0, 1, "<= 1000"),
        ("ra", 1_000, 1, "<= 1000"),
        ("ra", 1_001, 2, "<= 5000"),
        ("ra", 120_001, 5, "> 120000"),
        ("attempt", 3, 3, "> 2"),
        ("waited", -1, 1, "<= -1"),
        ("waited", 0, 2, "> -1"),
    ],
)
def test_a_level_goes_up_to_its_edge(name: str, value: int | None, level: int, shown: str) -> None:
    factor = SPEC.by_name[name]
    assert factor.level(value) == level
    assert factor.shown(level) == shown


@table(
    ("change", "message"),
    [
        ({"format": "x"}, "`format`"),
        ({"more": 1}, "`more`"),
        ({"version": True}, "`version`"),
        ({"lookback": 21}, "`lookback` is an integer from 1 to 20, not `21`"),
        ({"label": {}}, "`label`"),
        ({"label": {"max_calls": 0, "max_ms": 1}}, "`label.max_calls`"),
        ({"context": {}}, "`context`"),
        ({"context": {"mood": [1]}}, "`mood`"),
        ({"context": {"ra": [5, 5]}}, "does not ascend"),
        ({"context": {"ra": [1.5]}}, "`context.ra`"),
        ({"context": {"ra": "12"}}, "list of 1 to 32"),
        ({"context": {"err_run": [9]}}, "the last edge of `err_run` is 9"),
        ({"context": {name: list(range(-25, 7)) for name in CONTEXT}}, "codes"),
        ({"delays_ms": [-1]}, "not negative"),
    ],
)
def test_what_is_wrong_with_a_specification_is_said(change: dict[str, Any], message: str) -> None:
    with pytest.raises(FeatureSpecError, match=message):
        FeatureSpec.parse({**SPEC.document(), **change})


@table("text", ["", "[]", "{", "[" * 100_000, " " * (MAX_DOCUMENT + 1), b"\xff"])
def test_a_text_that_is_no_specification_is_refused(text: str | bytes) -> None:
    with pytest.raises(FeatureSpecError):
        FeatureSpec.parse(text)


@table("wait_ms", shipped_spec().delays_ms)
def test_an_advised_wait_is_judged_by_retries_that_waited_as_long_and_none_that_came_sooner(wait_ms: int) -> None:
    spec = shipped_spec()
    delay, reach = spec.by_name["delay"], spec.by_name["reach"]
    # Limits last for round times, and a call that was told to wait comes a little after them, never before.
    for factor in (delay, reach):
        assert factor.level(wait_ms) == factor.level(wait_ms + 200)
    if wait_ms:
        assert reach.level(wait_ms) > reach.level(wait_ms - 200)
    assert all(delay.level(wait_ms) != delay.level(other) for other in spec.delays_ms if other != wait_ms)
