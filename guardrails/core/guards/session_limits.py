"""
The base of a guard that holds the limits of a session: they can be raised, shared with a child, and told.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol


if TYPE_CHECKING:
    from guardrails.core.state.state import SessionState
    from guardrails.core.values.types import Denial


Far = Callable[["SessionState", int, int], bool]
"""Of a state, the time (ms) and the estimate of a call (micro-dollars); False says nothing."""


class Limits(Protocol):
    """
    Limits by the state's names for them, `max_calls`, `max_turns`, `max_cost`, `max_tokens` and `max_elapsed`; money in
    micro-dollars, time in milliseconds.
    """

    @property
    def priced(self) -> bool:
        """
        Whether money is limited.
        """

    @property
    def closes(self) -> bool:
        """
        Whether a model response of unknown price ends the session.
        """

    @property
    def reserves(self) -> bool:
        """
        Whether money or tokens are limited, so that estimates of them are held.
        """

    @property
    def go_on(self) -> Mapping[str, object]:
        """
        The amounts that a further message of the user opens, by limit.
        """

    def limit(self, state: "SessionState", name: str) -> int | None:
        """
        Returns the limit *name*. Returns None if there is none.
        """

    def left(self, state: "SessionState", name: str, now_ms: int) -> int | None:
        """
        Returns the rest of the limit *name* that is not held for a child. Returns None if there is no such limit.
        """

    def progress(self, state: "SessionState", now_ms: int, *, near: bool = False) -> dict[str, object]:
        """
        Returns the used amounts, and the rest of the limits that are set, or of those that are *near*; money in USD, time in seconds.
        """

    def outgrown(self, state: "SessionState", turn: int, tool: int) -> "Denial | None":
        """
        Returns the cause that neither a model *turn* nor a *tool*, the cheapest of each in micro-dollars, fits into
        what is left.
        """
