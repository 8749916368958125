"""
The hooks of an agent: each of its calls passes them.
"""

from collections.abc import AsyncIterable, AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Unpack

from pydantic import PydanticUserError, TypeAdapter, create_model

from guardrails.core.tools.tool import Tool
from guardrails.core.values.errors import SessionError, needs
from guardrails.core.values.logs import log
from guardrails.hooks.clients import Answer
from guardrails.hooks.events import EVENTS, answer, session_of
from guardrails.integrations.hosting import declared
from guardrails.policy.sessions import Sessions


with needs("claude-agent-sdk", "this adapter"):
    from claude_agent_sdk import ClaudeAgentOptions, HookMatcher, PermissionResultAllow, PermissionResultDeny

    from .messages import Running, Told, release, suspend

if TYPE_CHECKING:
    from guardrails.core.decision import Decision
    from guardrails.policy.policy import Policy
    from guardrails.policy.sessions import SessionOptions
    from guardrails.session.session import Session

UNHOOKED: Final = ("PermissionDenied", "SessionStart")
"""Of the events, those that the SDK's hooks do not have."""


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
        **options: "Unpack[SessionOptions]",
    ) -> None:
        self._sessions = Sessions(guarded, **options)
        self._person = can_use_tool
        self._envelopes = envelopes
        self._timeout = timeout
        self._tools: list[Tool] = []
        self._running = Running(self.session)

    def session(self, session_id: str) -> "Session":
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
        made = {
            event: HookMatcher(hooks=[self._hook], timeout=self._timeout) for event in EVENTS if event not in UNHOOKED
        }
        if self._sessions.denies_on_error:
            made["PreToolUse"].on_failure = "block"
        return {event: [matcher] for event, matcher in made.items()}

    def options(self, options: Any = None) -> Any:
        """
        *options* of the SDK, or new ones, with the hooks and `can_use_tool` beside what they have.
        """
        given = ClaudeAgentOptions() if options is None else options
        hooks = {event: list(matchers) for event, matchers in (given.hooks or {}).items()}
        for event, matchers in self.hooks.items():
            hooks[event] = [*hooks.get(event, ()), *matchers]
        if given.can_use_tool not in (None, self.can_use_tool):
            self._person = given.can_use_tool
        return replace(given, hooks=hooks, can_use_tool=None if self._person is None else self.can_use_tool)

    async def can_use_tool(self, tool: str, arguments: dict[str, Any], context: Any) -> Any:
        """
        Ask the person whether a call may run; what is said answers the session too. Without a person nobody allows it.
        """
        call_id = context.tool_use_id or ""
        _, own = self._running.open.get(call_id, ("", None))
        waits = own is not None and await own.ledger.off_loop(self._waits, own, call_id)
        if self._person is None:
            said = PermissionResultDeny(message="Nobody is there who could allow this call.")
        else:
            said = await self._person(tool, arguments, context)
        if own is None:
            return said
        if not isinstance(said, PermissionResultAllow):
            how = partial(_refuse, reason=said.message) if waits else release
            await own.ledger.off_loop(self._running.end, call_id, how)
            return said
        decision = await own.ledger.off_loop(self._allowed, own, call_id, (tool, arguments))
        return said if decision.envelope is None else PermissionResultDeny(message=decision.envelope.to_json())

    @staticmethod
    def _waits(own: "Session", call_id: str) -> bool:
        """
        Whether the session itself waits for a person. Else the SDK alone does: the call waits for it there too.
        """
        waits = any(one.id == call_id for one in own.pending())
        if not waits:
            with suppress(SessionError):  # it was answered meanwhile
                suspend(own, call_id)
        return waits

    @staticmethod
    def _allowed(own: "Session", call_id: str, call: tuple[str, Any]) -> "Decision":
        with suppress(SessionError):  # nothing waits for it
            own.approve(call_id, by="can_use_tool")
        return own.decide(*call, id=call_id, claim=True)

    async def charging(self, messages: AsyncIterable[Any]) -> AsyncIterator[Any]:
        """
        The *messages* of a run as they are, each response charged once. If the run was stopped, or the model is silent at a limit,
        the `result` is the session's digest.
        """
        told = Told(self._running, messages)
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
                own = await session.ledger.off_loop(session_of, session, event)
                if output and await own.calls.ask_approver(call_id):
                    output = await session.ledger.off_loop(told)
            except SessionError:
                pass  # it does not wait for a person
            except Exception as error:  # noqa: BLE001  whatever a store raises
                log.error("store failed: %s", error, extra={"session": session.id})
            if output.get("hookSpecificOutput", {}).get("permissionDecision") != "deny":
                self._running.begin(call_id, event["session_id"], own)
            if output.get("continue") is False and own is session:
                self._running.stopped.add(event["session_id"])
        elif call_id:
            self._running.open.pop(call_id, None)
        return output


def _refuse(own: "Session", call_id: str, reason: str) -> None:
    own.refuse(call_id, reason=reason, by="can_use_tool")


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
