"""
The agent loop as a state machine: what to do next, until there is an answer.

It knows no wire and does no I/O. A driver, sync or async, asks the model and runs the calls:

    loop = Loop(max_tool_iterations=20)
    while loop.next():
        loop.ask(code of what exhausted the session, or None): whether tools are off
        loop.take(text and calls of the model's turn): `run` its calls, or answer them without running any
    loop.ended, loop.text
"""

from collections.abc import Sized
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from guardrails.core.refusals import ended
from guardrails.core.values.errors import LoopLimitExceeded, SessionError
from guardrails.core.values.types import Denial
from guardrails.session.final_answer import Ended, Ending, Meaning


if TYPE_CHECKING:
    from guardrails.session.session import Session

OnLimit = Literal["answer", "raise"]

MAX_TOOL_ITERATIONS: Final = 20
CUT_ASKS: Final = 2
"""Times the model is asked for one turn if its stream is cut: once, and once more."""
LIMIT_CODE: Final = "loop.max_tool_iterations"


@dataclass(frozen=True, slots=True)
class RequestedCall:
    """
    A tool call as the model wrote it: *arguments* is its text, read by nobody yet.
    """

    id: str
    tool: str
    arguments: Any
    kind: Literal["function", "custom"] = "function"
    """custom: a free-form tool, its whole input is one text."""


@dataclass(frozen=True, slots=True)
class Turn:
    """
    One model response, whatever its wire.
    """

    texts: tuple[str, ...] = ()
    calls: tuple[RequestedCall, ...] = ()
    usage: Any = None
    """As the wire gave it; None where it did not."""
    finish_reason: str | None = None
    """In the words of chat.completions."""
    id: str | None = None
    """The response's own."""

    @property
    def text(self) -> str:
        """
        Its text blocks, joined.
        """
        return "".join(self.texts)


@dataclass(frozen=True, slots=True)
class LoopResult:
    """
    The end of an agent loop.
    """

    answer: str
    ended: Ended
    """answered: of its own accord; forced: with tools switched off; digest: not at all, `session.digest()` speaks."""
    code: str | None
    """Why the answer was forced: the session's code, `loop.max_tool_iterations` or `loop.no_answer`."""
    finish_reason: str | None
    """Of the last response: `length` is a text cut short."""
    requests: int
    iterations: int
    """Requests whose calls were run."""
    messages: list[Any]
    """The whole conversation, the answer last; fit to go on with."""
    session: "Session"


@dataclass(slots=True, kw_only=True)
class Loop(Ending):
    """
    The state of one agent loop.

    After *max_tool_iterations* requests whose calls were run, or once the session is exhausted, the model is asked for
    its final answer without tools. If it calls a tool all the same, no call is run and it is asked once more. If it
    still does not answer, the loop ends without an answer. A model that says nothing at all is asked for its final
    answer once. Raises SessionError if *max_tool_iterations* is below 1.
    """

    max_tool_iterations: int = MAX_TOOL_ITERATIONS
    on_limit: OnLimit = "answer"
    more: int = field(default=0, init=False)
    """Iterations beyond it, as the session was extended by them."""
    requests: int = field(default=0, init=False)
    iterations: int = field(default=0, init=False)
    _cut: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.max_tool_iterations < 1:
            raise SessionError(f"`max_tool_iterations` must be at least 1, not {self.max_tool_iterations}")

    def next(self) -> bool:
        """
        Returns whether another model request is due. LoopLimitExceeded at the limit, with `on_limit="raise"`.
        """
        if self.ended is None and self.on_limit == "raise" and self.iterations >= self.limit:
            raise LoopLimitExceeded(f"max tool iterations ({self.limit}) exceeded")
        return self.ended is None

    @property
    def limit(self) -> int:
        """
        Requests whose calls may be run.
        """
        return self.max_tool_iterations + self.more

    def last(self) -> Denial | None:
        """
        Returns the denial that the last results tell, if no more calls will be run after them. Returns None if more may
        be run.
        """
        if self.iterations < self.limit:
            return None
        return ended(LIMIT_CODE, "Tool call limit", str(self.limit), self.iterations)

    def over(self) -> Denial:
        """
        Returns the refusal of a call that came although the final answer was asked for.
        """
        return (self.last() if self.code == LIMIT_CODE else None) or Ending.over(self)

    def ask(self, exhausted: str | None) -> bool:
        """
        Returns whether the next request asks for the final answer. The code of the limit that exhausted the session is
        *exhausted*, None while it goes on.
        """
        self.requests += 1
        return self.force(exhausted or (LIMIT_CODE if self.iterations >= self.limit else None))

    def cut(self) -> bool:
        """
        Say that the response to the latest request was cut off. Returns whether to ask once more.
        """
        self._cut += 1
        return self._cut < CUT_ASKS

    def take(self, text: str | None, calls: int | Sized = 0) -> Meaning:
        """
        Returns the meaning of a response; see `Ending.take`.
        """
        self._cut = 0
        meaning = Ending.take(self, text, calls)
        self.iterations += meaning == "run"
        return meaning
