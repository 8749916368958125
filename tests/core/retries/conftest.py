"""
A small model that is made by hand, so that every probability can be worked out on paper.
"""

from typing import Any

import pytest

from guardrails.core.retries.model import RetryModel, parse, text_of


def body(**changes: Any) -> dict[str, Any]:
    rates = {"timeout": 1.0, "auth": -5.0, "validation": -6.0, "precondition": -4.0, "exec_nonzero": -3.0}
    errors = {f"{error} between {between}": rate for error, rate in rates.items() for between in (0, 1)}
    delays = {f"timeout delay {level}": weight for level, weight in ((0, -2.0), (1, -1.5), (2, -1.0))}
    odds = ((1, -0.5), (2, -2.0), (3, -8.0))
    attempts = {f"timeout run {run} attempt {attempt}": odd for run in range(6) for attempt, odd in odds}
    return {
        "intercept": 0.25,
        "weights": {**errors, **delays, **attempts, "precondition between 1": 3.0},
        "tools": {"search": {"all": 0.5}, "odd|name\n\"'": {"all": -0.5, "timeout": 2.0}},
        "evidence": {"search": {"timeout": 60.0}},
        "corrections": {"": {"validation": [10.0, 8.0]}, "lost": {"validation": [500.0, 5.0]}},
        "profiles": [],
        "training": {},
        **changes,
    }


def text(**changes: Any) -> bytes:
    return text_of(body(**changes))


def constant(logit: float, **changes: Any) -> bytes:
    """
    A model that says the same of everything.
    """
    return text(**{"intercept": logit, "weights": {}, "tools": {}, "evidence": {}, **changes})


@pytest.fixture(scope="session")
def model() -> RetryModel:
    return parse(text())
