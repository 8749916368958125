"""
The usage and the end of a run, as the messages of Claude Agent SDK tell them.
"""

from asyncio import CancelledError
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from guardrails.core.values.errors import SessionError, needs
from guardrails.core.values.logs import log
from guardrails.core.values.usage import own_price
from guardrails.integrations.hosting import Asking
from guardrails.session.session import Session


with needs("claude-agent-sdk", "this adapter"):
    from claude_agent_sdk import AssistantMessage, ResultMessage, StreamEvent, SystemMessage, ToolUseBlock, query

MAX_OPEN: Final = 10_000
"""Calls that run at once, or whose end nobody told; sessions of which is remembered what they cost."""
_TOKENS: Final = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class Running:
    """
    The knowledge that hooks and messages share: *session* finds the session of the SDK's `session_id`.
    """

    def __init__(self, session: Callable[[str], Session]) -> None:
        self.session = session
        self.open: OrderedDict[str, tuple[str, Session]] = OrderedDict()
        """By the ids of calls that may run: the SDK's session, and the one that decided."""
        self.stopped: set[str] = set()
        """The SDK's sessions whose run was stopped, and not told so yet."""
        self.totals: OrderedDict[str, float] = OrderedDict()
        """USD that a client has told of each of its sessions, all runs together."""

    def begin(self, call_id: str, name: str, own: Session) -> None:
        """
        Let the call be one that may run, as *own* decided, in the SDK's session *name*.
        """
        self.open[call_id] = name, own
        if len(self.open) > MAX_OPEN:
            self.open.popitem(last=False)

    def end(self, call_id: str | None, how: Callable[[Session, str], object]) -> None:
        """
        Let the call be one that does not run now, as *how* says to its session.
        """
        _, own = self.open.pop(call_id or "", ("", None))
        if own is not None and call_id:
            with suppress(SessionError):  # it is over
                how(own, call_id)


@dataclass(slots=True)
class _Response:
    """
    One response of a model, which the SDK tells in a message for each of its blocks.
    """

    key: str | None
    model: str
    usage: Any
    calls: int = 0


class Told:
    """
    The responses and results that one stream of messages has told. A response is charged once it is whole: when another
    message comes.
    """

    def __init__(self, running: Running, messages: object) -> None:
        self._running = running
        # Each `query` adds up afresh, a client what all of its runs have cost.
        self._totals = {} if getattr(messages, "ag_code", None) is query.__code__ else running.totals
        self._name: str | None = None
        self._held: dict[str | None, _Response] = {}
        """By the call whose sub-agent asked; None: the agent itself."""
        self._tokens = dict.fromkeys(_TOKENS, 0)
        self._cost_usd = 0.0
        self._ended = True

    async def heard(self, message: Any) -> Any:
        """
        Charge what *message* says; what is to be handed on in its place.
        """
        of = (
            message.data.get("session_id")
            if isinstance(message, SystemMessage)
            else getattr(message, "session_id", None)
        )
        self._name = of or self._name
        if isinstance(message, (StreamEvent, SystemMessage)):
            return message
        return await self._told(self._take, message) or message

    async def end(self) -> None:
        """
        Say that the stream is over. If no result came, nobody will end the calls that run: they were cancelled.
        """
        if not self._ended:
            await self._told(self._break_off, CancelledError("the run was broken off"))

    async def _told(self, tell: Callable[[Session, Any], Any], what: Any) -> Any:
        if self._name is None:
            return None
        session = self._running.session(self._name)
        try:
            return await session.ledger.off_loop(tell, session, what)
        except Exception as error:  # noqa: BLE001  whatever a store raises: the conversation goes on
            log.error("store failed: %s", error, extra={"session": session.id})
            return None

    def _take(self, session: Session, message: Any) -> Any:
        self._ended = isinstance(message, ResultMessage)
        if self._ended:
            return self._result(session, message)
        asker = getattr(message, "parent_tool_use_id", None)
        held = self._held.get(asker)
        if not isinstance(message, AssistantMessage):
            self._flush(session, asker)
            return message
        key = message.message_id or message.uuid
        if held is None or held.key != key:
            self._flush(session, asker)
            held = self._held[asker] = _Response(key, message.model, message.usage)
        held.usage = message.usage or held.usage
        held.calls += sum(isinstance(block, ToolUseBlock) for block in message.content)
        return message

    def _flush(self, session: Session, asker: str | None) -> None:
        held = self._held.pop(asker, None)
        if held is not None:
            if asker is None:
                for name in _TOKENS:
                    self._tokens[name] += _count(held.usage, name)
            self._charge(session, held)

    def _charge(self, session: Session, response: _Response, cost_usd: float | None = None) -> None:
        asking = Asking(session, user=False)
        asking.ask()
        used = {"model": response.model, "usage": response.usage, "cost_usd": cost_usd}
        priced = asking.charge(calls=response.calls, key=response.key, **used)
        self._cost_usd += 0.0 if priced is None else priced.cost_usd or 0.0

    def _result(self, session: Session, message: Any) -> Any:
        """
        Charge what the last response, and all that was told of none, used: only the result knows the whole.
        """
        for asker in [asker for asker in self._held if asker is not None]:
            self._flush(session, asker)
        last, rest = self._held.pop(None, None), self._rest(message)
        if last is not None:
            left = {name: max(0, _count(message.usage, name) - told) for name, told in self._tokens.items()}
            if sum(left.values()) > sum(_count(last.usage, name) for name in _TOKENS):
                last.usage = left
            own = own_price(last.model, session.ledger.policy.prices) is not None
            self._charge(session, last, None if own else rest)
        elif rest:
            self._charge(session, _Response(message.uuid, "", None), rest)
        self._tokens, self._cost_usd = dict.fromkeys(_TOKENS, 0), 0.0
        for denied in message.permission_denials or ():
            self._running.end(denied.get("tool_use_id") if isinstance(denied, Mapping) else None, release)
        aborted = (message.terminal_reason or "").startswith("aborted")
        if aborted:
            self._break_off(session, CancelledError("the run was interrupted"))
        if message.deferred_tool_use is not None:
            # Claude Code asks the hooks again once its session is gone on with.
            self._running.end(message.deferred_tool_use.id, suspend)
        stopped = message.session_id in self._running.stopped
        self._running.stopped.discard(message.session_id)
        silent = not (message.result or "").strip() and message.structured_output is None
        if stopped or (silent and session.exhausted and not aborted):
            return replace(message, result=session.digest())
        return message

    def _rest(self, message: Any) -> float | None:
        """
        USD of the run that were not charged yet. Returns None if the SDK does not say.
        """
        total = message.total_cost_usd
        if total is None:
            return None
        before = self._totals.get(message.session_id, 0.0)
        self._totals[message.session_id] = total
        if len(self._totals) > MAX_OPEN:
            del self._totals[next(iter(self._totals))]
        return max(0.0, (total - before if total >= before else total) - self._cost_usd)

    def _break_off(self, session: Session, cause: BaseException) -> None:
        for asker in list(self._held):
            self._flush(session, asker)
        for call_id, (name, _) in list(self._running.open.items()):
            if name == self._name:
                self._running.end(call_id, lambda own, which: own.complete(which, cause))


def release(own: Session, call_id: str) -> None:
    """
    A call that will never run.
    """
    own.calls.release(call_id)


def suspend(own: Session, call_id: str) -> None:
    """
    A call that waits for a person, who may take longer than calls run.
    """
    own.calls.suspend(call_id)


def _count(usage: Any, name: str) -> int:
    count = usage.get(name) if isinstance(usage, Mapping) else None
    return count if isinstance(count, int) else 0
