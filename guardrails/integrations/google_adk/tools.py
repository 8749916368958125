"""
Tools of ADK, which run behind the session of the run that calls them.
"""

import asyncio
import json

from collections.abc import Mapping
from typing import Any, Final

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.result.content import read_mcp
from guardrails.core.values.errors import needs
from guardrails.hooks.results import beside
from guardrails.integrations.hosting import calling, declared
from guardrails.session.steps import is_async


with needs("google-adk", "this adapter"):
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.function_tool import FunctionTool
    from google.adk.tools.long_running_tool import LongRunningFunctionTool
    from google.adk.workflow._errors import NodeInterruptedError
    from google.genai import types

ENDS: Final = frozenset({"set_model_response", "exit_loop", "finish_task"})
"""ADK's own tools that end a loop; they run whenever they are called."""
TRANSFER: Final = "transfer_to_agent"


class Later(Exception):
    """
    A person, or something outside, is to say what comes of a call: *native* is what ADK is told until then.
    """

    def __init__(self, native: Any) -> None:
        super().__init__()
        self.native = native


PASSES: Final = (Later, NodeInterruptedError)


def guard(tool: BaseTool, plugin: type) -> None:
    """
    Put *tool* behind the session of the run that calls it, if that has a plugin of this kind, unless it is.
    """
    free = tool.name == TRANSFER or getattr(tool, "_defers_response", False) is True
    if not free and not isinstance(tool.run_async, Guarded):
        tool.run_async = Guarded(tool, plugin)


class Guarded:
    """
    The call that runs a *tool* in place of its own `run_async`.
    """

    def __init__(self, tool: BaseTool, plugin: type) -> None:
        self._tool, self._plugin = tool, plugin
        self._run = tool.run_async
        # A synchronous function, which ADK runs in its loop.
        self._blocks = type(tool) in (FunctionTool, LongRunningFunctionTool) and not is_async(tool.func)

    async def __call__(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        """
        Run the tool if the session lets it. An error that it raises is data.
        """
        tool, key = self._tool, tool_context.function_call_id
        plugins = tool_context.get_invocation_context().plugin_manager.plugins
        plugin: Any = next((one for one in plugins if isinstance(one, self._plugin)), None)
        if plugin is None or getattr(tool_context.node, "tool", None) is tool:
            # The latter is a step of a workflow, which no model asked for.
            return await self._run(args=args, tool_context=tool_context)
        run = plugin.run_of(tool_context)
        loop = run.loop(tool_context)
        if loop is not None and loop.off:
            return told(await loop.off_loop(loop.refusal, tool.name, args, id=key))
        native: Any = None

        async def execute(_: str, arguments: Any) -> Any:
            nonlocal native
            # What an attempt before came to is not what this one does.
            native = None
            native = await self._run(args=dict(arguments), tool_context=tool_context)
            if _is_later(tool, tool_context, native):
                raise Later(native)
            return read_mcp(native) if isinstance(native, Mapping) and "isError" in native else native

        def begin(name: str, arguments: Any) -> Any:
            # With a time limit the session runs it in a thread, which has no loop: else it would stop the host's.
            made = execute(name, arguments)
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                return asyncio.run(made)
            return made

        try:
            session = calling(run.session, _known(tool), PASSES)
            envelope = await session.acall(tool.name, args, begin if self._blocks else execute, id=key)
        except Later as later:
            return later.native
        return _shown(native, envelope, tool_context)


def told(envelope: Envelope) -> dict[str, Any]:
    """
    *envelope* as the response of a function.
    """
    text = envelope.to_json(None if envelope.form == "merged" else "nested")
    said: dict[str, Any] = json.loads(text if text[:1] == "{" else envelope.to_json("nested"))
    return said


def _known(tool: BaseTool) -> Any:
    one = tool._get_declaration()  # noqa: SLF001  the only place that says what the model may pass
    schema = None if one is None else one.parameters_json_schema
    if one is not None and schema is None and one.parameters is not None:
        schema = one.parameters.json_schema.model_dump(mode="json", exclude_none=True, by_alias=True)
    return declared(tool.name, schema, tool.description)


def _is_later(tool: BaseTool, context: Any, result: Any) -> bool:
    asked = {*context.actions.requested_tool_confirmations, *context.actions.requested_auth_configs}
    return context.function_call_id in asked or (tool.is_long_running and not result)


def _shown(native: Any, envelope: Envelope, context: Any) -> Any:
    """
    Returns *envelope* as the model reads it. Media keep their form, and so do values that the host shows the user.
    """
    if envelope.ok and context.actions.skip_summarization:
        return native
    if not envelope.ok or not _has_media(native):
        return told(envelope)
    said = beside(envelope)
    if said is None:
        return native
    return {**(native if isinstance(native, Mapping) else {"result": native}), "guardrails": json.loads(said)}


def _has_media(native: Any, depth: int = 2) -> bool:
    if isinstance(native, types.Part):
        return True
    if not depth or not isinstance(native, (Mapping, list, tuple)):
        return False
    held = native.values() if isinstance(native, Mapping) else native
    return any(_has_media(one, depth - 1) for one in held)
