"""
The texts that the model reads of calls of ADK's tools, and the tools that are ADK's own control flow.
"""

import json

from collections.abc import Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.result.content import read_mcp
from guardrails.core.values.errors import needs
from guardrails.integrations.hosting import remark


with needs("google-adk", "this adapter"):
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.set_model_response_tool import SetModelResponseTool
    from google.adk.workflow._errors import NodeInterruptedError
    from google.genai import types

if TYPE_CHECKING:
    from guardrails.session.session import Session

CHILDREN: "Final[ContextVar[list[Session]]]" = ContextVar("guardrails_adk_children")
"""The shares of the agents that a call runs."""
OUTPUT: Final[str] = SetModelResponseTool.NAME
"""ADK's own tool for a structured output."""
ENDS: Final = frozenset({OUTPUT, "exit_loop", "finish_task"})
"""ADK's own tools that end a loop; they run whenever they are called."""
TRANSFER: Final = "transfer_to_agent"


class Later(Exception):
    """
    A person, or something outside, is to say what comes of a call.
    """


PASSES: Final = (Later, NodeInterruptedError)


def is_free(tool: BaseTool) -> bool:
    """
    Returns whether *tool* only hands the conversation over to another agent.
    """
    return tool.name == TRANSFER or getattr(tool, "_defers_response", False) is True


def later(tool: BaseTool, context: Any, result: Any) -> bool:
    """
    Returns whether *result* says that the result of the call comes later.
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
    text = envelope.to_json(None if envelope.form == "merged" else "nested")
    said: dict[str, Any] = json.loads(text if text[:1] == "{" else envelope.to_json("nested"))
    return said


def shown(native: Any, envelope: Envelope, context: Any) -> Any:
    """
    Returns *envelope* as the model reads it. Media keep their form, and so do values that the host shows the user.
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
