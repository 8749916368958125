"""
The vocabulary of scripts: the replies of a scripted model.
"""

import json
import re

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final


Body = dict[str, Any]
"""The parsed JSON of a request."""
NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""What the API takes for the name of a tool."""


@dataclass(frozen=True, slots=True)
class Usage:
    """
    Tokens that a reply reports; *cached* of the *prompt* tokens came from the cache.
    """

    prompt: int
    completion: int
    cached: int = 0


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """
    One tool call of a reply; *arguments* is sent as it is, JSON or not, and without *id* the server makes a unique one.
    """

    name: str
    arguments: str
    id: str | None = None


def call(name: str, arguments: Mapping[str, Any] | str | None = None, *, id: str | None = None) -> ScriptedCall:
    """
    A tool call for `Calls`; *arguments* as a mapping, or as text to send malformed JSON.
    """
    text = arguments if isinstance(arguments, str) else json.dumps(dict(arguments or {}), ensure_ascii=False)
    return ScriptedCall(name, text, id)


def reasoning(text: str, id: str = "rs_1") -> Body:
    """
    A reasoning item of Responses with its encrypted content, for the *items* of a reply.
    """
    summary = [{"type": "summary_text", "text": text}]
    return {"id": id, "type": "reasoning", "summary": summary, "encrypted_content": f"sealed {text}"}


@dataclass(frozen=True, slots=True)
class Text:
    """
    An answer in text. Empty text is a model that answers nothing.

    *usage*: `True` reports an estimate (a token for every four characters), `False` none, as some servers do.
    """

    text: str = ""
    usage: Usage | bool = True
    finish_reason: str | None = "stop"
    refusal: str | None = None
    items: tuple[Body, ...] = ()
    """Over Responses, further output items that come first, as they are: `reasoning("...")`."""


@dataclass(frozen=True, slots=True, init=False)
class Calls:
    """
    One assistant turn with one or more tool calls: `Calls(call("grep", {"pattern": "error"}), call("ls"))`.

    `finish_reason="length"` with arguments cut in the middle is a model that ran out of tokens. *usage* and *items* as for
    `Text`.
    """

    calls: tuple[ScriptedCall, ...]
    text: str
    usage: Usage | bool
    finish_reason: str | None
    items: tuple[Body, ...]

    def __init__(
        self,
        *calls: ScriptedCall,
        text: str = "",
        usage: Usage | bool = True,
        finish_reason: str | None = "tool_calls",
        items: tuple[Body, ...] = (),
    ) -> None:
        object.__setattr__(self, "calls", calls)
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "usage", usage)
        object.__setattr__(self, "finish_reason", finish_reason)
        object.__setattr__(self, "items", items)


@dataclass(frozen=True, slots=True)
class Fail:
    """
    An HTTP error in the API's shape: `Fail(429, {"Retry-After": "2"})`, `Fail(500)`.
    """

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    message: str = "scripted failure"
    code: str | None = None
    param: str | None = None

    @property
    def body(self) -> Body:
        """
        The error object that the API sends.
        """
        return {"error": {"message": self.message, "type": self._type, "param": self.param, "code": self.code}}

    @property
    def _type(self) -> str:
        if self.status == 429:
            return "rate_limit_error"
        return "server_error" if self.status >= 500 else "invalid_request_error"


def refused(message: str, param: str | None = None) -> Fail:
    """
    The API's answer to a request that it does not take.
    """
    return Fail(400, message=message, param=param)


@dataclass(frozen=True, slots=True)
class Failed:
    """
    A response that fails after it has begun: over Responses one that says so, over chat.completions an error in the stream.
    """

    message: str = "scripted failure"
    code: str = "server_error"


@dataclass(frozen=True, slots=True)
class BrokenStream:
    """
    *reply*, but the connection is lost after its first *after* events (not streamed: in the middle of the body).
    """

    reply: Text | Calls
    after: int = 2


@dataclass(frozen=True, slots=True)
class Raw:
    """
    A body sent as it is, whole or streamed: `Raw("<html>...", "text/html")` is a server that lies.
    """

    body: str | bytes = b""
    content_type: str = "application/json"
    status: int = 200

    @property
    def data(self) -> bytes:
        """
        The bytes of the body.
        """
        return self.body.encode() if isinstance(self.body, str) else self.body


@dataclass(frozen=True, slots=True)
class Delayed:
    """
    *reply*, *seconds* late.
    """

    reply: "Reply"
    seconds: float


Reply = Text | Calls | Fail | Failed | BrokenStream | Raw | Delayed
Script = Callable[[Body, int], Reply]
"""Of a request and its number, counted from 0 over the valid ones, what the model says."""


def used(reply: "Text | Calls", read: object) -> Usage | None:
    """
    Returns the usage of *reply* to a request of *read*: as scripted, or estimated at four characters a token. None if
    the script says so.
    """
    if isinstance(reply.usage, Usage):
        return reply.usage
    if reply.usage is False:
        return None
    written = sum(len(c.name) + len(c.arguments) for c in reply.calls) if isinstance(reply, Calls) else 0
    return Usage(_tokens(len(json.dumps(read, ensure_ascii=False))), _tokens(written + len(reply.text)))


def _tokens(characters: int) -> int:
    return -(-characters // 4)


def as_script(script: Script | Sequence[Reply]) -> Script:
    """
    *script* as a function; a list is played in order, and a request beyond its end fails.
    """
    if callable(script):
        return script
    replies = list(script)

    def play(body: Body, n: int) -> Reply:
        if n < len(replies):
            return replies[n]
        return Fail(400, message=f"the script has {len(replies)} replies, this is request {n + 1}")

    return play


def obeying(script: Script | Sequence[Reply], answer: str) -> Script:
    """
    *script* as a model that obeys: where `tool_choice` is `none`, or no tools are listed, it says *answer*.
    """
    play = as_script(script)

    def obey(body: Body, n: int) -> Reply:
        if body.get("tool_choice") == "none" or not body.get("tools"):
            return Text(answer)
        return play(body, n)

    return obey
