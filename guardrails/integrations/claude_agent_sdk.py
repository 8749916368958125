"""
Claude Agent SDK: hooks, `can_use_tool`, and what the responses used.

    guard = GuardrailsHooks(Policy.load("default"))
    async for message in guard.charging(query(prompt="Find it.", options=guard.options())):
        ...
"""

from asyncio import CancelledError
from collections import OrderedDict
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Unpack

from pydantic import PydanticUserError, TypeAdapter, create_model

from guardrails.core.tools.tool import Tool
from guardrails.core.values.errors import SessionError, needs
from guardrails.core.values.logs import log
from guardrails.core.values.usage import own_price
from guardrails.hooks.clients import Answer
from guardrails.hooks.events import EVENTS, answer, share_of
from guardrails.policy.sessions import SessionOptions, Sessions, tried
from guardrails.session.session import Session

from .hosting import Asking, declared


with needs("claude-agent-sdk", "this adapter"):
    import claude_agent_sdk as host

if TYPE_CHECKING:
    from guardrails.core.decision import Decision
    from guardrails.policy.policy import Policy

UNHOOKED: Final = ("PermissionDenied", "SessionStart")
"""Of the events, those that the SDK's hooks do not have."""
MAX_OPEN: Final = 10_000
"""Calls that run at once, or whose end nobody told; sessions of which is remembered what they cost."""
_TOKENS: Final = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class _Running:
    """
    The knowledge that hooks and messages share.
    """

    def __init__(self) -> None:
        self.open: OrderedDict[str, tuple[str, Session]] = OrderedDict()
        """By the ids of calls that may run: the SDK's session, and the one that decided."""
        self.stopped: set[str] = set()
        """The SDK's sessions whose run was stopped, and not told so yet."""
        self.totals: OrderedDict[str, float] = OrderedDict()
        """USD that a client has told of each of its sessions, all runs together."""

    def end(self, call_id: str | None, how: Callable[[Session, str], object]) -> None:
        """
        Let the call be one that does not run now, as *how* says to its session.
        """
        _, own = self.open.pop(call_id or "", ("", None))
        if own is not None and call_id:
            with suppress(SessionError):  # it is over
                how(own, call_id)

    def break_off(self, session_id: str, cause: BaseException) -> None:
        """
        End the calls that run in the SDK's session: they were cancelled.
        """
        for call_id in [call_id for call_id, (name, _) in self.open.items() if name == session_id]:
            self.end(call_id, lambda own, which: own.complete(which, cause))

    def unpaid(self, message: Any, totals: dict[str, float]) -> float | None:
        """
        USD that the result *message* tells of its run, where *totals* are those of the runs before. None: it tells none.
        """
        total, before = message.total_cost_usd, totals.get(message.session_id, 0.0)
        if total is None:
            return None
        totals[message.session_id] = total
        _keep_latest(self.totals)
        return float(total - before if total >= before else total)


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
        self._person, self._envelopes, self._timeout = can_use_tool, envelopes, timeout
        self._tools: list[Tool] = []
        self._running = _Running()

    def session(self, session_id: str) -> Session:
        """
        The session of the SDK's *session_id*, as each of its messages has it.
        """
        session = self._sessions.of(session_id)
        session.calls.declare(*self._tools)
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
            self._tools.append(declared(name, _schema(tool.input_schema), hints=hints))

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
        Ask the person whether a call may run; what is said answers the session too. Without a person nobody allows it.
        """
        call_id = context.tool_use_id or ""
        _, own = self._running.open.get(call_id, ("", None))
        waits = own is not None and await own.ledger.off_loop(_waits, own, call_id)
        if self._person is None:
            said = host.PermissionResultDeny(message="Nobody is there who could allow this call.")
        else:
            said = await self._person(tool, arguments, context)
        if own is None:
            return said
        if not isinstance(said, host.PermissionResultAllow):
            how = partial(Session.refuse, reason=said.message, by="can_use_tool") if waits else _release
            await own.ledger.off_loop(self._running.end, call_id, how)
            return said
        decision = await own.ledger.off_loop(_allowed, own, call_id, (tool, arguments))
        return said if decision.envelope is None else host.PermissionResultDeny(message=decision.envelope.to_json())

    async def charging(self, messages: AsyncIterable[Any]) -> AsyncIterator[Any]:
        """
        The *messages* of a run as they are, each response charged once. If the run was stopped, or the model is silent at a limit,
        the `result` is the session's digest.
        """
        told = _Told(self.session, self._running, messages)
        try:
            async for message in messages:
                yield await told.heard(message)
        finally:
            close = getattr(messages, "aclose", None)
            if close is not None:
                await close()
            await told.end()

    async def _hook(self, event: Any, tool_use_id: str | None, context: Any) -> Answer:
        session, name, call_id = self.session(event["session_id"]), event["hook_event_name"], event.get("tool_use_id")
        told = partial(answer, session, event, envelopes=self._envelopes, asks=self._person is not None)
        output = await session.ledger.off_loop(told)
        if name == "PreToolUse" and call_id:
            own = session
            try:
                own = await session.ledger.off_loop(share_of, session, event.get("agent_id"))
                if output and await own.calls.ask_approver(call_id):
                    output = await session.ledger.off_loop(told)
            except SessionError:
                pass  # it does not wait for a person
            except Exception as error:  # whatever a store raises
                log.error("store failed: %s", error, extra={"session": session.id})
            if output.get("hookSpecificOutput", {}).get("permissionDecision") != "deny":
                self._running.open[call_id] = event["session_id"], own
                _keep_latest(self._running.open)
            if output.get("continue") is False and own is session:
                self._running.stopped.add(event["session_id"])
        elif call_id:
            self._running.open.pop(call_id, None)
        return output


@dataclass(slots=True)
class _Response:
    """
    One response of a model, which the SDK tells in a message for each of its blocks.
    """

    key: str | None
    model: str
    usage: Any
    calls: int = 0


class _Told:
    """
    The responses and results that one stream of messages has told. A response is charged once it is whole: when another
    message comes.
    """

    def __init__(self, session: Callable[[str], Session], running: _Running, messages: object) -> None:
        self._session, self._running = session, running
        # Each `query` adds up afresh, a client what all of its runs have cost.
        self._totals = {} if getattr(messages, "ag_code", None) is host.query.__code__ else running.totals
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
        about = isinstance(message, host.SystemMessage)
        self._name = (message.data.get("session_id") if about else getattr(message, "session_id", None)) or self._name
        if about or isinstance(message, host.StreamEvent):
            return message
        return await self._told(self._take, message) or message

    async def end(self) -> None:
        """
        Say that the stream is over. If no result came, nobody will end the calls that run.
        """
        if not self._ended:
            await self._told(self._break_off, "the run was broken off")

    async def _told(self, tell: Callable[[Session, Any], Any], what: Any) -> Any:
        if self._name is None:
            return None
        session = self._session(self._name)
        return await session.ledger.off_loop(tried, session, lambda: tell(session, what), None)

    def _take(self, session: Session, message: Any) -> Any:
        self._ended = isinstance(message, host.ResultMessage)
        if self._ended:
            return self._result(session, message)
        asker = getattr(message, "parent_tool_use_id", None)
        held = self._held.get(asker)
        if not isinstance(message, host.AssistantMessage):
            if held is not None:
                self._flush(session, asker)
            return message
        key = message.message_id or message.uuid
        if held is not None and held.key != key:
            self._flush(session, asker)
        held = self._held.setdefault(asker, _Response(key, message.model, message.usage))
        held.usage = message.usage or held.usage
        held.calls += sum(isinstance(block, host.ToolUseBlock) for block in message.content)
        return message

    def _flush(self, session: Session, asker: str | None) -> None:
        held = self._held.pop(asker)
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
        last, cost_usd = self._held.pop(None, None), self._running.unpaid(message, self._totals)
        rest = None if cost_usd is None else max(0.0, cost_usd - self._cost_usd)
        if last is not None:
            left = {name: max(0, _count(message.usage, name) - told) for name, told in self._tokens.items()}
            if sum(left.values()) > sum(_count(last.usage, name) for name in _TOKENS):
                last.usage = left
            own = own_price(last.model, session.ledger.policy.prices) is not None
            self._charge(session, last, None if own else rest)
        elif rest:
            self._charge(session, _Response(message.uuid, "", None), rest)
        self._tokens, self._cost_usd = dict.fromkeys(_TOKENS, 0), 0.0
        return self._ending(session, message)

    def _ending(self, session: Session, message: Any) -> Any:
        """
        The result *message* as it is handed on, after what it says of calls that did not run.
        """
        running = self._running
        for denied in message.permission_denials or ():
            running.end(denied.get("tool_use_id") if isinstance(denied, Mapping) else None, _release)
        aborted = (message.terminal_reason or "").startswith("aborted")
        if aborted:
            self._break_off(session, "the run was interrupted")
        if message.deferred_tool_use is not None:
            # Claude Code asks the hooks again once its session is gone on with.
            running.end(message.deferred_tool_use.id, lambda own, which: own.calls.suspend(which))
        stopped = message.session_id in running.stopped
        running.stopped.discard(message.session_id)
        silent = not (message.result or "").strip() and message.structured_output is None
        if stopped or (silent and session.exhausted and not aborted):
            return replace(message, result=session.digest())
        return message

    def _break_off(self, session: Session, why: str) -> None:
        for asker in list(self._held):
            self._flush(session, asker)
        self._running.break_off(self._name or "", CancelledError(why))


def _release(own: Session, call_id: str) -> None:
    own.calls.release(call_id)


def _waits(own: Session, call_id: str) -> bool:
    """
    Whether the session itself waits for a person. Else the SDK alone does: the call waits for it there too.
    """
    waits = any(one.id == call_id for one in own.pending())
    if not waits:
        with suppress(SessionError):  # it was answered meanwhile
            own.calls.suspend(call_id)
    return waits


def _allowed(own: Session, call_id: str, call: tuple[str, Any]) -> "Decision":
    with suppress(SessionError):  # nothing waits for it
        own.approve(call_id, by="can_use_tool")
    return own.decide(*call, id=call_id, claim=True)


def _keep_latest(kept: "OrderedDict[str, Any]") -> None:
    if len(kept) > MAX_OPEN:
        kept.popitem(last=False)


def _schema(given: Any) -> Any:
    """
    The schema of a tool's arguments, which the SDK takes as JSON Schema, as types by name, or as a TypedDict. None: another form.
    """
    if isinstance(given, Mapping) and "type" in given and "properties" in given:
        return given
    with suppress(PydanticUserError, TypeError, ValueError, AttributeError, NameError):
        if isinstance(given, Mapping):
            fields: dict[str, Any] = {name: (kind, ...) for name, kind in given.items()}
            return create_model("Arguments", **fields)
        return TypeAdapter(given).json_schema()
    return None


def _count(usage: Any, name: str) -> int:
    count = usage.get(name) if isinstance(usage, Mapping) else None
    return count if isinstance(count, int) else 0
