"""
Shows a person the work of an agent: its calls, its refusals, and the rest of its budget. On stderr, so that stdout is
the answer.
"""

import json
import sys
import termios

from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import Any, Final, TextIO

from guardrails.core.decision import Decision
from guardrails.core.envelope import MARK
from guardrails.core.values.types import STATUSES
from guardrails.offline.figures import plural
from guardrails.session.calls import ParkedCall


_SHOWN: Final = 100
"""Characters of arguments, texts and messages in a line."""
_ANSWERS: Final = {"y": True, "yes": True, "": False, "n": False, "no": False}


class View:
    """
    Lines as things happen, on *stream*, with what is used and left after each turn.

    The model's text is shown as it comes on *words*, a terminal, if that is given. *quiet*: nothing is shown.
    """

    def __init__(self, stream: TextIO | None = None, *, quiet: bool = False, words: TextIO | None = None) -> None:
        self._stream = None if quiet else stream or sys.stderr
        self.words = None if quiet else words
        """Where the model's text is shown as it comes."""
        self._asking = Lock()
        self._within = False
        """Within a line of the model's text."""
        self.denied = 0
        self.status: Callable[[], str] = str
        """The line of what is used and left."""

    def say(self, line: str) -> None:
        """
        One line.
        """
        self.end()
        _write(self._stream, f"{_clean(line)}\n")

    def text(self, piece: str) -> None:
        """
        The model says *piece*, which goes on where the last one ended.
        """
        _write(self.words, _clean(piece, "\n\t"))
        self._within = self.words is not None and not piece.endswith("\n")

    def end(self) -> None:
        """
        End the line of the model's text.
        """
        if self._within:
            self.text("\n")

    def decided(self, decision: Decision) -> None:
        """
        A call was admitted or refused.
        """
        denial, made = decision.denial, f"{decision.call.tool} {_short(_json(decision.call.arguments))}"
        if denial is None:
            self.say(f"-> {made}")
        elif not decision.pending:
            self.denied += 1
            self.say(f"!! {made} denied, {_short(f'{denial.code}: {denial.message}', 2 * _SHOWN)}")

    def approves(self, call: ParkedCall) -> bool | str | None:
        """
        Ask the person at the terminal whether *call* may run: True, or False or a text, which is why not. Returns None, at
        once, if there is nobody to ask: standard input is no terminal, or nothing is to be shown.
        """
        with self._asking:
            why = f" ({call.reason})" if call.reason else ""
            self.say(f"?? {call.tool} {_json(call.arguments)} needs your approval{why}")
            if not all(one is not None and one.isatty() for one in (self._stream, sys.stdin)):
                self.say("   it waits: nobody can be asked here; `--resume` at a terminal asks")
                return None
            # What was typed before the question was seen is no answer to it.
            termios.tcflush(sys.stdin, termios.TCIFLUSH)
            _write(self._stream, "   Run it, once? y, n, or why not: ")
            line = sys.stdin.readline()
        return _ANSWERS.get(line.strip().lower(), line.strip()) if line else None

    def message(self, item: dict[str, Any]) -> None:
        """
        A message was kept: a result, or what the model said beside its calls.
        """
        if item.get("role") == "tool" or item.get("type") == "function_call_output":
            self._outcome(str(item.get("content") or item.get("output")))
        elif item.get("tool_calls") or item.get("type") == "function_call":
            self.say(f"   [{self.status()}]")
            if item.get("content") and self.words is None:
                self.say(f"   {_short(str(item['content']), 2 * _SHOWN)}")

    def _outcome(self, content: str) -> None:
        own, _, below = content.rpartition(MARK)
        envelope: Any = None
        with suppress(ValueError):
            envelope = json.loads(below)
        if own or not isinstance(envelope, dict):
            envelope = {}
        status, limit = envelope.get("status"), envelope.get("limit_message")
        if status == "error":
            self.say(f"   error, {envelope.get('error_type')}: {_short(str(envelope.get('error_message', '')))}")
        elif status not in STATUSES[2:]:
            # A refusal was told when it was decided.
            self.say(f"   ok, {_short(str(limit))}" if limit else "   ok")


def status_line(progress: dict[str, Any], cost_usd: float, unpriced: int, denied: int) -> str:
    """
    Returns the used part of a budget and its rest: `3 calls (17 left), $0.0012 ($0.9988 left), 1 denied`.
    """
    left = {name.removesuffix("_left"): amount for name, amount in progress.items() if name.endswith("_left")}
    calls, money = left.pop("calls", None), progress.get("cost_left_usd")
    parts = [plural(progress.get("calls_used", 0), "call") + ("" if calls is None else f" ({calls} left)")]
    parts += [f"${cost_usd:.4f}" + ("" if money is None else f" (${money:.4f} left)")]
    parts += [f"{plural(unpriced, 'response')} of unknown price"] if unpriced else []
    return ", ".join([*parts, *(f"{amount} {unit} left" for unit, amount in left.items()), f"{denied} denied"])


def _write(stream: TextIO | None, text: str) -> None:
    if stream is not None:
        stream.write(text)
        stream.flush()


def _json(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _short(text: str, longest: int = _SHOWN) -> str:
    text = " ".join(text.split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _clean(text: str, safe: str = "") -> str:
    # What tools and models wrote must not steer a terminal.
    return "".join(char if char.isprintable() or char in safe else "?" for char in text)
