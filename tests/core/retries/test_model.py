"""
A model file is checked as a whole before anything of it is used, and says what a sum of look-ups says.
"""

import re

from typing import Any

import orjson
import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.retries.model import CORRECTION_STRENGTH, KNOWN, MAX_BYTES, RetryModel, logistic, parse, text_of
from guardrails.core.retries.serving import LOOPS
from guardrails.core.retries.trail import Settled, Situation, extended, failure_of
from guardrails.core.values.errors import ModelError
from tests.core.retries.conftest import body, constant, text
from tests.tables import table


def after(tool: str = "search", error: str = "timeout", delay_ms: int = 10_000, *, between: bool = False) -> Situation:
    failure = failure_of(extended(None, Settled(tool, 1, error, 0)), 0)
    return failure.retried(delay_ms, between=between)


def written(**changes: Any) -> bytes:
    """
    The file with *changes* that its writer knew nothing of.
    """
    return orjson.dumps({**orjson.loads(text()), **changes})


def test_a_model_is_read_as_it_was_written() -> None:
    model = parse(text())
    assert (model.intercept, model.evidence, len(model.name)) == (0.25, {"search": {"timeout": 60.0}}, 12)
    assert text() == text()
    assert model.sha256 == parse(text(training={})).sha256 != parse(text(training={"days": 1})).sha256


@table(
    "data, said",
    [
        (b"", "not JSON"),
        (text()[:-40], "not JSON"),
        (b"\x80\x04\x95pickle", "not JSON"),
        (b"[1]", "no retry model"),
        (b'{"format": "other"}', "no retry model"),
        (text_of(body(), LOOPS), "no retry model"),
        (b" " * (MAX_BYTES + 1), "bytes (at most"),
        (written(version=2), "reads 4: train it again: `guardrails train RECORDS -o FILE`"),
        (written(version=5), "upgrade this library, or train it again"),
        (written(intercept=0.5), "the hash does not fit"),
        (written(more=1), "see `more`"),
    ],
)
def test_a_file_that_is_no_good_says_what_is_wrong_and_what_to_do(data: bytes, said: str) -> None:
    with pytest.raises(ModelError, match=re.escape(said)):
        parse(data)


@table(
    "changes, said",
    [
        ({"intercept": 1e300}, "a number from -20 to 20 is wanted"),
        ({"intercept": "0.25"}, "a number from -20 to 20 is wanted"),
        ({"intercept": True}, "a number from -20 to 20 is wanted"),
        ({"weights": {"timeout": 20.5}}, "a number from -20 to 20 is wanted"),
        ({"weights": []}, "cannot be read"),
        ({"tools": {"a": {"timeout": None}}}, "a number from -20 to 20 is wanted"),
        ({"evidence": {"a": {"timeout": -1}}}, "a number from 0 to inf is wanted"),
        ({"corrections": {"a": {"timeout": [1]}}}, "cannot be read"),
        ({"corrections": {"a": {"timeout": [1, "x"]}}}, "a number from 0 to 1 is wanted"),
    ],
)
def test_numbers_that_no_training_writes_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ModelError, match=re.escape(said)):
        parse(text(**changes))


@given(st.binary(max_size=300))
def test_bytes_of_any_kind_are_a_clear_error(data: bytes) -> None:
    with pytest.raises(ModelError):
        parse(data)


@given(place=st.integers(0, len(text()) - 2), value=st.integers(0, 255))
def test_a_changed_byte_is_never_served(place: int, value: int) -> None:
    data = bytearray(text())
    data[place] = value
    try:
        made = parse(bytes(data))
    except ModelError:
        return
    # A change that says the same: a space, an escape, a number written otherwise.
    assert made.sha256 == parse(text()).sha256


def test_a_probability_is_the_sum_of_what_all_tools_share_and_of_its_own(model: RetryModel) -> None:
    assert model.probability(after()) == pytest.approx(logistic(0.25 + 1.0 + 0.5))
    assert model.probability(after("new")) == pytest.approx(logistic(0.25 + 1.0))
    assert model.probability(after("odd|name\n\"'")) == pytest.approx(logistic(0.25 + 1.0 - 0.5 + 2.0))
    assert model.probability(after(delay_ms=0)) == pytest.approx(logistic(0.25 + 1.0 + 0.5 - 2.0))
    assert model.probability(after("new", "precondition", between=True)) == pytest.approx(logistic(0.25 - 4.0 + 7.0))


def test_made_up_tools_do_not_fill_the_memory() -> None:
    made = parse(constant(0.0))
    for number in range(KNOWN + 500):
        made.logit(after(f"tool {number}"))
    assert len(made.logits) <= KNOWN


shares = st.tuples(st.floats(0, 500), st.floats(0, 1)).map(lambda made: [made[0], made[0] * made[1]])


@given(own=shares, every=shares)
def test_a_correction_is_a_share_between_the_tools_own_and_that_of_all(own: list[float], every: list[float]) -> None:
    said = parse(text(corrections={"t": {"validation": own}, "": {"validation": every}})).correction("t", "validation")
    rates = [s / n for n, s in (own, every) if n > 0]
    assert (said is None) is (not rates)
    if said is not None:
        assert min(rates) - 1e-9 <= said <= max(rates) + 1e-9


def test_a_tool_that_was_never_seen_is_corrected_like_all_and_an_unknown_kind_by_nothing(model: RetryModel) -> None:
    assert model.correction("new", "validation") == pytest.approx(0.8)
    assert model.correction("new", "timeout") is None


@given(poisoned=st.integers(0, 30), worked=st.booleans())
def test_few_poisoned_counts_move_a_rate_by_no_more_than_their_weight(poisoned: int, worked: bool) -> None:
    own = {"validation": [poisoned, poisoned if worked else 0]}
    made = parse(text(corrections={"t": own, "": {"validation": [1_000, 800]}})).correction("t", "validation")
    assert made is not None
    assert abs(made - 0.8) <= poisoned / (poisoned + CORRECTION_STRENGTH) + 1e-9
