"""
A specification of its own for tests, so that better edges in the shipped one change none of them.
"""

from guardrails.core.retries.spec import FORMAT, FeatureSpec


SPEC = FeatureSpec.parse(
    {
        "format": FORMAT,
        "version": 1,
        "lookback": 20,
        "label": {"max_calls": 20, "max_ms": 600_000},
        "context": {
            "attempt": [0, 1, 2],
            "err_run": [0, 1, 2],
            "fail_share": [0, 25, 50, 75],
            "ra": [1_000, 5_000, 30_000, 120_000],
            "tool_run": [0, 2],
            "elapsed": [60_000, 600_000],
            "prev": [0],
        },
        "action": {
            "delay": [1_000, 2_000, 5_000, 15_000, 60_000],
            "waited": [-1],
            "between": [0],
            "reach": [1_000, 2_000, 5_000, 15_000, 60_000, 300_000],
        },
        "delays_ms": [0, 2_000, 5_000, 15_000, 60_000, 120_000],
    }
)
