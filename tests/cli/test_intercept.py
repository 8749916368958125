"""
A policy of Intercept becomes one of this library, as far as it maps.
"""

import json

from pathlib import Path
from typing import Any

import pytest

from guardrails import Policy
from guardrails.cli.intercept import converted
from tests.tables import table


pytest.importorskip("cel_expr_python")

FILES = Path(__file__).with_name("files")
THEIRS = (FILES / "intercept.yaml").read_text()
RIGHT = {"amount": 100, "meta": {"branch": "feat/a"}, "currency": "usd", "tags": ["x"]}


@table("calls", json.loads((FILES / "intercept.json").read_text()))
def test_a_policy_of_intercept_decides_as_there(tmp_path: Path, clock: Any, calls: Any) -> None:
    (tmp_path / "p.yaml").write_text(converted(THEIRS)[0])
    session = Policy.load(tmp_path / "p.yaml").session("s", clock=clock)
    assert [session.call(tool, RIGHT | given, lambda *_: "ok").code for tool, given, _ in calls] == [
        code for *_, code in calls
    ]


def test_what_does_not_map_is_told() -> None:
    text, unmapped = converted(THEIRS)
    assert unmapped == {
        "labels": "it is not known",
        "tools.create_payout.rules.2": "a condition on `state.create_refund.s` with `lt`",
        "tools.create_payout.rules.3": "a condition on `args.max-cents` with `lt`",
        "tools.create_refund.rules.1": "a condition on `state.other.c` with `gt`",
        "tools.create_refund.rules.2": "rate_limit `many/hour`",
    }
    assert all(f"# Not mapped: {place}: {why}" in text for place, why in unmapped.items())


@table("text", ["", "version: 1\ntools: {}", "version: '1'", "a: ["])
def test_a_file_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"version: \"1\"|not YAML"):
        converted(text)
