"""
A tool of ADK that runs behind a session, and what the model reads of its results.
"""

import asyncio
import copy
import json

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.outcome.mcp_results import read_mcp
from guardrails.integrations.hosting import extra, remark
from guardrails.session.calls.running import is_async


with extra("google-adk"):
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.function_tool import FunctionTool
    from google.adk.tools.long_running_tool import LongRunningFunctionTool
    from google.adk.tools.set_model_response_tool import SetModelResponseTool
    from google.adk.workflow._errors import NodeInterruptedError
    from google.genai import types

if TYPE_CHECKING:
    from guardrails.session.session import Session

    from .run import Run

CHILDREN: "Final[ContextVar[list[Session]]]" = ContextVar("guardrails_adk_children")
"""The shares of the agents that a call runs."""
OUTPUT: Final[str] = SetModelResponseTool.NAME
"""ADK's own tool for a structured output."""
ENDS: Final = frozenset({OUTPUT, "exit_loop", "finish_task"})
"""ADK's own tools that end a loop; they run whenever they are called."""
TRANSFER: Final = "transfer_to_agent"
UNSET: Final = object()


class Later(Exception):  # noqa: N818  no error: the result of a call comes later
    """
    A person, or something outside, is to say what comes of a call.
    """


PASSES: Final = (Later, NodeInterruptedError)


class Guarded:
    """
    What runs a *tool* in the place of its own `run_async`, in the run that *find* finds.
    """

    def __init__(self, tool: BaseTool, find: "Callable[[Any], Run]") -> None:
        self.tool = tool
        self.find = find

    @classmethod
    def of(cls, tool: BaseTool, find: "Callable[[Any], Run]") -> BaseTool:
        """
        A twin of *tool*, of the same type, that runs behind the session. *tool* itself is left alone.
        """
        if tool.name in ENDS or is_free(tool) or cls.is_one(tool, find):
            return tool
        try:
            twin = copy.copy(tool)
            twin.run_async = cls(tool, find)
        except Exception:  # noqa: BLE001  whatever forbids a twin: callbacks guard it
            return tool
        return twin

    @classmethod
    def is_one(cls, tool: BaseTool, find: "Callable[[Any], Run]") -> bool:
        """
        Whether *tool* is such a twin, or one of such a twin.
        """
        run = getattr(tool, "run_async", None)
        return isinstance(run, cls) and (run.find == find or cls.is_one(run.tool, find))

    async def __call__(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        """
        Run the tool if the session lets it. What it raises goes on to the error callbacks.
        """
        tool, run, key = self.tool, self.find(tool_context), tool_context.function_call_id
        if run.refuses(tool_context):
            return told(await run.refusal(tool.name, args, tool_context))
        native: Any = UNSET
        raised: Exception | None = None

        async def execute(_: str, arguments: Any) -> Any:
            nonlocal native, raised
            try:
                native = await tool.run_async(args=dict(arguments), tool_context=tool_context)
            except Exception as error:
                raised = error
                raise
            if later(tool, tool_context, native):
                raise Later
            return read(native)

        def begin(name: str, arguments: Any) -> Any:
            # With a time limit the session runs it in a thread, which has no loop: else it would stop the host's.
            made = execute(name, arguments)
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                return asyncio.run(made)
            return made

        children: list[Session] = []
        before = CHILDREN.set(children)
        run.begun.add(key)
        try:
            envelope = await run.session.acall(tool.name, args, begin if _blocks(tool) else execute, id=key)
        except PASSES as passed:
            run.begun.discard(key)
            if isinstance(passed, Later):
                return native
            raise
        except asyncio.CancelledError:
            run.broken = True
            raise
        finally:
            CHILDREN.reset(before)
            for child in children:
                child.close()
        if raised is not None and not envelope.ok:
            run.raised[key] = envelope
            raise raised
        return told(envelope) if native is UNSET else shown(native, envelope, tool_context)


def is_free(tool: BaseTool) -> bool:
    """
    Whether *tool* only hands the conversation over to another agent.
    """
    return tool.name == TRANSFER or getattr(tool, "_defers_response", False) is True


def later(tool: BaseTool, context: Any, result: Any) -> bool:
    """
    Whether *result* says that the result of the call comes later.
    """
    asked = context.function_call_id in context.actions.requested_tool_confirmations
    return bool(
        asked
        or context.function_call_id in context.actions.requested_auth_configs
        or (tool.is_long_running and not result)
    )


def read(result: Any) -> Any:
    """
    The outcome of a call, of what its tool returned.
    """
    return read_mcp(result) if isinstance(result, Mapping) and "isError" in result else result


def told(envelope: Envelope) -> dict[str, Any]:
    """
    *envelope* as the response of a function.
    """
    said: dict[str, Any] = json.loads(envelope.to_json())
    return said


def shown(native: Any, envelope: Envelope, context: Any) -> Any:
    """
    What the model reads: *envelope*. What the host shows the user as it is, and media, keep their form.
    """
    if not envelope.ok:
        return told(envelope)
    if context.actions.skip_summarization:
        return native
    if not _has_media(native):
        return told(envelope)
    said = remark(envelope)
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


def _blocks(tool: BaseTool) -> bool:
    """
    Whether *tool* is a synchronous function, which ADK runs in its loop.
    """
    return type(tool) in (FunctionTool, LongRunningFunctionTool) and not is_async(tool.func)
