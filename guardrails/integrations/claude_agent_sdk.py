"""
Claude Agent SDK: hooks, `can_use_tool`, and what the responses used.

    guard = GuardrailsHooks(Policy.load("default"))
    async for message in guard.charging(query(prompt="Find it.", options=guard.options())):
        ...
"""

from asyncio import CancelledError
from collections import Counter, OrderedDict
from collections.abc import AsyncIterable, AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Unpack

from guardrails.core.result.content import at
from guardrails.core.tool import Tool
from guardrails.core.values.errors import SessionError, needs
from guardrails.core.values.logs import log, warn_once
from guardrails.core.values.usage import own_price
from guardrails.hooks.clients import MISSING, Answer
from guardrails.hooks.events import EVENTS, answer, share_of
from guardrails.policy.policy import Policy, unheld
from guardrails.policy.sessions import SessionOptions, Sessions, tried
from guardrails.session.session import Session

from . import hosting as kit
from .hosting import HostLoop


with needs("claude-agent-sdk", "this adapter"):
    import claude_agent_sdk as host

    from claude_agent_sdk import _build_input_schema as input_schema

UNHOOKED: Final = ("PermissionDenied", "SessionStart")
"""Of the events, those that the SDK's hooks do not have."""
MAX_OPEN: Final = 10_000
"""Calls that run at once, or whose end nobody reported; sessions whose cost is remembered."""
_TOKENS: Final = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class GuardrailsHooks:
    """
    The tool calls of Claude Code's agents behind a policy, or behind a session that several agents share.

    The SDK's `session_id` names the session; *options* are those of `Policy.session`. Sub-agents have a share of what
    is left. With *envelopes* every text of an MCP server's tool reads as an envelope; without, only a result with a
    note does. As in the SDK, *can_use_tool* is asked if a person has to allow a call. The *timeout* of the hooks is in
    seconds.
    """

    def __init__(
        self,
        guarded: "Policy | Session",
        *,
        envelopes: bool = False,
        can_use_tool: Any = None,
        timeout: float | None = None,
        **options: Unpack[SessionOptions],
    ) -> None:
        self._sessions = Sessions(guarded, **options)
        if limits := unheld(self._sessions.policy, {"run": MISSING["run"]}):
            warn_once(limits, "not held: %s", limits)
        self._person, self._envelopes, self._timeout = can_use_tool, envelopes, timeout
        self._tools: list[Tool] = []
        self.open: OrderedDict[str, tuple[str, Session]] = OrderedDict()
        """By the ids of calls that may run: the SDK's session, and the one that decided."""
        self.stopped: set[str] = set()
        """The SDK's sessions whose run was stopped, and whose result has not come yet."""
        self.totals: OrderedDict[str, float] = OrderedDict()
        """USD that each session of a client has cost, all runs together."""

    def session(self, session_id: str) -> Session:
        """
        The session of the SDK's *session_id*, as each of its messages has it.
        """
        session = self._sessions.of(session_id)
        session.calls.declare(*self._tools, listed=False)
        return session

    def declare(self, *tools: Any, server: str | None = None) -> None:
        """
        Know *tools* of the SDK (`@tool`) before they are called: their arguments are checked, their hints count. The
        name of their server in `mcp_servers` is *server*; Claude Code puts it before the tools' names. None: they have
        no prefix.
        """
        for tool in tools:
            name = tool.name if server is None else f"mcp__{server}__{tool.name}"
            hints = None if tool.annotations is None else tool.annotations.model_dump(by_alias=True, exclude_none=True)
            self._tools.append(kit.host_tool(name, input_schema(tool), hints=hints))

    @property
    def hooks(self) -> dict[str, list[Any]]:
        """
        For `ClaudeAgentOptions(hooks=...)`. A hook that fails blocks its call if the policy's `on_error` is `deny`.
        """
        events = (event for event in EVENTS if event not in UNHOOKED)
        made = {event: [host.HookMatcher(hooks=[self._hook], timeout=self._timeout)] for event in events}
        if self._sessions.policy.chain.on_error == "deny":
            made["PreToolUse"][0].on_failure = "block"
        return made

    def options(self, options: Any = None) -> Any:
        """
        *options* of the SDK, or new ones, with the hooks and `can_use_tool` beside what they have.
        """
        given = host.ClaudeAgentOptions() if options is None else options
        hooks, own = given.hooks or {}, self.hooks
        hooks = {event: [*hooks.get(event, ()), *own.get(event, ())] for event in {**hooks, **own}}
        if given.can_use_tool not in (None, self.can_use_tool):
            self._person = given.can_use_tool
        return replace(given, hooks=hooks, can_use_tool=None if self._person is None else self.can_use_tool)

    async def can_use_tool(self, tool: str, arguments: dict[str, Any], context: Any) -> Any:
        """
        Ask the person whether a call may run; the reply answers the session too. Without a person nobody allows it.
        """
        key = context.tool_use_id or ""
        _, own = self.open.get(key, ("", None))
        waits = own is not None and await own.ledger.off_loop(_waits, own, key)
        reply = host.PermissionResultDeny(message="Nobody is there who could allow this call.")
        if self._person is not None:
            reply = await self._person(tool, arguments, context)
        if own is None:
            return reply
        if not isinstance(reply, host.PermissionResultAllow):
            how = partial(Session.refuse, reason=reply.message, by="can_use_tool") if waits else _release
            await own.ledger.off_loop(self.end, key, how)
            return reply
        refusal = await own.ledger.off_loop(_refusal, own, key, tool, arguments)
        return reply if refusal is None else host.PermissionResultDeny(message=refusal.to_json())

    async def charging(self, messages: AsyncIterable[Any]) -> AsyncIterator[Any]:
        """
        The *messages* of a run as they are, each response charged once. If the run was stopped, or the model is silent at a limit,
        the `result` is the session's digest.
        """
        stream = _Stream(self, messages)
        try:
            async for message in messages:
                yield await stream.read(message)
        finally:
            await kit.maybe_await(getattr(messages, "aclose", kit.nothing)())
            await stream.end()

    async def _hook(self, event: Any, tool_use_id: str | None, context: Any) -> Answer:
        session, name, key = self.session(event["session_id"]), event["hook_event_name"], event.get("tool_use_id")
        reply = partial(answer, session, event, envelopes=self._envelopes, asks=self._person is not None)
        output = await session.ledger.off_loop(reply)
        if name == "PreToolUse" and key:
            own = session
            try:
                own = await session.ledger.off_loop(share_of, session, event.get("agent_id"))
                if output and await own.calls.ask_approver(key):
                    output = await session.ledger.off_loop(reply)
            except SessionError:
                pass  # it does not wait for a person
            except Exception as error:  # whatever a store raises
                log.error("store failed: %s", error, extra={"session": session.id})
            if output.get("hookSpecificOutput", {}).get("permissionDecision") != "deny":
                _put(self.open, key, (event["session_id"], own))
            if output.get("continue") is False and own is session:
                self.stopped.add(event["session_id"])
        elif key:
            self.open.pop(key, None)
        return output

    def end(self, key: str | None, how: Callable[[Session, str], object]) -> None:
        """
        Let the call be one that does not run now: *how* says so to its session.
        """
        _, own = self.open.pop(key or "", ("", None))
        if own is not None and key:
            with suppress(SessionError):  # it is over
                how(own, key)

    def break_off(self, session_id: str, cause: BaseException) -> None:
        """
        End the calls that run in the SDK's session: they were cancelled.
        """
        for key in [key for key, (name, _) in self.open.items() if name == session_id]:
            self.end(key, lambda own, key: own.complete(key, cause))


@dataclass(slots=True)
class _Response:
    """
    One response of a model, of which the SDK sends a message for each of its blocks.
    """

    key: str | None
    model: str = ""
    usage: Any = None
    calls: int = 0


class _Stream:
    """
    The responses and results of one stream of messages. A response is charged once it is whole: when another message comes.
    """

    def __init__(self, guard: GuardrailsHooks, messages: object) -> None:
        self._guard = guard
        # Each `query` adds up afresh, a client the cost of all of its runs.
        self._totals = OrderedDict() if getattr(messages, "ag_code", None) is host.query.__code__ else guard.totals
        self._name: str | None = None
        self._open: dict[str | None, _Response] = {}
        """By the call whose sub-agent asked; None: the agent itself."""
        self._tokens, self._cost_usd = Counter[str](), 0.0
        """Of the responses since the latest result."""
        self._over = True

    async def read(self, message: Any) -> Any:
        """
        Charge *message*; the one to hand on in its place.
        """
        system = isinstance(message, host.SystemMessage)
        self._name = (message.data.get("session_id") if system else getattr(message, "session_id", None)) or self._name
        if system or isinstance(message, host.StreamEvent):
            return message
        return await self._tried(self._take, message) or message

    async def end(self) -> None:
        """
        Say that the stream is over. If no result came, nobody will end the calls that run.
        """
        if not self._over:
            await self._tried(self._break_off, "the run was broken off")

    async def _tried(self, step: Callable[[Session, Any], Any], value: Any) -> Any:
        if self._name is None:
            return None
        session = self._guard.session(self._name)
        return await session.ledger.off_loop(tried, session, lambda: step(session, value), None)

    def _take(self, session: Session, message: Any) -> Any:
        self._over = isinstance(message, host.ResultMessage)
        if self._over:
            return self._result(session, message)
        asker, answers = getattr(message, "parent_tool_use_id", None), isinstance(message, host.AssistantMessage)
        key = (message.message_id or message.uuid) if answers else None
        if asker in self._open and (not answers or self._open[asker].key != key):
            self._flush(session, asker)
        if answers:
            response = self._open.setdefault(asker, _Response(key, message.model))
            response.usage = message.usage or response.usage
            response.calls += sum(isinstance(block, host.ToolUseBlock) for block in message.content)
        return message

    def _flush(self, session: Session, asker: str | None) -> None:
        response = self._open.pop(asker)
        self._tokens += _tokens(response.usage) if asker is None else Counter()
        self._charge(session, response)

    def _charge(self, session: Session, response: _Response, cost_usd: float | None = None) -> None:
        loop = HostLoop(session, user=False)
        loop.ask()
        used = {"model": response.model, "usage": response.usage, "cost_usd": cost_usd}
        priced = loop.charge(calls=response.calls, key=response.key, **used)
        self._cost_usd += 0.0 if priced is None else priced.cost_usd or 0.0

    def _result(self, session: Session, message: Any) -> Any:
        """
        Charge the last response, and the rest that no response had: only the result knows the whole.
        """
        for asker in [asker for asker in self._open if asker is not None]:
            self._flush(session, asker)
        total, before = message.total_cost_usd, self._totals.get(message.session_id, 0.0)
        own = None if total is None else total - (before if total >= before else 0.0)
        _put(self._totals, message.session_id, before if total is None else total)
        rest, last = None if own is None else max(0.0, own - self._cost_usd), self._open.pop(None, None)
        if last is not None:
            left = _tokens(message.usage) - self._tokens
            last.usage = left if left.total() > _tokens(last.usage).total() else last.usage
            self._charge(session, last, None if own_price(last.model, session.ledger.policy.prices) else rest)
        elif rest:
            self._charge(session, _Response(message.uuid), rest)
        self._tokens, self._cost_usd = Counter(), 0.0
        return self._handed_on(session, message)

    def _handed_on(self, session: Session, message: Any) -> Any:
        """
        The result *message* as it is handed on, once the calls that did not run are ended.
        """
        guard = self._guard
        for denial in message.permission_denials or ():
            guard.end(at(denial, "tool_use_id"), _release)
        aborted = (message.terminal_reason or "").startswith("aborted")
        if aborted:
            self._break_off(session, "the run was interrupted")
        # Claude Code asks the hooks again about a deferred call once its session is gone on with.
        guard.end(at(message, "deferred_tool_use.id"), lambda own, key: own.calls.suspend(key))
        stopped = message.session_id in guard.stopped
        guard.stopped.discard(message.session_id)
        silent = not (message.result or "").strip() and message.structured_output is None
        if stopped or (silent and session.exhausted and not aborted):
            return replace(message, result=session.digest())
        return message

    def _break_off(self, session: Session, why: str) -> None:
        for asker in list(self._open):
            self._flush(session, asker)
        self._guard.break_off(self._name or "", CancelledError(why))


def _release(own: Session, key: str) -> None:
    own.calls.release(key)


def _waits(own: Session, key: str) -> bool:
    """
    Whether the session itself waits for a person. Else the SDK alone does: the call waits for it there too.
    """
    waits = any(one.id == key for one in own.pending())
    if not waits:
        with suppress(SessionError):  # it was answered meanwhile
            own.calls.suspend(key)
    return waits


def _refusal(own: Session, key: str, tool: str, arguments: Any) -> Any:
    with suppress(SessionError):  # nothing waits for it
        own.approve(key, by="can_use_tool")
    return own.decide(tool, arguments, id=key, claim=True).envelope


def _put(latest: "OrderedDict[str, Any]", key: str, value: Any) -> None:
    latest[key] = value
    if len(latest) > MAX_OPEN:
        latest.popitem(last=False)


def _tokens(usage: Any) -> Counter[str]:
    counts = {name: at(usage, name) for name in _TOKENS}
    return Counter({name: count for name, count in counts.items() if isinstance(count, int)})
