"""
Function tools of the host, and agents as tools, behind the session of the run that calls them.
"""

import json

from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass
from typing import Any, Final

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.result.exceptions import failure_of
from guardrails.core.values.errors import needs
from guardrails.core.values.types import Failed
from guardrails.integrations.hosting import give_back, lines, remark, share_of

from .running import Running, awaited, running


with needs("openai-agents", "`GuardedRunner`"):
    from agents import (
        FunctionTool,
        ToolOutputFileContent,
        ToolOutputImage,
        ToolOutputText,
        ToolTimeoutError,
        default_tool_error_function,
    )
    from agents.agent_tool_state import get_agent_tool_state_scope, peek_agent_tool_run_result
    from agents.tool import (
        ToolOriginType,
        get_function_tool_origin,
        invoke_function_tool,
        maybe_invoke_function_tool_failure_error_function,
        set_function_tool_failure_error_function,
        with_function_tool_failure_error_handler,
    )
    from agents.tool_context import ToolContext


_PARTS: Final = {"text": ToolOutputText, "image": ToolOutputImage, "file": ToolOutputFileContent}
_RICH: Final = tuple(_PARTS.values())
_calling: ContextVar[str | None] = ContextVar("guardrails_openai_agents_call", default=None)


class _Parked(Exception):
    """
    An agent that is a tool waits for a person: its call goes on later.
    """

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


def guard(tool: Any) -> None:
    """
    Put *tool*, if it is a function's, behind the session of the run that calls it, unless it is.
    """
    if not isinstance(tool, FunctionTool) or getattr(tool, "guarded", False):
        return
    plain = copy(tool)
    call = _Call(plain, _bare(plain))

    async def invoke(context: ToolContext[Any], text: str) -> Any:
        run = running.get()
        if run is None or _calling.get() == context.tool_call_id:
            return await invoke_function_tool(function_tool=plain, context=context, arguments=text)
        return await call.made(run, context, text)

    # The host prepares the arguments of a call by it to ask whether a person is to approve.
    invoke.__agents_prepare_arguments__ = getattr(plain.on_invoke_tool, "prepare_arguments", None)  # type: ignore[attr-defined]
    made = copy(tool)
    made.on_invoke_tool = with_function_tool_failure_error_handler(invoke, lambda *_: None)
    tool.on_invoke_tool = copy(made).on_invoke_tool
    if tool.timeout_behavior == "error_as_result":
        tool.timeout_seconds = None
    tool.guarded = True


def is_served(tool: Any) -> bool:
    """
    Returns whether *tool* is that of an MCP server, which is guarded itself.
    """
    origin = get_function_tool_origin(tool) if isinstance(tool, FunctionTool) else None
    return origin is not None and origin.type == ToolOriginType.MCP


def _bare(tool: FunctionTool) -> FunctionTool:
    """
    *tool* as it raises what goes wrong.
    """
    bare = set_function_tool_failure_error_function(copy(tool), None)
    if tool.timeout_behavior == "error_as_result":
        bare.timeout_behavior = "raise_exception"
    else:
        bare.timeout_seconds = None
    return bare


@dataclass
class _Call:
    """
    Calls of *tool*, which *bare* runs.
    """

    tool: FunctionTool
    bare: FunctionTool

    @property
    def _is_agent(self) -> bool:
        return getattr(self.tool, "_agent_instance", None) is not None

    async def made(self, run: Running, context: ToolContext[Any], text: str) -> Any:
        run.offer([self.tool])
        ran, raised, rich = False, None, None

        async def execute(name: str, arguments: Any) -> Any:
            nonlocal ran, raised, rich
            # What an attempt before came to is not what this one does.
            ran, raised, rich = True, None, None
            try:
                value = await self._run(run, name, context, _sent(text, arguments))
                if self.tool.output_json_schema is not None or not _is_rich(value):
                    return value
                rich = value
                return lines(each if isinstance(each, dict) else each.model_dump() for each in _parts(rich))
            except _Parked:
                raise
            except Exception as error:
                said = await self._said(context, error)
                raised = error if said is None else None
                if isinstance(said, Exception):
                    raise said from error
                if said is None:
                    raise
                return said

        token = _calling.set(context.tool_call_id)
        scope = run.calling(self.tool.qualified_name, passes=(_Parked,) if self._is_agent else ())
        try:
            envelope = await scope.acall(self.tool.qualified_name, text or "{}", execute, id=context.tool_call_id)
        except _Parked as parked:
            return parked.value
        finally:
            _calling.reset(token)
        if raised is not None:
            raise raised
        read = self._read(envelope, rich)
        if ran:
            given = envelope.value if rich is None else rich
            run.given[context.tool_call_id] = read, given if envelope.ok else read
        return read

    async def _run(self, run: Running, name: str, context: ToolContext[Any], text: str) -> Any:
        if not self._is_agent:
            return await invoke_function_tool(function_tool=self.bare, context=context, arguments=text)
        session = run.session
        child = await session.ledger.off_loop(share_of, session, f"{name}-{context.tool_call_id}")
        token, parked = running.set(Running(child or session, owner=run.owner)), False
        # Ids of calls are made by models: one of the sub-agent's may be the same.
        _calling.set(None)
        try:
            value = await invoke_function_tool(function_tool=self.bare, context=context, arguments=text)
            result = context.tool_call and peek_agent_tool_run_result(
                context.tool_call, scope_id=get_agent_tool_state_scope(context)
            )
            parked = bool(getattr(result, "interruptions", None))
        finally:
            running.reset(token)
            if child is not None and not parked:
                await session.ledger.off_loop(give_back, child)
        if parked:
            raise _Parked(value)
        return value

    async def _said(self, context: ToolContext[Any], error: Exception) -> Failed | Exception | None:
        """
        Returns the words of the tool's author for *error*, or the error. Returns None if its author wants it raised.
        """
        if isinstance(error, ToolTimeoutError):
            if self.tool.timeout_error_function is None:
                return TimeoutError(str(error))
            text = await awaited(self.tool.timeout_error_function(context, error))
            return Failed(str(text), error_type="timeout")
        text = await maybe_invoke_function_tool_failure_error_function(
            function_tool=self.tool, context=context, error=error
        )
        if text is None:
            return None
        if text == default_tool_error_function(context, error):
            return error
        return Failed(text, error_type=failure_of(error).error_type)

    def _read(self, envelope: Envelope, rich: Any) -> Any:
        if envelope.ok and self.tool.output_json_schema is not None:
            return envelope.value
        if rich is None or not envelope.ok:
            return envelope.to_json()
        if envelope.cut is not None:
            kept = [each for each in _parts(rich) if (each["type"] if isinstance(each, dict) else each.type) != "text"]
            return [ToolOutputText(text=envelope.to_json()), *kept]
        said = remark(envelope)
        return rich if said is None else [*_parts(rich), ToolOutputText(text=said)]


def _sent(text: str, arguments: Any) -> str:
    """
    *arguments* as the host takes them: the model's own *text* unless they were changed.
    """
    try:
        same = json.loads(text or "{}") == arguments
    except ValueError:
        same = False
    return text if same else json.dumps(arguments, ensure_ascii=False)


def _parts(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _is_rich(value: Any) -> bool:
    items = _parts(value)
    return bool(items) and all(isinstance(item, _RICH) or _is_part(item) for item in items)


def _is_part(item: Any) -> bool:
    # The host takes a mapping for a part of a conversation only if it is one in full.
    kind = _PARTS.get(str(item.get("type"))) if isinstance(item, dict) else None
    try:
        return kind is not None and bool(kind.model_validate(item))
    except ValueError:
        return False
