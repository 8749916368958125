"""
A policy, and telemetry, as sessions know them.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from guardrails.core.chain import Chain
from guardrails.core.decision import Decision
from guardrails.core.values.types import Denial
from guardrails.core.values.usage import Price

from .calls.results import Results


Lay = Callable[[Chain], Chain]
"""What a session, or a host, puts on a policy's chain: tools, limits, a rule."""


class Terms(Protocol):
    """
    A policy, as its sessions know it.
    """

    name: str
    chain: Chain
    """By which sessions know it: another one where the policy has changed."""
    stop: Denial | None
    due_s: float
    """When it is to look again whether `stop` or `chain` have changed, by `time.monotonic`."""
    scopes: dict[str, Chain]
    prices: dict[str, Price]
    results: Results
    model_files: Any
    """The model files of its guards, which may change while a session runs. None if no guard has one."""

    @property
    def changed(self) -> bool:
        """
        Whether its files have changed since it was loaded: then each session tells which one it goes by.
        """

    @property
    def digest(self) -> str | None:
        """
        The digest of the contents of its files. None if they are not looked at.
        """

    def look(self) -> None:
        """
        Look again, and say when next.
        """


class Telemetry(Protocol):
    """
    Tells of the calls of sessions elsewhere: `guardrails.integrations.otel.Telemetry` is one.
    """

    @property
    def session(self) -> Callable[..., Any]:
        """
        Makes a session that tells of its calls, from the arguments of `Session`.
        """

    def within(self, carrier: object) -> AbstractContextManager[None]:
        """
        Returns a block that belongs to the trace which the *carrier* names, a mapping from elsewhere.
        """

    def running(self, session: str, carrier: object = None) -> AbstractContextManager[None]:
        """
        Returns a block that is the run of an agent, whose session has the id *session*; *carrier* is as for `within`.
        """

    def carrier(self, decision: Decision | None = None) -> dict[str, str]:
        """
        Returns the headers that name the open call of *decision* to another process, or the work that runs at present.
        """


def laid_on(chain: Chain, laid: Iterable[Lay]) -> Chain:
    """
    Returns *chain* with all that is *laid* on it, in order.
    """
    for lay in laid:
        chain = lay(chain)
    return chain
