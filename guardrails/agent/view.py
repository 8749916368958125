"""
Shows a person the work of an agent: its calls, its refusals, and the rest of its budget. On stderr, so that stdout is
the answer.
"""

import json
import sys

from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import Any, Final, TextIO

from guardrails.core.decision import Decision
from guardrails.core.envelope.text import MARK
from guardrails.core.values.types import STATUSES
from guardrails.session.calls import ParkedCall


_SHOWN: Final = 100
"""Characters of arguments, texts and messages in a line."""


class View:
    """
    Lines as things happen, on *stream*, with what is used and left after each turn.

    The model's text is shown as it comes on *words*, a terminal, if that is given. Each event goes to *events* as an
    object for JSON. A stderr that is gone stops nothing.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        quiet: bool = False,
        answers: TextIO | None = None,
        words: TextIO | None = None,
        events: Callable[[dict[str, Any]], object] | None = None,
    ) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._answers = sys.stdin if answers is None else answers
        self._asking = Lock()
        self._quiet = quiet
        self._words = None if quiet else words
        self._said = ""
        """The text shown since the latest line."""
        self._events = events
        self._begun = False
        self.denied = 0
        self.iterations = 0
        """Responses whose calls were kept."""
        self.status: Callable[[], str] = str
        """The line of what is used and left."""

    def say(self, line: str) -> None:
        """
        One line.
        """
        self.end()
        self._write(f"{_clean(line)}\n")

    def text(self, piece: str) -> None:
        """
        The model says *piece*, which goes on where the last one ended.
        """
        self._event("text", text=piece)
        if self._words is not None and piece:
            self._said += piece
            self._show("".join(char if char.isprintable() or char in "\n\t" else "?" for char in piece))

    def showed(self, answer: str) -> bool:
        """
        Returns whether *answer* stands where answers go, since it was shown as it came.
        """
        return self._words is not None and bool(answer.strip()) and self._said.strip() == answer.strip()

    def end(self) -> None:
        """
        End the line of the model's text.
        """
        if self._said and not self._said.endswith("\n"):
            self._show("\n")
        self._said = ""

    def _show(self, text: str) -> None:
        try:
            if self._words is not None:
                self._words.write(text)
                self._words.flush()
        except (OSError, ValueError):
            # Whoever prints the answer finds out that it was not shown.
            self._words = None

    def decided(self, decision: Decision) -> None:
        """
        A call was admitted or refused.
        """
        call = decision.call
        if decision.pending:
            return
        if decision.allowed:
            self._event("call", id=call.id, tool=call.tool, arguments=call.arguments)
            self.say(f"-> {call.tool} {_short(_json(call.arguments))}")
            return
        self.denied += 1
        denial = decision.denial
        code, why = (None, "") if denial is None else (denial.code, denial.message)
        self._event("denied", id=call.id, tool=call.tool, arguments=call.arguments, code=code, message=why)
        said = "" if denial is None else f"{denial.code}: {denial.message}"
        self.say(f"!! {call.tool} {_short(_json(call.arguments))} denied, {_short(said, 2 * _SHOWN)}")

    def approves(self, call: ParkedCall) -> bool | str | None:
        """
        Ask the person at the terminal whether *call* may run: True, or False or a text, which is why not. Returns None, at
        once, if there is nobody to ask: standard input is no terminal, or nothing is to be shown.
        """
        with self._asking:
            why = f" ({call.reason})" if call.reason else ""
            self.say(f"?? {call.tool} {_json(call.arguments)} needs your approval{why}")
            if self._quiet or not (_is_terminal(self._answers) and _is_terminal(self._stream)):
                self.say("   it waits: nobody can be asked here; `--resume` at a terminal asks")
                return None
            _forget_typed(self._answers)
            self._write("   Run it, once? y, n, or why not: ")
            said = self._answers.readline()
        if not said:
            return None
        said = said.strip()
        return True if said.lower() in ("y", "yes") else False if said.lower() in ("", "n", "no") else said

    def kept(self, item: dict[str, Any]) -> None:
        """
        A message was kept: a result, or what the model said beside its calls.
        """
        if item.get("role") == "tool" or item.get("type") in ("function_call_output", "custom_tool_call_output"):
            self._begun = False
            content = item.get("content") or item.get("output")
            self._event("result", id=item.get("tool_call_id") or item.get("call_id"), content=content)
            outcome = _outcome(content)
            if outcome:
                self.say(f"   {outcome}")
        elif item.get("tool_calls") or item.get("type") in ("function_call", "custom_tool_call"):
            self.iterations += not self._begun
            self._begun = True
            said = str(item.get("content") or "")
            shown = self.showed(said)
            self.say(f"   [{self._used()}]")
            if said and not shown:
                self.say(f"   {_short(said, 2 * _SHOWN)}")

    def _event(self, event: str, **told: Any) -> None:
        if self._events is not None:
            self._events({"event": event, **told})

    def _used(self) -> str:
        try:
            return self.status()
        except Exception as error:  # noqa: BLE001  a view never ends what it shows
            return f"what is used cannot be read: {error}"

    def _write(self, text: str) -> None:
        if self._quiet:
            return
        with suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()


def status_line(progress: dict[str, Any], cost_usd: float, unpriced: int, denied: int) -> str:
    """
    Returns the used part of a budget and its rest: `3 calls (17 left), $0.0012 ($0.9988 left), 1 denied`.
    """
    calls = progress.get("calls_used", 0)
    parts = [_used(f"{calls} call{'' if calls == 1 else 's'}", progress.get("calls_left"))]
    left = progress.get("cost_left_usd")
    parts.append(_used(f"${cost_usd:.4f}", None if left is None else f"${left:.4f}"))
    if unpriced:
        parts.append(f"{unpriced} response{'' if unpriced == 1 else 's'} of unknown price")
    for name, unit in (("turns_left", "turns"), ("tokens_left", "tokens")):
        if name in progress:
            parts.append(f"{progress[name]} {unit} left")
    if "seconds_left" in progress:
        parts.append(f"{_time(progress['seconds_left'])} left")
    parts.append(f"{denied} denied")
    return ", ".join(parts)


def _time(seconds: int) -> str:
    if seconds < 300:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7_200 else f"{seconds // 3_600} h"


def _used(said: str, left: object) -> str:
    return said if left is None else f"{said} ({left} left)"


def _outcome(content: object) -> str:
    if not isinstance(content, str):
        return f"   {_short(str(content))}"
    own, _, below = content.rpartition(MARK)
    said: Any = None
    with suppress(ValueError):
        said = json.loads(below)
    said = said if isinstance(said, dict) else {}
    if not own and said.get("status") == "error":
        return f"error, {said.get('error_type')}: {_short(str(said.get('error_message', '')))}"
    if not own and said.get("status") in STATUSES[2:]:
        return ""
    limit = said.get("limit_message")
    return f"ok{f', {_short(str(limit))}' if limit else ''}"


def _is_terminal(stream: TextIO | None) -> bool:
    with suppress(OSError, ValueError):
        return stream is not None and stream.isatty()
    return False


def _forget_typed(stream: TextIO) -> None:
    # What was typed before the question was seen is no answer to it.
    with suppress(ImportError, OSError, ValueError):
        import termios

        termios.tcflush(stream, termios.TCIFLUSH)


def _json(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _short(text: str, longest: int = _SHOWN) -> str:
    text = " ".join(text.split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _clean(text: str) -> str:
    # What tools and models wrote must not steer a terminal.
    return "".join(char if char.isprintable() else "?" for char in text)
