"""
A conversation that grows past what a model reads: what of it goes first.
"""

import json
import re

from collections.abc import Callable, Sequence
from typing import Any, Final

import orjson

from guardrails.core.values.usage import Usage
from guardrails.integrations.openai.wire import Wire
from guardrails.session.turns.prices import context_of


CONTEXT: Final = 128_000
"""Tokens that a model reads if nobody says."""
_ANY: Final = 4_096
"""Tokens that any model reads: below that nobody is asked how many it does."""
FULL: Final = 0.75
"""Of them, from which on messages are cut: the rest is for tools, the digest, the answer."""
LEFT: Final = 0.4
"""Of them, what a cut leaves: so that not each request is cut, and a cache of prompts holds."""
SHRUNK: Final = 4
"""Times that a server may say that a conversation is too long."""
_SLOPE: Final = 0.3
"""Tokens a byte until responses tell."""
_SLOPES: Final = (0.1, 1.0)
_STUB_BYTES: Final = 600
"""A shorter result stays."""
_LEAST_BYTES: Final = 1_000
"""Of each result that the model has not read yet."""
_TOO_LONG: Final = re.compile(
    r"context_length_exceeded|context (length|size|window|limit)|prompt is too long|too many (input )?tokens"
    r"|maximum (prompt|input) length|exceeds? the (model's )?(max|context|number of tokens)",
    re.IGNORECASE,
)
_SAID: Final = ("system", "developer", "user")
_KEPT: Final = ("status", "code", "error_type", "handle", "limit_reached", "limit_message")
"""Of an envelope, in a result that is left out."""
_GONE: Final = (
    "This result was taken out of the conversation, which had grown too long. If you need it again and did not note it, "
    "call the tool again."
)
_CUT: Final = "This result was cut, since it does not fit into the conversation. Ask for less at once."


def too_long(error: BaseException) -> bool:
    """
    Returns whether *error* is a server's word for a request that is longer than its model reads.
    """
    return _TOO_LONG.search(f"{getattr(error, 'code', '')} {error} {getattr(error, 'body', '')}") is not None


class Compaction:
    """
    The `compact` of a loop on *wire*, from three quarters of *context* tokens on (None: the number that *model* is
    known to read). Old results go first, then old turns, then the end of unread results. Each call keeps a result.

    Sizes are those that responses tell (`told`), and by bytes in between. *say* is told of each cut.
    """

    def __init__(self, wire: Wire, model: str, context: int | None, say: Callable[[str], object]) -> None:
        self.requests = 0
        """Times that it was asked."""
        self._wire = wire
        self._say = say
        self._model = model
        self._context = context
        self._slope = _SLOPE
        self._told: tuple[int, int] | None = None
        self._sent = 0
        self._shrunk = 0

    def told(self, usage: Usage) -> None:
        """
        A response says what it *used*.
        """
        if not usage.input:
            return
        if self._told is not None and abs(self._sent - self._told[0]) > _LEAST_BYTES:
            slope = (usage.input - self._told[1]) / (self._sent - self._told[0])
            least, most = _SLOPES
            self._slope = min(max(slope, least), most)
        self._told = self._sent, usage.input

    def shrink(self) -> bool:
        """
        The server says that it was too long: go on with half of it. Returns False if that was tried often enough.
        """
        self._shrunk += 1
        self._context = round(min(self._room, self._estimate(self._sent) / FULL) / 2)
        return self._shrunk <= SHRUNK

    def __call__(self, messages: list[Any]) -> list[Any]:
        """
        Returns the messages of *messages* to go on with.
        """
        self.requests += 1
        sizes = [_size(message) for message in messages]
        self._sent = before = sum(sizes)
        if (
            self._estimate(before) <= min(_ANY, self._context or _ANY) * FULL
            or self._estimate(before) <= self._room * FULL
        ):
            return messages
        kept = self._cut(messages, sizes, self._bytes(self._room * LEFT))
        self._sent = sum(sizes)
        if self._sent < before:
            self._say(
                f"   note: the conversation grew too long: {before - self._sent:,} bytes of it are not sent again"
            )
        return kept

    @property
    def _room(self) -> int:
        if self._context is None:
            self._context = context_of(self._model) or CONTEXT
        return self._context

    def _estimate(self, size: int) -> float:
        sent, tokens = self._told or (0, 0)
        return tokens + (size - sent) * self._slope

    def _bytes(self, tokens: float) -> float:
        sent, told = self._told or (0, 0)
        return sent + (tokens - told) / self._slope

    def _cut(self, messages: list[Any], sizes: list[int], room: float) -> list[Any]:
        """
        *messages* in *room* bytes, as far as that goes; *sizes* follows.
        """
        found = list(messages)
        old = self._turns(messages)
        unread = old.pop() if old and old[-1][-1] == len(messages) - 1 else []

        def shorten(at: int, keep: int, hint: str) -> None:
            shorter = _shortened(found[at], keep, hint)
            if (size := _size(shorter)) < sizes[at]:
                found[at], sizes[at] = shorter, size

        for turn in old:
            for at in turn:
                if sum(sizes) > room and sizes[at] > _STUB_BYTES and self._wire.answers(found[at]) is not None:
                    shorten(at, 0, _GONE)
        for turn in old:
            if sum(sizes) > room:
                for at in turn:
                    sizes[at] = 0
        results = [at for at in unread if self._wire.answers(found[at]) is not None]
        if sum(sizes) > room and results:
            others = sum(sizes) - sum(sizes[at] for at in results)
            keep = max(round((room - others) / len(results)) - _STUB_BYTES, _LEAST_BYTES)
            for at in results:
                if sizes[at] > keep + _STUB_BYTES:
                    shorten(at, keep, _CUT)
        return [message for message, size in zip(found, sizes, strict=True) if size]

    def _turns(self, messages: Sequence[Any]) -> list[list[int]]:
        """
        The places of each response with the results of its calls. A message to the model is in no turn: it stays.
        """
        turns: list[list[int]] = []
        answered = True
        for at, message in enumerate(messages):
            if message.get("role") in _SAID:
                answered = True
                continue
            answers = self._wire.answers(message) is not None
            if turns and (answers or not answered):
                turns[-1].append(at)
            else:
                turns.append([at])
            answered = answers
        return turns


def _shortened(message: dict[str, Any], keep: int, hint: str) -> dict[str, Any]:
    """
    The result *message* with *keep* bytes of what it shows, and what is to be said of that.
    """
    name = "output" if "output" in message else "content"
    text = message[name] if isinstance(message[name], str) else orjson.dumps(message[name], default=str).decode()
    try:
        read = orjson.loads(text)
    except ValueError:
        read = None
    envelope = {key: read[key] for key in _KEPT if key in read} if isinstance(read, dict) else {}
    if keep:
        shown = read.get("result", text) if isinstance(read, dict) else text
        shown = shown if isinstance(shown, str) else orjson.dumps(shown, default=str).decode()
        envelope["result"] = shown.encode(errors="replace")[:keep].decode(errors="ignore")
    told = {**envelope, "truncated": True, "original_bytes": len(text.encode(errors="replace")), "hint": hint}
    return {**message, name: orjson.dumps(told).decode()}


def _size(message: Any) -> int:
    return len(json.dumps(message, ensure_ascii=False, default=str).encode(errors="replace"))
