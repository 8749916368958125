"""
The needs of a loop from the wire it speaks: chat.completions or Responses.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from guardrails.core.tools.tool import Wire as Form
from guardrails.core.tools.tool_choice import ToolChoice

from .loop import RequestedCall, Turn


Message = dict[str, Any]
"""A message of chat.completions, an item of Responses."""


class Reply(Protocol):
    """
    A model's response as it comes in, from one object or from the events of a stream.
    """

    usage: Any
    """As far as it is known by now."""

    def read(self, response: Any) -> str:
        """
        Take in a whole response; its text. ResponseFailed if the server says that it failed.
        """
        ...

    def add(self, event: Any) -> str:
        """
        Take in one event of a stream; the text it brought. Raises as `read` does.
        """
        ...

    def ended(self, *, closed: bool | None) -> None:
        """
        All has come; *closed*: by the mark that its protocol has for a stream's end, None if there was no stream.
        ResponseFailed if it was cut, or holds no response.
        """
        ...

    def turn(self, n: int) -> Turn:
        """
        The response for the loop, once it is all there. Calls without an id of their own get one made of *n*, which is
        to be unique. Raises ResponseFailed if a part of it is missing.
        """
        ...

    def messages(self) -> list[Message]:
        """
        Returns the messages that the conversation keeps of it, with the ids that `turn` gave. They are empty if nothing
        in it is worth keeping.
        """
        ...


@dataclass(frozen=True, slots=True)
class Sent:
    """
    The part of the conversation that a request carries.
    """

    messages: Sequence[Any]
    previous: str | None = None
    """The response that the server is to go on from; None: *messages* are all there is."""


class Wire(Protocol):
    """
    One API of the client.
    """

    @property
    def form(self) -> Form:
        """
        The form in which tools are listed.
        """
        ...

    @property
    def chained(self) -> bool:
        """
        Returns whether the server keeps the conversation, and each request brings only what is new.
        """
        ...

    def check(self, options: Mapping[str, Any]) -> None:
        """
        TypeError for request options that this way to talk excludes.
        """
        ...

    def create(self, client: Any) -> Callable[..., Any]:
        """
        Returns the client's function that sends a request.
        """
        ...

    def reply(self) -> Reply:
        """
        A response, still empty.
        """
        ...

    def request(self, sent: Sent, *, stream: bool) -> dict[str, Any]:
        """
        The parts of a request that are the wire's own.
        """
        ...

    def tool(self, listed: Mapping[str, Any]) -> dict[str, Any]:
        """
        An entry of the other wire's tools as this one lists it; its own as they are.
        """
        ...

    def choice(self, choice: ToolChoice) -> ToolChoice:
        """
        A tool choice of the other wire as this one says it.
        """
        ...

    def result(self, call: RequestedCall, text: str) -> Message:
        """
        Returns the message that answers *call*, without control characters.
        """
        ...

    def answer(self, text: str) -> Message:
        """
        An answer that no model gave, as the assistant's.
        """
        ...

    def calls_of(self, message: Any) -> Iterable[RequestedCall]:
        """
        The calls that *message* of a conversation makes.
        """
        ...

    def answers(self, message: Any) -> str | None:
        """
        Returns the id of the call that *message* answers, None if it answers no call.
        """
        ...


def part(of: Any, name: str) -> Any:
    """
    The field *name* of what came from a client or was written by hand.
    """
    return of.get(name) if isinstance(of, Mapping) else getattr(of, name, None)
