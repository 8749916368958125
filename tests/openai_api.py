"""
The rules of the real API that keep a conversation whole, and replies that only our own tests script.
"""

import json
import re

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from guardrails.testing.scripted_openai import WIRES, Body, Raw, Text


CHAT, RESPONSES = WIRES.values()
SSE = "text/event-stream"
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
ARGUMENTS = {"function_call": "arguments", "custom_tool_call": "input"}
OUTPUTS = ("function_call_output", "custom_tool_call_output")


def reasoning(text: str, id: str = "rs_1") -> Body:
    """
    A reasoning item of Responses with its encrypted content, for the *items* of a reply.
    """
    summary = [{"type": "summary_text", "text": text}]
    return {"id": id, "type": "reasoning", "summary": summary, "encrypted_content": f"sealed {text}"}


def failed(*, chat: bool, stream: bool, message: str = "out of order", code: str = "server_error") -> Raw:
    """
    A response that fails after it has begun: over Responses one that says so, over chat.completions an error in the stream.
    """
    error: Any = {"error": {"message": message, "code": code}}
    if chat:
        frames = [CHAT.frames({"model": "m"}, Text("..."), 0)[0], f"data: {json.dumps(error)}\n\n"]
        return Raw("".join(frames), SSE) if stream else Raw(json.dumps(error), status=500)
    response = {**RESPONSES.whole({"model": "m"}, Text(), 0), "status": "failed", **error}
    event = json.dumps({"type": "response.failed", "sequence_number": 0, "response": response})
    return Raw(f"event: response.failed\ndata: {event}\n\n", SSE) if stream else Raw(json.dumps(response))


def problems(requests: Sequence[Body]) -> list[str]:
    """
    Why the API would refuse *requests*, of either wire.
    """
    return [found for body in requests for found in _problems(body)]


def _problems(body: Body) -> Iterator[str]:
    chat, given = "messages" in body, body.get("messages", body.get("input"))
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    if not isinstance(body.get("model"), str) or not isinstance(items, list) or not items:
        yield "no model, or nothing that is asked"
        return
    yield from _tools(body, chat=chat)
    if body.get("stream_options") and not body.get("stream"):
        yield "'stream_options' is only allowed when 'stream' is enabled"
    for place, item in enumerate(items):
        if not _is_fit(item, chat=chat):
            yield f"{place}: not fit: {json.dumps(item)}"
        if item.get("type") == "reasoning":
            after = items[place + 1] if place + 1 < len(items) else {"role": "none"}
            if after.get("role", "assistant") != "assistant" or after.get("type") in OUTPUTS:
                yield f"{place}: 'reasoning' is without its required following item"
            if body.get("store") is False and not item.get("encrypted_content"):
                yield f"{place}: items are not persisted when `store` is false"
    yield from _unanswered(items, chat=chat)


def _tools(body: Body, *, chat: bool) -> Iterator[str]:
    tools, choice = body.get("tools"), body.get("tool_choice")
    if not tools and ("tools" in body or choice or "parallel_tool_calls" in body) and chat:
        yield "'tool_choice' and 'parallel_tool_calls' are only allowed when 'tools' are specified"
    names = [_name(tool, chat=chat) for tool in tools or ()]
    for tool, name in zip(tools or (), names, strict=True):
        if name is not None and not NAME.fullmatch(str(name)):
            yield f"a tool's name must match {NAME.pattern}: {name!r}"
        schema = tool.get("parameters")
        if not chat and name is not None and tool.get("strict") is not False and isinstance(schema, dict):
            required = set(schema.get("required") or ())
            if schema.get("additionalProperties") is not False or set(schema.get("properties") or ()) != required:
                yield f"{name}: all fields must be required"
    if isinstance(choice, dict):
        allowed = choice.get("allowed_tools", choice)["tools"] if choice.get("type") == "allowed_tools" else [choice]
        lacking = [one for one in allowed if _name(one, chat=chat) not in names]
        if lacking:
            yield f"'tool_choice': not found in 'tools': {lacking}"
    elif choice not in (None, "none", "auto") and not (choice == "required" and tools):
        yield f"Invalid value for 'tool_choice': {choice}"


def _name(tool: Any, *, chat: bool) -> Any:
    """
    The name in an entry of `tools`; None: the tool is the API's own.
    """
    if chat:
        return tool.get(tool.get("type") or "function", {}).get("name", "")
    return tool.get("name", "") if tool.get("type") in (None, "function", "custom") else None


def _is_fit(item: Body, *, chat: bool) -> bool:
    content, calls, kind = item.get("content"), item.get("tool_calls") or (), item.get("type", "message")
    if chat:
        said = [made.get(made.get("type")) or {} for made in calls]
        return (
            item.get("role") in ("system", "developer", "user", "assistant", "tool")
            and bool(isinstance(content, (str, list)) or calls or item.get("refusal"))
            and all(isinstance(one.get("arguments", one.get("input")), str) for one in said)
            and all(isinstance(made.get("id"), str) for made in calls)
        )
    if kind in ARGUMENTS:
        return bool(item.get("call_id")) and isinstance(item.get(ARGUMENTS[kind]), str)
    if kind in OUTPUTS:
        return isinstance(item.get("output"), (str, list))
    known = item.get("role") in ("system", "developer", "user", "assistant")
    return kind != "message" or (known and isinstance(content, (str, list)))


def _unanswered(items: Sequence[Body], *, chat: bool) -> Iterator[str]:
    """
    Calls without a result, and results without a call; in chat.completions results stand right behind their calls.
    """
    waiting: Counter[str] = Counter()
    for place, item in enumerate(items):
        result = item.get("tool_call_id") if chat else item.get("call_id") if item.get("type") in OUTPUTS else None
        if result is None and chat and +waiting:
            yield f"{place}: no response messages before it: {', '.join(+waiting)}"
        if result is not None and waiting[result] < 1:
            yield f"{place}: '{result}' is no response to a preceding call"
        waiting.subtract([result] if result is not None else [])
        waiting.update([made["id"] for made in item.get("tool_calls") or ()] if chat else ())
        waiting.update([item["call_id"]] if not chat and item.get("type") in ARGUMENTS else ())
    if +waiting:
        yield f"no response messages: {', '.join(+waiting)}"
