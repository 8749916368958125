"""
The interface that tells others of a session, for example OpenTelemetry. Nothing of it is imported here.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from guardrails.core.decision import Decision


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
