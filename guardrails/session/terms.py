"""
What a session needs of the policy that it is made of, which stands above it.
"""

from typing import Protocol

from guardrails.core.engine.chain import Chain
from guardrails.core.values.usage import Price

from .results import Results


class Models(Protocol):
    """
    Model files that may change while a session runs.
    """

    def refresh(self, now_ms: int) -> None:
        """
        Load again what has changed on disk.
        """


class Terms(Protocol):
    """
    A policy, as its sessions know it.
    """

    name: str
    chain: Chain
    scopes: dict[str, Chain]
    prices: dict[str, Price]
    results: Results
    wholes: Results

    @property
    def model_files(self) -> Models | None:
        """
        The model files of its guards. Returns None if no guard has one.
        """
