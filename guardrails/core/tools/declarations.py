"""
The declarations of a tool by keywords.
"""

from typing import Literal, TypedDict

from guardrails.core.tools.failure_rules import ResultClassifier


class Declarations(TypedDict, total=False):
    """
    The fields of `Tool` but its parameters, as those who make one of a function take them.
    """

    name: str
    description: str
    read_only: bool | None
    idempotent: bool | None
    destructive: bool | None
    repeats: Literal["allow", "evidence", "ask"] | None
    polling: bool
    stable: bool
    retryable: bool | None
    cost_usd: float
    tokens: int
    timeout: float | None
    """Seconds."""
    same_thread: bool
    result: ResultClassifier | None
    more: str
    total: str
    returns_envelope: bool
    ask_user: tuple[str, ...]
    paths: tuple[str, ...]
    commands: tuple[str, ...]
    labels: tuple[str, ...]
    held: str
