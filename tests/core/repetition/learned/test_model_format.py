"""
A repeat model is read as it was written, or not at all (MISSION A12).
"""

import json

from pathlib import Path
from typing import Any

import pytest

from guardrails import Loops, Policy, PolicyError
from guardrails.core.repetition.learned.features import FACTORS
from guardrails.core.repetition.learned.model_format import MAX_BYTES, SHIPPED, body_of, parse, repeat_model, text_of
from guardrails.core.retries.model_format import sealed
from guardrails.core.retries.scoring import Term, probability
from guardrails.core.values.errors import ModelError


LEVELS = (5, 1, 1, 0, 1, 0, 0, 0, 1, 1, 0, 1, 1, 1)


def body(**changes: Any) -> dict[str, Any]:
    terms = [Term(("same",), {"1": 0.5}), Term(("same", "changed"), {"1|0": 1.25, "2|1": -3.0})]
    return {**body_of(-1.0, terms, 0.9, golden=[LEVELS], training={}), **changes}


def resealed(**changes: Any) -> dict[str, Any]:
    return sealed(body(**changes))


def test_the_weights_of_the_levels_add_up() -> None:
    model = parse(text_of(body()))
    assert model.probability(LEVELS) == pytest.approx(probability(-1 + 0.5 + 1.25))
    assert len(LEVELS) == len(FACTORS)


def test_the_shipped_model_names_its_data_and_figures() -> None:
    model = repeat_model("default")
    training = model.body["training"]
    assert 0.9 <= model.deny_at <= 2
    assert set(training["base"]) < set(training["left_out"])
    assert all({"calls", "auc", "ap", "denied_by_it"} <= set(fold) for fold in training["left_out"].values())
    assert SHIPPED.stat().st_size < 64_000


WRONG: list[tuple[str, Any, str]] = [
    ("cut off", lambda: text_of(body())[:-20], "not JSON"),
    ("empty", lambda: b"", "not JSON"),
    ("too large", lambda: b" " * (MAX_BYTES + 1), "at most"),
    ("another format", lambda: text_of(resealed(format="guardrails.retry-model")), "`format` is not"),
    ("another version", lambda: text_of(resealed(version=2)), "of version `2`"),
    ("other features", lambda: text_of(resealed(features={"version": 1, "factors": {"same": 9}})), "other features"),
    ("later features", lambda: text_of(resealed(features={"version": 2, "factors": dict(FACTORS)})), "other features"),
    ("changed", lambda: text_of(body(intercept=3.0)), "hash"),
    ("a key too many", lambda: text_of(resealed(more=1)), "exactly"),
    ("an unknown factor", lambda: text_of(resealed(terms=[{"on": ["x"], "w": {}}])), "unknown factor `x`"),
    ("a level that is none", lambda: text_of(resealed(terms=[{"on": ["same"], "w": {"9": 1.0}}])), "no level"),
    ("a level that is text", lambda: text_of(resealed(terms=[{"on": ["same"], "w": {"a": 1.0}}])), "no level"),
    ("a weight beyond all", lambda: text_of(resealed(terms=[{"on": ["same"], "w": {"1": 99.0}}])), "not a number"),
    ("a threshold of zero", lambda: text_of(resealed(deny_at=0)), "`deny_at`"),
    ("training that names nothing", lambda: text_of(resealed(training=7)), "`training` names"),
    ("no golden vectors", lambda: text_of(resealed(golden=[])), "golden"),
    ("a golden vector that fails", lambda: text_of(resealed(golden=[[list(LEVELS), 0.1]])), "golden"),
    ("golden levels out of range", lambda: text_of(resealed(golden=[[[99] * 14, 0.1]])), "golden"),
    ("a list", lambda: b"[]", "`format` is not"),
]


@pytest.mark.parametrize(("text", "said"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_a_file_that_is_no_good_is_refused_with_the_reason(text: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=said):
        parse(text())
    path = tmp_path / "model.json"
    path.write_bytes(text())
    with pytest.raises(PolicyError, match="repeat model"):
        Policy([Loops(model=str(path))])


def test_a_file_that_is_not_there_is_told_when_the_policy_is_made() -> None:
    with pytest.raises(PolicyError, match="cannot be read"):
        Policy([Loops(model="nowhere.json")])


def test_a_model_is_found_beside_the_policy_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_bytes(text_of(body()))
    (tmp_path / "p.yaml").write_text("version: 1\nloops: {model: m.json}\n")
    (tmp_path / "d.yaml").write_text("version: 1\nloops: {model: default}\n")
    loops = next(guard for guard in Policy.load(tmp_path / "p.yaml").chain.guards if isinstance(guard, Loops))
    assert loops.model == str(tmp_path / "m.json")
    other = next(guard for guard in Policy.load(tmp_path / "d.yaml").chain.guards if isinstance(guard, Loops))
    assert other.model == "default"


def test_a_model_is_json_that_a_person_can_read() -> None:
    assert json.loads(text_of(body()))["terms"][0] == {"on": ["same"], "w": {"1": 0.5}}
