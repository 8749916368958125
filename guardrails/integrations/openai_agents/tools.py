"""
Function tools of the host, and agents as tools, behind the session of the run that calls them.
"""

import json

from contextlib import suppress
from copy import copy
from typing import Any, Final

from guardrails.core.result.exceptions import failure_of
from guardrails.core.values.errors import needs
from guardrails.core.values.types import Failed
from guardrails.integrations.hosting import calling, content, declared, lines, opened

from .run import Behind, Run, running


with needs("openai-agents", "`GuardedRunner`"):
    from agents import (
        FunctionTool,
        ToolOutputFileContent,
        ToolOutputImage,
        ToolOutputText,
        default_tool_error_function,
    )
    from agents.agent_tool_state import get_agent_tool_state_scope, peek_agent_tool_run_result
    from agents.tool import (
        invoke_function_tool,
        maybe_invoke_function_tool_failure_error_function,
        set_function_tool_failure_error_function,
    )
    from agents.tool_context import ToolContext


_PARTS: Final = (ToolOutputText, ToolOutputImage, ToolOutputFileContent)
_KINDS: Final = ("text", "image", "file")


class _Parked(Exception):
    """
    An agent that is a tool waits for a person: its call goes on later.
    """

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class _ServerError(Exception):
    """
    What an MCP server says went wrong.
    """


class Server(Behind):
    """
    An MCP server whose errors are raised: the host reads them as results.
    """

    async def call_tool(self, tool_name: str, arguments: Any, *more: Any, **named: Any) -> Any:
        result = await self.inner.call_tool(tool_name, arguments, *more, **named)
        if running.get() is not None and (getattr(result, "isError", None) or getattr(result, "is_error", None)):
            raise _ServerError("\n".join(getattr(item, "text", "") for item in result.content))
        return result


def guard(tool: Any) -> None:
    """
    Put *tool*, if it is a function's, behind the session of the run that calls it, unless it is.
    """
    if not isinstance(tool, FunctionTool) or getattr(tool, "guarded", False):
        return
    plain, bare = copy(tool), set_function_tool_failure_error_function(copy(tool), None)
    bare.timeout_seconds = None

    async def invoke(context: ToolContext[Any], text: str) -> Any:
        run = running.get()
        if run is None:
            return await invoke_function_tool(function_tool=plain, context=context, arguments=text)
        return await _Call(run, plain, bare, context).made(text)

    # The host prepares the arguments of a call by it to ask whether a person is to approve.
    invoke.__agents_prepare_arguments__ = getattr(plain.on_invoke_tool, "prepare_arguments", None)  # type: ignore[attr-defined]
    tool.on_invoke_tool = invoke
    tool.guarded = True


class _Call:
    """
    One call of *tool* in a *run*; *bare* is the same tool as it raises what goes wrong.
    """

    def __init__(self, run: Run, tool: FunctionTool, bare: FunctionTool, context: ToolContext[Any]) -> None:
        self._run, self._tool, self._bare, self._context = run, tool, bare, context
        self._native: Any = None
        self._raised: Exception | None = None

    async def made(self, text: str) -> Any:
        tool = self._tool
        hints = None if tool.mcp_annotations is None else tool.mcp_annotations.model_dump(by_alias=True)
        known = declared(tool.qualified_name, _as_written(tool.params_json_schema), tool.description, hints)

        async def execute(_: str, arguments: Any) -> Any:
            self._native = self._raised = None
            try:
                self._native = await self._invoked(_sent(text, arguments))
            except _Parked:
                raise
            except Exception as error:  # noqa: BLE001  the model reads it as data
                return await self._failed(error)
            return lines(_parts(self._native)) or self._native

        try:
            session = calling(self._run.session, known, (_Parked,))
            envelope = await session.acall(known.name, text or "{}", execute, id=self._context.tool_call_id)
        except _Parked as parked:
            return parked.value
        if self._raised is not None:
            raise self._raised
        behavior = getattr(self._context.agent, "tool_use_behavior", "run_llm_again")
        if envelope.ok and (tool.output_json_schema is not None or behavior != "run_llm_again"):
            # Code reads it: that of the host, or of the user whose run may end with it.
            return envelope.value if tool.output_json_schema is not None else self._native
        parts = _parts(self._native)
        if not envelope.ok or all(map(_is_text, parts)):
            return envelope.to_json()
        return content(parts, envelope, lambda said: {"type": "text", "text": said}, _is_text)

    async def _failed(self, error: Exception) -> Any:
        """
        The outcome of a call that raised *error*: the words of the tool's own author, if there are some.
        """
        if isinstance(error.__cause__, _ServerError):
            return error.__cause__
        said = await maybe_invoke_function_tool_failure_error_function(
            function_tool=self._tool, context=self._context, error=error
        )
        if said is None:
            # Its author wants it raised.
            self._raised = error
        if said is None or said == default_tool_error_function(self._context, error):
            return error
        return Failed(said, error_type=failure_of(error).error_type)

    async def _invoked(self, text: str) -> Any:
        context, run = self._context, self._run
        if getattr(self._tool, "_agent_instance", None) is None:
            return await invoke_function_tool(function_tool=self._bare, context=context, arguments=text)
        off_loop, name = run.session.ledger.off_loop, f"{self._tool.qualified_name}-{context.tool_call_id}"
        session, end = await off_loop(opened, run.sessions, name, run.session)
        token = running.set(Run(session, run.sessions))
        try:
            value = await invoke_function_tool(function_tool=self._bare, context=context, arguments=text)
        finally:
            running.reset(token)
            await off_loop(end)
        result = context.tool_call and peek_agent_tool_run_result(
            context.tool_call, scope_id=get_agent_tool_state_scope(context)
        )
        if getattr(result, "interruptions", None):
            raise _Parked(value)
        return value


def _as_written(schema: Any) -> Any:
    """
    *schema* before the host made it strict, which requires what has a default too.
    """
    fields = schema.get("properties") or {}
    needed = [name for name in schema.get("required") or () if "default" not in fields.get(name, {})]
    return {**schema, "required": needed} if needed != schema.get("required") else schema


def _sent(text: str, arguments: Any) -> str:
    """
    *arguments* as the host takes them: the model's own *text* unless they were changed.
    """
    with suppress(ValueError):
        if json.loads(text or "{}") == arguments:
            return text
    return json.dumps(arguments, ensure_ascii=False)


def _parts(value: Any) -> list[dict[str, Any]]:
    """
    The parts of a message that *value* is; none if it is another value.
    """
    items = value if isinstance(value, list) else [value]
    parts = [item.model_dump(exclude_none=True) if isinstance(item, _PARTS) else item for item in items]
    return parts if all(isinstance(part, dict) and part.get("type") in _KINDS for part in parts) else []


def _is_text(part: dict[str, Any]) -> bool:
    return bool(part["type"] == "text")
