"""
The options that the SDK's own tool runner takes, and a guarded one hands on.
"""

from typing import Any, TypedDict


class RunnerOptions(TypedDict, total=False):
    """
    The options of a runner, beside its functions.
    """

    browser: Any
    computer: Any
    early_execution: Any


class TurnOptions(TypedDict, total=False):
    """
    Of `iterate`, and so of `run`.
    """

    stream: bool
    eager: bool
    max_concurrent_calls: int
    on_event: Any
    cancelled: Any
    approve_safety_checks: Any
    before_action: Any
    ledger: Any
    context_budget: Any
    on_diagnostic: Any
    approve_mcp: Any
    before_early_call: Any
