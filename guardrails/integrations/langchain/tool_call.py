"""
One tool call of LangGraph: what the model may pass, what came back, and what goes into the conversation.
"""

import json

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, get_origin

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.tools.tool import Tool
from guardrails.core.values.errors import needs
from guardrails.core.values.types import Failed
from guardrails.integrations.hosting import content, declared, lines


with needs("langchain", "`GuardrailsMiddleware`"):
    from langchain_core.messages import ToolMessage
    from langgraph.prebuilt.tool_node import ToolCallRequest
    from langgraph.types import Command


class Called:
    """
    One call, and what its tool gave back.
    """

    def __init__(self, request: ToolCallRequest) -> None:
        made = request.tool_call
        self.name, self.arguments, self.id = made["name"], made["args"], made["id"] or None
        self._tool = request.tool
        self._native: Any = None
        self._answers = False
        """A message of *native* answers the call."""

    def ran(self, native: Any) -> Any:
        """
        The outcome of the call, of what ToolNode made of the tool's result.
        """
        found: list[Any] = []
        self._native = self._with(native, lambda message: found.append(message) or message)  # type: ignore[func-returns-value]
        self._answers = bool(found)
        if not found:
            return None
        said = found[0].content
        if found[0].status == "error":
            return Failed(lines(_blocks(said)), error_type="tool_missing" if self._tool is None else None)
        return _value(said, self._tool) if isinstance(said, str) else lines(_blocks(said))

    def told(self, envelope: Envelope) -> Any:
        """
        Returns the message for the conversation: *envelope*, in the tool's own form if that has more than text.
        """
        native, self._native = self._native, None
        if native is None or (not envelope.ok and not self._answers):
            return answer(self.name, self.id, envelope)
        if envelope.ok and envelope.cut is None and getattr(self._tool, "return_direct", False):
            # It is the user who reads it.
            return native
        status = "success" if envelope.ok else "error"
        return self._with(
            native,
            lambda message: message.model_copy(
                update={"content": _content(message.content, envelope), "status": status}
            ),
        )

    def _with(self, native: Any, change: Callable[[Any], Any]) -> Any:
        """
        *native* with a *change* of the message in it that answers the call.
        """
        if isinstance(native, ToolMessage):
            return change(native) if native.tool_call_id == (self.id or "") else native
        if isinstance(native, Command):
            return replace(native, update=self._with(native.update, change))
        if isinstance(native, Mapping) and "messages" in native:
            return {**native, "messages": self._with(native["messages"], change)}
        return [self._with(one, change) for one in native] if isinstance(native, (list, tuple)) else native


def answer(name: str, id: str | None, envelope: Envelope) -> Any:
    """
    The message that answers a call by *envelope*.
    """
    status = "success" if envelope.ok else "error"
    return ToolMessage(envelope.to_json(), tool_call_id=id or "", name=name, status=status)


def declaration(tool: Any) -> Tool:
    """
    *tool* as a session knows it: what the model may pass, injected arguments left out, and the hints of an MCP server.
    """
    schema: Any = None
    with suppress(TypeError, ValueError, AttributeError):  # the definition is the code of others
        schema, whole = tool.tool_call_schema, tool.args_schema
        if getattr(schema, "model_fields", {}).keys() == getattr(whole, "model_fields", ()):
            # The whole one has the validators that the other lost.
            schema = whole
    hints = {name: hint for name, hint in (tool.metadata or {}).items() if name.endswith("Hint")}
    return declared(tool.name, schema, hints=hints)


def _value(text: str, tool: Any) -> Any:
    """
    Returns the value that *tool* returned as *text*: LangChain writes objects, lists and None as JSON.
    """
    function = getattr(tool, "func", None) or getattr(tool, "coroutine", None)
    returns = getattr(function, "__annotations__", {}).get("return", str)
    if returns is not None and (get_origin(returns) or returns) not in (dict, list):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _blocks(said: Any) -> list[Any]:
    return [said] if isinstance(said, str) else said


def _is_text(block: Any) -> bool:
    return isinstance(block, str) or block.get("type") == "text"


def _content(said: Any, envelope: Envelope) -> Any:
    if not envelope.ok or all(map(_is_text, _blocks(said))):
        return envelope.to_json()
    return content(said, envelope, lambda text: {"type": "text", "text": text}, _is_text)
