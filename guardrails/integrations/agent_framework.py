"""
Microsoft agent-framework: a middleware that puts the tools of an agent, and its model requests, behind a session.

    agent = Agent(client, tools=[search], middleware=[GuardrailsMiddleware(Policy.load("default"))])
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, aclosing
from copy import copy
from inspect import isawaitable
from typing import Any, Final
from uuid import uuid4

from guardrails.core.envelope import Envelope
from guardrails.core.values.errors import needs
from guardrails.core.values.types import Failed
from guardrails.session.session import Session

from . import hosting as kit
from .hosting import HostLoop, Last


with needs("agent-framework", "this adapter"):
    import agent_framework as host

    from agent_framework import Content
    from agent_framework.exceptions import UserInputRequiredException
    from pydantic import BaseModel

NAME: Final = "guardrails_session"
"""The key of an AgentSession's state by which its runs find their session; what a service calls it may change."""
_PREPARED: Final = "_prepared_function_arguments"
"""The key of a call's metadata that the host sets if it found the arguments right."""
_UNSAID: Final = ("text", "text_reasoning", "usage", "function_call", "function_result")
"""Kinds of content that answer nothing, or whose text is looked at."""
_Next = Callable[[], Awaitable[None]]


class GuardrailsMiddleware(kit.Adapter, host.AgentMiddleware):
    """
    All function tools of an agent, and its model requests, behind a policy, or a session that several agents share.
    *options* are those of `Policy.session`.

    The AgentSession of a run names its session; a run without one has a new one. If an agent runs in a guarded tool and
    its policy is the same, it has a share of the call's session.
    """

    def session(self, thread: object) -> "Session":
        """
        The session of a *thread*: an AgentSession, or its name.
        """
        return super().session(_name(thread) if isinstance(thread, host.AgentSession) else thread)

    async def process(self, context: host.AgentContext, call_next: _Next) -> None:
        """
        Run the agent with its tools and its requests behind the session of this run.
        """
        thread = context.session
        session, end = await kit.aopen_run(self._sessions, None if thread is None else _name(thread))
        loop = HostLoop(session)
        # The host takes these for its own: innermost, after those of the agent and of the run.
        others = context.client_kwargs.get("middleware") or ()
        context.client_kwargs["middleware"] = [*others, _ToolCalls(loop), _Requests(loop)]
        async with AsyncExitStack() as stack:
            stack.push_async_callback(loop.off_loop, end)
            await call_next()
            if context.stream:
                context.stream_cleanup_hooks.append(stack.pop_all().aclose)


class _Requests(host.ChatMiddleware):
    """
    The model requests of one run: tools off when it is time, each response charged, an answer at the end.
    """

    def __init__(self, loop: HostLoop) -> None:
        self._loop = loop
        self._run, self._count = uuid4().hex, 0
        self._free = False
        """Tools were on for a request of this run."""
        self._missing: dict[str | None, Envelope] = {}
        """Of calls of tools that do not exist, what the model is to read."""

    async def process(self, context: host.ChatContext, call_next: _Next) -> None:
        """
        Ask the model, and ask once more if it does not answer. The digest is the answer if the model gives none.
        """
        options, loop = context.options or {}, self._loop
        choice = options.get("tool_choice")
        mode = choice.get("mode") if isinstance(choice, Mapping) else choice
        if mode == "none" and self._free:
            # The host has reached a limit of its own, and runs no call any more.
            loop.final.force(kit.LAST_CODE)
        self._free = self._free or mode != "none"
        for result in context.messages[-1].contents if self._missing else ():
            if result.type == "function_result" and result.call_id in self._missing:
                result.result = self._missing.pop(result.call_id).to_json()
                result.items = [Content.from_text(result.result)]

        async def send(chosen: Any) -> Any:
            same = chosen == mode or not options.get("tools")
            context.options = options if same else {**options, "tool_choice": chosen}
            await call_next()
            return context.result

        if not context.stream:
            response, digest = await loop.respond(mode, send, self._read)
            context.result = response if digest is None else _with_digest(response, digest)
            await self._answer_missing(context, context.result)
            return
        whole: list[Any] = []

        async def events(chosen: Any) -> AsyncGenerator[Any, None]:
            stream = await send(chosen)
            async for event in stream:
                update = copy(event)
                if loop.off:
                    # It may be asked anew: no call is passed on.
                    update.contents = [one for one in event.contents if not _is_call(one)]
                yield update
            yield Last(await stream.get_final_response())

        def ends(response: Any, digest: str | None) -> list[Any]:
            whole.append(response if digest is None else _with_digest(response, digest))
            about: dict[str, Any] = {"role": "assistant", "response_id": response.response_id, "finish_reason": "stop"}
            return [] if digest is None else [host.ChatResponseUpdate(contents=[Content.from_text(digest)], **about)]

        async def updates() -> AsyncIterator[Any]:
            async with aclosing(loop.stream(mode, events, self._read, ends)) as stream:
                async for update in stream:
                    yield update
            await self._answer_missing(context, whole[0])

        context.result = host.ResponseStream(updates(), finalizer=lambda _: whole[0])

    def _read(self, response: Any) -> tuple[str, int, dict[str, Any]]:
        contents = [one for message in response.messages for one in message.contents]
        answers = response.continuation_token is not None or any(one.type not in _UNSAID for one in contents)
        self._count += 1
        # A client of one's own may give all of its responses the same id.
        key = f"{self._run}:{self._count}:{response.response_id or ''}"
        charge = {"model": response.model or "", "usage": response.usage_details, "key": key}
        return response.text or ("-" if answers else ""), sum(map(_is_call, contents)), charge

    async def _answer_missing(self, context: host.ChatContext, response: Any) -> None:
        """
        Let the session hear of calls of tools that do not exist: the host answers them itself.
        """
        more = getattr(context.client, "function_invocation_configuration", {}).get("additional_tools") or ()
        tools = {getattr(tool, "name", None) for tool in (*((context.options or {}).get("tools") or ()), *more)}
        for call in (one for message in response.messages for one in message.contents if _is_call(one)):
            if call.name not in tools:
                answer = self._loop.session.acall(
                    call.name or "", call.arguments or {}, kit.missing, id=call.call_id or None
                )
                self._missing[call.call_id] = await answer


def _with_digest(response: Any, digest: str) -> Any:
    response.messages = [host.Message("assistant", [Content.from_text(digest)])]
    response.finish_reason = "stop"
    return response


class _ToolCalls(host.FunctionMiddleware):
    """
    The tool calls of one run.
    """

    def __init__(self, loop: HostLoop) -> None:
        self._loop = loop

    async def process(self, context: host.FunctionInvocationContext, call_next: _Next) -> None:
        """
        Run the tool if the session lets it. The model reads the envelope, or the host's own form if that holds more
        than text.
        """
        tool, prepared = context.function, _PREPARED in context.metadata
        stop: Exception | None = None

        async def invoke(_: Any) -> Any:
            nonlocal stop
            stop = None
            try:
                await call_next()
            except host.MiddlewareTermination as error:
                # Where the tool raised it, the host has put what it waits for in the place of the result.
                stop, left = error, None if isawaitable(context.result) else context.result
                context.result = left if error.result is None else error.result
            except host.MiddlewareFailure as error:
                stop = error
                return Failed(str(error))
            except TypeError as error:
                if not hasattr(error, "redacted_message"):
                    raise
                # The host found the arguments wrong: its function did not run.
                return Failed(str(error), error_type="validation")
            if isinstance(context.result, Content) and context.result.type == "function_approval_request":
                raise kit.Parked
            return context.result

        def outcome(native: Any) -> Any:
            text = kit.lines(one.to_dict() for one in native) if _is_content(native) else None
            return native if text is None else kit.value_of(text, tool.func)

        schema = None if prepared else tool.input_model or tool.parameters()
        known, arguments = kit.host_tool(tool.name, schema, tool.description), _arguments(context, prepared=prepared)
        options: dict[str, Any] = {"id": context.metadata.get("call_id"), "passes": (UserInputRequiredException,)}
        envelope, native = await kit.guarded_call(self._loop, tool.name, known, arguments, invoke, outcome, **options)
        if stop is not None:
            raise stop
        if envelope is not None:
            blocks = native if _is_content(native) else []
            text = kit.content(blocks, envelope, Content.from_text, lambda one: one.type == "text")
            context.result = text or envelope.to_json()


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
