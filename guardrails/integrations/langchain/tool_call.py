"""
One tool call of LangGraph: what the model may pass, what came back, and what goes into the conversation.
"""

import json

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, get_origin

from guardrails.core.arguments import Arguments, foreign_arguments
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.tools.tool import Tool
from guardrails.core.values.errors import needs
from guardrails.core.values.types import Failed
from guardrails.integrations.hosting import lines, remark


with needs("langchain", "`GuardrailsMiddleware`"):
    from langchain_core.messages import ToolMessage
    from langgraph.errors import GraphBubbleUp, is_invalid_resume
    from langgraph.prebuilt.tool_node import ToolCallRequest
    from langgraph.types import Command


class InvalidResume(GraphBubbleUp):
    """
    A person's answer that does not fit the question, which LangGraph asks for again: *error* is what it raises.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class Called:
    """
    One call, and what its tool gave back.
    """

    def __init__(self, request: ToolCallRequest) -> None:
        made = request.tool_call
        self.name, self.arguments, self.id = made["name"], made["args"], made["id"] or None
        self._tool = request.tool
        self._native: Any = None

    def raised(self, error: Exception) -> Exception:
        """
        Returns the exception that the call is to raise after its tool raised *error*.
        """
        return InvalidResume(error) if is_invalid_resume(error) else error

    def ran(self, native: Any) -> Any:
        """
        The outcome of the call, of what ToolNode made of the tool's result.
        """
        self._native = native
        message = next(self._messages(native), None)
        if message is None:
            return None
        if message.status == "error":
            return Failed(text_of(message.content), error_type="tool_missing" if self._tool is None else None)
        if isinstance(message.content, str):
            return _value(message.content, self._tool)
        return text_of(message.content) if _is_text(message.content) else lines(message.content)

    def told(self, envelope: Envelope) -> Any:
        """
        Returns the message for the conversation: *envelope*, in the tool's own form if that has more than text.
        """
        native, self._native = self._native, None
        if native is None or (not envelope.ok and next(self._messages(native), None) is None):
            return answer(self.name, self.id, envelope)
        if envelope.ok and envelope.cut is None and getattr(self._tool, "return_direct", False):
            # It is the user who reads it.
            return native
        return self._with(native, envelope)

    def _answers(self, one: Any) -> bool:
        return isinstance(one, ToolMessage) and one.tool_call_id == (self.id or "")

    def _messages(self, native: Any) -> Iterator[Any]:
        if self._answers(native):
            yield native
        elif isinstance(native, Command):
            yield from self._messages(native.update)
        elif isinstance(native, Mapping):
            yield from self._messages(native.get("messages"))
        elif isinstance(native, (list, tuple)):
            for one in native:
                yield from self._messages(one)

    def _with(self, native: Any, envelope: Envelope) -> Any:
        if self._answers(native):
            status = "success" if envelope.ok else "error"
            return native.model_copy(update={"content": _content(native.content, envelope), "status": status})
        if isinstance(native, Command):
            return replace(native, update=self._with(native.update, envelope))
        if isinstance(native, Mapping):
            return {
                **native,
                **({"messages": self._with(native["messages"], envelope)} if "messages" in native else {}),
            }
        return [self._with(one, envelope) for one in native] if isinstance(native, (list, tuple)) else native


def answer(name: str, id: str | None, envelope: Envelope) -> Any:
    """
    The message that answers a call by *envelope*.
    """
    status = "success" if envelope.ok else "error"
    return ToolMessage(envelope.to_json(), tool_call_id=id or "", name=name, status=status)


def declared(tool: Any) -> Tool:
    """
    *tool* as a session knows it: what the model may pass, injected arguments left out, and the hints of an MCP server.
    """
    hints = {name: hint for name, hint in (tool.metadata or {}).items() if name.endswith("Hint")}
    return Tool(name=tool.name, parameters=_arguments(tool)).override({"annotations": hints})


def _arguments(tool: Any) -> Arguments | None:
    schema: Any = None
    with suppress(TypeError, ValueError, AttributeError):  # the definition is the code of others
        schema = tool.tool_call_schema
        whole = tool.args_schema
        shown = getattr(schema, "model_fields", None)
        if shown is None and not isinstance(schema, dict):
            schema = schema.schema()  # a model of pydantic 1
        elif shown is not None and shown.keys() == getattr(whole, "model_fields", {}).keys():
            # The whole one has the validators that the other lost.
            schema = whole
    return foreign_arguments(tool.name, schema)


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


def _is_text(content: Any) -> bool:
    return all(isinstance(block, str) or block.get("type") == "text" for block in content)


def text_of(content: Any) -> str:
    """
    The texts of the *content* of a message, a line each.
    """
    if isinstance(content, str):
        return content
    texts = [block if isinstance(block, str) else str(block.get("text", "")) for block in content]
    return "\n".join(text for text in texts if text)


def _content(content: Any, envelope: Envelope) -> Any:
    if isinstance(content, str) or _is_text(content) or not envelope.ok:
        return envelope.to_json()
    said = remark(envelope)
    if said is None:
        return content
    if envelope.cut is None:
        return [*content, {"type": "text", "text": said}]
    kept = [block for block in content if not isinstance(block, str) and block.get("type") != "text"]
    return [{"type": "text", "text": envelope.to_json()}, *kept]
