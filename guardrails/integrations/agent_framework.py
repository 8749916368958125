"""
Microsoft agent-framework: a middleware that puts the tools of an agent, and its model requests, behind a session.

    agent = Agent(client, tools=[search], middleware=[GuardrailsMiddleware(Policy.load("default"))])
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from copy import copy
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, Unpack
from uuid import uuid4

from guardrails.core.envelope import Envelope
from guardrails.core.values.errors import needs
from guardrails.core.values.types import Failed
from guardrails.policy.sessions import SessionOptions, Sessions

from .hosting import Asking, Last, calling, content, declared, lines, missing, opened, value_of


with needs("agent-framework", "this adapter"):
    import agent_framework as host

    from agent_framework import Content
    from agent_framework.exceptions import UserInputRequiredException
    from pydantic import BaseModel

if TYPE_CHECKING:
    from guardrails.policy.policy import Policy
    from guardrails.session.session import Session

NAME: Final = "guardrails_session"
"""The key of an AgentSession's state by which its runs find their session; what a service calls it may change."""
LAST: Final = "loop.request_limit"
"""Why a final answer is asked for once the host's own limits have turned tools off."""
_PREPARED: Final = "_prepared_function_arguments"
"""The key of a call's metadata that the host sets if it found the arguments right."""
_UNSAID: Final = ("text", "text_reasoning", "usage", "function_call", "function_result")
"""Kinds of content that answer nothing, or whose text is looked at."""
_Next = Callable[[], Awaitable[None]]


class _Paused(Exception):
    """
    A person is asked about the call, which runs later.
    """


class GuardrailsMiddleware(host.AgentMiddleware):
    """
    All function tools of an agent, and its model requests, behind a policy, or a session that several agents share.
    *options* are those of `Policy.session`.

    The AgentSession of a run names its session; a run without one has a new one. If an agent runs in a guarded tool and
    its policy is the same, it has a share of the call's session.
    """

    def __init__(self, guarded: "Policy | Session", **options: Unpack[SessionOptions]) -> None:
        self._sessions = Sessions(guarded, **options)

    def session(self, thread: object) -> "Session":
        """
        The session of a *thread*: an AgentSession, or its name.
        """
        return self._sessions.of(_name(thread) if isinstance(thread, host.AgentSession) else thread)

    async def process(self, context: host.AgentContext, call_next: _Next) -> None:
        """
        Run the agent with its tools and its requests behind the session of this run.
        """
        around, thread = self._sessions.around, context.session
        if around is not None:
            session, end = await around.ledger.off_loop(opened, self._sessions, None, around)
        else:
            session, end = opened(self._sessions, None if thread is None else _name(thread))
        # The host takes these for its own: innermost, after those of the agent and of the run.
        given = context.client_kwargs.get("middleware") or ()
        context.client_kwargs["middleware"] = [*given, _ToolCalls(session), _Requests(session)]
        if context.stream:
            context.stream_cleanup_hooks.append(lambda: session.ledger.off_loop(end))
        try:
            await call_next()
        except BaseException:
            await session.ledger.off_loop(end)
            raise
        if not context.stream:
            await session.ledger.off_loop(end)


class _Requests(host.ChatMiddleware):
    """
    The model requests of one run in its *session*: tools off when it is time, each response charged, an answer at the end.
    """

    def __init__(self, session: "Session") -> None:
        self._session, self._asking = session, Asking(session)
        self._run, self._taken = uuid4().hex, 0
        self._free = False
        """Tools were on for a request of this run."""
        self._missing: dict[str | None, Envelope] = {}
        """Of calls of tools that do not exist, what the model is to read."""

    async def process(self, context: host.ChatContext, call_next: _Next) -> None:
        """
        Ask the model, and ask once more if it does not answer. The digest is the answer if the model gives none.
        """
        given = context.options or {}
        choice = given.get("tool_choice")
        mode = choice.get("mode") if isinstance(choice, Mapping) else choice
        if mode == "none" and self._free:
            # The host has reached a limit of its own, and runs no call any more.
            self._asking.final.force(LAST)
        self._free = self._free or mode != "none"
        for result in context.messages[-1].contents if self._missing else ():
            if result.type == "function_result" and result.call_id in self._missing:
                result.result = self._missing.pop(result.call_id).to_json()
                result.items = [Content.from_text(result.result)]

        async def send(chosen: Any) -> Any:
            kept = chosen == mode or not given.get("tools")
            context.options = given if kept else {**given, "tool_choice": chosen}
            await call_next()
            return context.result

        if not context.stream:
            context.result = await self._last(context, *await self._asking.respond(mode, send, self._read))
            return
        whole: list[Any] = []

        async def sent(chosen: Any) -> AsyncGenerator[Any, None]:
            stream = await send(chosen)
            async for made in stream:
                update = copy(made)
                if self._asking.off:
                    # It may be asked anew: what it calls is not passed on.
                    update.contents = [one for one in made.contents if not _is_call(one)]
                yield update
            yield Last(await stream.get_final_response())

        async def updates() -> AsyncIterator[Any]:
            async with aclosing(self._asking.stream(mode, sent, self._read)) as events:
                async for event in events:
                    if not isinstance(event, Last):
                        yield event
                        continue
                    response, digest = event.response
                    whole.append(await self._last(context, response, digest))
                    if digest is not None:
                        said: dict[str, Any] = {"role": "assistant", "response_id": response.response_id}
                        contents = [Content.from_text(digest)]
                        yield host.ChatResponseUpdate(contents=contents, finish_reason="stop", **said)

        context.result = host.ResponseStream(updates(), finalizer=lambda _: whole[0])

    def _read(self, response: Any) -> tuple[str, int, dict[str, Any]]:
        contents = [one for message in response.messages for one in message.contents]
        says = response.continuation_token is not None or any(one.type not in _UNSAID for one in contents)
        self._taken += 1
        # A client of one's own may give all of its responses the same id.
        key = f"{self._run}:{self._taken}:{response.response_id or ''}"
        told = {"model": response.model or "", "usage": response.usage_details, "key": key}
        return response.text or ("-" if says else ""), sum(map(_is_call, contents)), told

    async def _last(self, context: host.ChatContext, response: Any, digest: str | None) -> Any:
        """
        *response* as the host goes on with it. The session hears of calls that the host answers itself.
        """
        if digest is not None:
            response.messages = [host.Message("assistant", [Content.from_text(digest)])]
            response.finish_reason = "stop"
            return response
        more = getattr(context.client, "function_invocation_configuration", {}).get("additional_tools") or ()
        tools = {getattr(tool, "name", None) for tool in (*((context.options or {}).get("tools") or ()), *more)}
        for call in (one for message in response.messages for one in message.contents if _is_call(one)):
            if call.name not in tools:
                told = self._session.acall(call.name or "", call.arguments or {}, missing, id=call.call_id or None)
                self._missing[call.call_id] = await told
        return response


class _ToolCalls(host.FunctionMiddleware):
    """
    The tool calls of one run in its *session*.
    """

    def __init__(self, session: "Session") -> None:
        self._session = session

    async def process(self, context: host.FunctionInvocationContext, call_next: _Next) -> None:
        """
        Run the tool if the session lets it. The model reads the envelope, or the host's own form if that holds more
        than text.
        """
        tool, prepared = context.function, _PREPARED in context.metadata
        native: Any = None
        stop: Exception | None = None

        async def execute(_: str, __: Any) -> Any:
            nonlocal native, stop
            # What an attempt before came to is not what this one does.
            native = stop = None
            try:
                await call_next()
                native = context.result
            except host.MiddlewareTermination as error:
                # Where the tool raised it, the host has put what it waits for in the place of the result.
                left = None if isawaitable(context.result) else context.result
                stop, native = error, left if error.result is None else error.result
                context.result = native
            except host.MiddlewareFailure as error:
                stop = error
                return Failed(str(error))
            except TypeError as error:
                if not hasattr(error, "redacted_message"):
                    raise
                # The host found the arguments wrong: its function did not run.
                return Failed(str(error), error_type="validation")
            if isinstance(native, Content) and native.type == "function_approval_request":
                raise _Paused
            return value_of(lines(one.to_dict() for one in native), tool.func) if _is_content(native) else native

        schema = None if prepared else tool.input_model or tool.parameters()
        session = calling(
            self._session, declared(tool.name, schema, tool.description), (UserInputRequiredException, _Paused)
        )
        try:
            arguments = _arguments(context, prepared=prepared)
            envelope = await session.acall(tool.name, arguments, execute, id=context.metadata.get("call_id"))
        except _Paused:
            if stop is None:
                return
        if stop is not None:
            raise stop
        blocks = native if _is_content(native) else []
        said = content(blocks, envelope, Content.from_text, lambda one: one.type == "text")
        context.result = said or envelope.to_json()


def _name(thread: host.AgentSession) -> str:
    service = thread.service_session_id
    name = service if isinstance(service, str) and service else thread.session_id
    # As it was called at its first run.
    return str(thread.state.setdefault(NAME, name))


def _arguments(context: host.FunctionInvocationContext, *, prepared: bool) -> Any:
    """
    The arguments of a call; text that was no JSON as it came.
    """
    given = context.arguments
    made = given.model_dump(exclude_unset=True) if isinstance(given, BaseModel) else dict(given)
    broken = not prepared and made.keys() == {"raw"} and isinstance(made["raw"], str)
    return made["raw"] if broken and "raw" not in context.function.parameters().get("properties", {}) else made


def _is_content(result: Any) -> bool:
    return isinstance(result, list) and bool(result) and all(isinstance(one, Content) for one in result)


def _is_call(one: Content) -> bool:
    """
    Returns whether *one* is a call that the host is to run.
    """
    return one.type == "function_call" and not (one.informational_only or one.hosted)
