"""
A small model that is made by hand, so that every probability can be worked out on paper.
"""

from typing import Any

import pytest

from guardrails.core.retries.model import Declared, Golden, RetryModel
from guardrails.core.retries.model_format import body_of, parse, text_of
from guardrails.core.retries.scoring import Term, probability
from tests.core.retries.pinned import SPEC


TERMS = (
    Term(("error",), {"timeout": 1.0, "auth": -5.0, "validation": -6.0, "precondition": -4.0, "exec_nonzero": -3.0}),
    Term(("tool",), {"search": 0.5, "odd|name\n\"'": -0.5}),
    Term(("tool", "error"), {"odd|name\n\"'|timeout": 2.0}),
    Term(("delay",), {"1": -2.0, "2": -1.0}),
    Term(("error", "between"), {"precondition|1": 7.0}),
    Term(("error", "attempt"), {"timeout|1": -0.5, "timeout|2": -2.0, "timeout|3": -8.0}),
)


def body(**changes: Any) -> dict[str, Any]:
    said: dict[str, Any] = {
        "intercept": 0.25,
        "terms": TERMS,
        "declared": Declared(2.0, -4.0, 20.0),
        "evidence": {("search", "timeout"): 60.0},
        "corrections": {("", "validation"): (10.0, 8.0), ("lost", "validation"): (500.0, 5.0)},
        "golden": [Golden("search", "timeout", 0, 0, probability(0.25 + 1.0 + 0.5))],
        "training": {},
        **changes,
    }
    return body_of(SPEC, said.pop("intercept"), said.pop("terms"), **said)


def text(**changes: Any) -> bytes:
    return text_of(body(**changes))


@pytest.fixture(scope="session")
def model() -> RetryModel:
    return parse(text())
