"""
A model file is checked as a whole before anything of it is used.
"""

import json
import re
import time

from typing import Any

import orjson
import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.retries.model import Golden
from guardrails.core.retries.model_format import MAX_BYTES, parse, sealed
from guardrails.core.retries.scoring import Term, probability
from guardrails.core.values.errors import ModelError
from tests.core.retries.conftest import TERMS, body, text
from tests.tables import table


def changed(**changes: Any) -> bytes:
    return orjson.dumps(sealed({**body(), **changes}))


def test_a_model_is_read_as_it_was_written() -> None:
    model = parse(text())
    assert model.intercept == 0.25
    assert [(term.on, dict(term.weights)) for term in model.terms] == [(on, dict(w)) for on, w in TERMS]
    assert model.evidence == {("search", "timeout"): 60.0}
    assert len(model.name) == 12


def test_the_same_model_has_the_same_bytes() -> None:
    assert text() == text()
    assert parse(text()).sha256 == parse(text(training={})).sha256 != parse(text(training={"days": 1})).sha256


@table(
    ("data", "said"),
    [
        (b"", "not JSON"),
        (text()[:-40], "not JSON"),
        (b"\x80\x04\x95pickle", "not JSON"),
        (b"[1]", "no retry model"),
        (b'{"format": "other"}', "no retry model"),
        (b" " * (MAX_BYTES + 1), "bytes (at most"),
        (orjson.dumps({**body(), "version": 0}), "train it again"),
        (orjson.dumps({**body(), "version": 3}), "train it again"),
        (orjson.dumps({**body(), "intercept": 0.5}), "the hash does not fit"),
        (orjson.dumps({**body(), "more": 1}), "see `more`"),
        (changed(intercept=float("1e300")), "`intercept` is not a number"),
        (changed(intercept="0.25"), "`intercept` is not a number"),
        (changed(intercept=True), "`intercept` is not a number"),
        (changed(terms={}), "`terms` is a list"),
        (changed(terms=[{"on": ["tool"], "w": {}}] * 101), "`terms` is a list"),
        (changed(terms=[{"on": ["moon"], "w": {}}]), "unknown factor `moon`"),
        (changed(terms=[{"on": ["error", "tool"], "w": {}}]), "`tool` first"),
        (changed(terms=[{"on": ["error", "error"], "w": {}}]), "each once"),
        (changed(terms=[{"on": ["error"], "w": {"timeout": 20.0}}]), "not a number between -20 and 20"),
        (changed(terms=[{"on": ["error"], "w": {"timeout": None}}]), "not a number between -20 and 20"),
        (changed(terms=[{"on": ["error", "delay"], "w": {"timeout": 1.0}}]), "has not a level for each"),
        (changed(terms=[{"on": ["error"]}]), "has exactly `on` and `w`"),
        (changed(declared={"yes": 1.0, "no": -1.0, "strength": 0}), "is not above 0"),
        (changed(declared={}), "cannot be read"),
        (changed(evidence=[["a", "timeout", -1]]), "counts are numbers from 0 on"),
        (changed(evidence=[["a", "timeout"]]), "cannot be read"),
        (changed(evidence=[[1, "timeout", 1]]), "a name is text"),
        (changed(spec={}), "no feature specification"),
        (changed(spec={**body()["spec"], "version": 0}), "cannot be read"),
        (changed(golden=[]), "no golden vectors"),
        (changed(golden=[["search", "timeout", 0, 0, 0.5]]), "a golden vector does not come out"),
        (changed(golden=[["search"]]), "a golden vector does not come out"),
        (changed(profiles=[{"tool": 1}]), "cannot be read"),
        (changed(profiles={}), "`profiles` is a list"),
    ],
)
def test_a_file_that_is_no_good_says_what_is_wrong(data: bytes, said: str) -> None:
    with pytest.raises(ModelError, match=re.escape(said)):
        parse(data)


def test_golden_vectors_are_found_again_within_1e_12() -> None:
    vector = body()["golden"][0]
    parse(changed(golden=[[*vector[:4], vector[4] + 5e-13]]))
    with pytest.raises(ModelError):
        parse(changed(golden=[[*vector[:4], vector[4] + 5e-12]]))


@given(st.binary(max_size=300))
def test_bytes_of_any_kind_are_a_clear_error(data: bytes) -> None:
    with pytest.raises(ModelError):
        parse(data)


@given(place=st.integers(0, len(text()) - 2), value=st.integers(0, 255))
def test_a_changed_byte_is_never_served(place: int, value: int) -> None:
    data = bytearray(text())
    if data[place] == value:
        return
    data[place] = value
    try:
        made = parse(bytes(data))
    except ModelError:
        return
    # A change that says the same: a space, an escape, a number written otherwise.
    assert made.sha256 == parse(text()).sha256


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=8), st.floats(-19, 19, allow_nan=False), max_size=5
    )
)
def test_tools_of_any_name_are_kept(weights: dict[str, float]) -> None:
    golden = [Golden("", "auth", 0, 0, probability(0.25 + weights.get("", 0.0)))]
    model = parse(text(terms=[Term(("tool",), weights)], golden=golden))
    for tool, weight in weights.items():
        assert model.scorer.logit(model.levels(tool, "auth", 0)) == pytest.approx(0.25 + weight)


def test_a_file_of_200_kib_is_loaded_and_checked_quickly() -> None:
    weights = {f"tool_{i}|timeout|{level}": 0.000001 * i for i in range(1_200) for level in range(5)}
    data = text(
        terms=[Term(("tool", "error", "delay"), weights)], golden=[Golden("x", "auth", 0, 0, probability(0.25))]
    )
    assert len(data) > 180_000
    best = min(_seconds(data, time.process_time) for _ in range(5))
    assert best < 0.05
    assert json.loads(data)["format"] == "guardrails.retry-model"


def _seconds(data: bytes, clock: Any) -> float:
    began = clock()
    parse(data)
    return float(clock() - began)
