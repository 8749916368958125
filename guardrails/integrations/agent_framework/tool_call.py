"""
One tool call of agent-framework: its arguments as the host has them, what came back, and what the model reads.
"""

import json

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, get_origin, get_type_hints

from guardrails.core.arguments import foreign_arguments
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.tools.tool import Tool
from guardrails.core.values.errors import needs
from guardrails.core.values.types import Failed
from guardrails.hooks.results import mark_of
from guardrails.integrations.hosting import content
from guardrails.session.session import scoped


with needs("agent-framework", "this adapter"):
    from agent_framework import (
        Content,
        FunctionInvocationContext,
        FunctionMiddleware,
        FunctionTool,
        MiddlewareFailure,
        MiddlewareTermination,
    )
    from agent_framework.exceptions import UserInputRequiredException
    from pydantic import BaseModel

if TYPE_CHECKING:
    from .model_step import ModelSteps

PREPARED: Final = "_prepared_function_arguments"
"""The key of a call's metadata that the host sets if it found the arguments right."""


class Paused(Exception):
    """
    A person is asked about the call, which runs later.
    """


class ToolCalls(FunctionMiddleware):
    """
    The tool calls of one run, in the session of its *steps*.
    """

    def __init__(self, steps: "ModelSteps") -> None:
        self._session = scoped(steps.session, {}, passes=(UserInputRequiredException, Paused))
        self._known: dict[str, FunctionTool] = {}

    async def process(self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """
        Run the tool if the session lets it. The model reads the envelope, or the host's own form if that holds more
        than text.
        """
        tool, made = context.function, context.metadata.get("call_id")
        arguments = _arguments(context)
        if self._known.get(tool.name) is not tool:
            self._known[tool.name] = tool
            await self._session.ledger.off_loop(
                self._session.calls.declare, Tool(name=tool.name, description=tool.description)
            )
        session = self._session
        check = None if PREPARED in context.metadata else _check(tool)
        if check is not None:
            session = scoped(session, {tool.name: check}, passes=(UserInputRequiredException, Paused))
        native: Any = None
        stop: Exception | None = None

        async def execute(_: str, __: Any) -> Any:
            nonlocal native, stop
            # What an attempt before came to is not what this one does.
            native = stop = None
            try:
                await call_next()
            except MiddlewareTermination as error:
                # Where the tool raised it, the host has put what it waits for in the place of the result.
                left = None if isawaitable(context.result) else context.result
                stop, native = error, left if error.result is None else error.result
                context.result = native
            except MiddlewareFailure as error:
                stop = error
                return Failed(str(error))
            except TypeError as error:
                if not hasattr(error, "redacted_message"):
                    raise
                # The host found the arguments wrong: its function did not run.
                return Failed(str(error), error_type="validation")
            else:
                native = context.result
            if isinstance(native, Content) and native.type == "function_approval_request":
                raise Paused
            return read(native, tool)

        try:
            envelope = await session.acall(tool.name, arguments, execute, id=made)
        except Paused:
            if stop is not None:
                raise stop from None
            return
        if stop is not None:
            raise stop
        context.result = shown(native, envelope)


def _arguments(context: FunctionInvocationContext) -> Any:
    """
    The arguments of a call; text that was no JSON as it came.
    """
    given = context.arguments
    made = given.model_dump(exclude_unset=True) if isinstance(given, BaseModel) else dict(given)
    if PREPARED not in context.metadata and made.keys() == {"raw"} and isinstance(made["raw"], str):
        properties = context.function.parameters().get("properties", {})
        return made if "raw" in properties else made["raw"]
    return made


def _check(tool: FunctionTool) -> Any:
    """
    Returns the check that names a wrong argument of *tool*. None: nobody can read what it takes, and the host checks
    it.
    """
    return foreign_arguments(tool.name, tool.input_model or tool.parameters())


def read(result: Any, tool: FunctionTool) -> Any:
    """
    *result* as a session reads it: an object that the host wrote as JSON, text, and of a file, which one it is.
    """
    if not _is_content(result):
        return result
    if not all(one.type == "text" for one in result):
        return [one.text if one.type == "text" else mark_of(one.type, one.to_dict()) for one in result]
    text = "\n".join(one.text or "" for one in result)
    if not _returns_object(tool):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def shown(result: Any, envelope: Envelope) -> Any:
    """
    Returns the text that the model reads of *result*: *envelope*, or the host's files and the notes of *envelope*
    beside them.
    """
    if not envelope.ok or not _is_content(result) or all(one.type == "text" for one in result):
        return envelope.to_json()
    return content(result, envelope, Content.from_text, lambda one: one.type == "text")


def _is_content(result: Any) -> bool:
    return isinstance(result, list) and bool(result) and all(isinstance(one, Content) for one in result)


def _returns_object(tool: FunctionTool) -> bool:
    try:
        returns = get_type_hints(getattr(tool.func, "func", tool.func)).get("return", str)
    except Exception:  # noqa: BLE001  an annotation that names what is not there
        return False
    kind = get_origin(returns) or returns
    return isinstance(kind, type) and (issubclass(kind, (dict, list, tuple, BaseModel)))
