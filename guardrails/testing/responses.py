"""
The Responses wire of the scripted server: how a reply is written, whole or streamed.
"""

import json

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from .chat_completions import CREATED, pieces
from .refusals import calls_problem, tools_problem
from .replies import Body, Calls, Fail, Failed, ScriptedCall, Text, refused, used


PATH: Final = "/v1/responses"

_REASONS: Final = {"length": "max_output_tokens", "content_filter": "content_filter"}
_CALLS: Final = {"function_call": "arguments", "custom_tool_call": "input"}
_OUTPUTS: Final = ("function_call_output", "custom_tool_call_output")
Stored = Mapping[str, Sequence[Body]]
"""Conversations by the id of their last response."""


def history(body: Body, stored: Stored) -> list[Body]:
    """
    Returns all items that a request goes on from, its own among them.
    """
    given = body.get("input")
    own = [{"role": "user", "content": given}] if isinstance(given, str) else list(given or ())
    return [*stored.get(body.get("previous_response_id") or "", ()), *own]


def problem(body: Body, stored: Stored) -> Fail | None:
    """
    Returns the HTTP 400 of the real API for a request that it would refuse.
    """
    items, previous = history(body, stored), body.get("previous_response_id")
    if previous is not None and previous not in stored:
        return refused(f"Previous response with id '{previous}' not found.", "previous_response_id")
    if not items:
        return refused("Invalid 'input': expected text or an array of items with minimum length 1.", "input")
    for tool in body.get("tools") or ():
        if _ours(tool) and tool.get("strict") is not False and _loose(tool.get("parameters")):
            return refused(f"Invalid schema for function '{tool.get('name')}': all fields must be required.", "tools")
    found = (_item_problem(body, items, place) for place in range(len(items)))
    return (
        tools_problem(body, lambda tool: tool.get("name", "") if _ours(tool) else None)
        or next(filter(None, found), None)
        or calls_problem(items, _ids, _answered, key="input", adjacent=False)
    )


def _item_problem(body: Body, items: list[Body], place: int) -> Fail | None:
    item, at = items[place], f"input[{place}]"
    kind, after = item.get("type", "message"), items[place + 1] if place + 1 < len(items) else {"role": "none"}
    if kind in _CALLS and not (item.get("call_id") and isinstance(item.get(_CALLS[kind]), str)):
        return refused(f"Missing required parameter: '{at}': its call_id or {_CALLS[kind]}.", at)
    if kind in _OUTPUTS and not isinstance(item.get("output"), (str, list)):
        return refused(f"Invalid type for '{at}.output': expected text or an array.", at)
    if kind == "message" and item.get("role") not in ("system", "developer", "user", "assistant"):
        return refused(f"Invalid value: '{item.get('role')}'.", at)
    if kind == "message" and not isinstance(item.get("content"), (str, list)):
        return refused(f"Invalid type for '{at}.content': expected text or an array.", at)
    if kind == "reasoning" and (after.get("role", "assistant") != "assistant" or after.get("type") in _OUTPUTS):
        return refused(f"Item '{item.get('id')}' of type 'reasoning' is without its required following item.", at)
    if kind == "reasoning" and body.get("store") is False and not item.get("encrypted_content"):
        return refused(f"Item '{item.get('id')}' not found: items are not persisted when `store` is false.", at)
    return None


def _ours(tool: Any) -> bool:
    return not isinstance(tool, dict) or tool.get("type") in (None, "function", "custom")


def _loose(schema: Any) -> bool:
    every = set(schema.get("properties") or ()) if isinstance(schema, dict) else set()
    return isinstance(schema, dict) and (
        schema.get("additionalProperties") is not False or every != set(schema.get("required") or ())
    )


def _ids(item: Body) -> list[str]:
    return [item["call_id"]] if item.get("type") in _CALLS else []


def _answered(item: Body) -> str | None:
    return str(item.get("call_id")) if item.get("type") in _OUTPUTS else None


def whole(body: Body, reply: Text | Calls | Failed, n: int) -> Body:
    """
    The response to a request that does not stream.
    """
    head = _head(body, n)
    if isinstance(reply, Failed):
        return head | {"status": "failed", "error": {"code": reply.code, "message": reply.message}}
    spent = used(reply, [body.get("input"), body.get("tools")])
    usage = spent and {
        "input_tokens": spent.prompt,
        "input_tokens_details": {"cached_tokens": spent.cached},
        "output_tokens": spent.completion,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": spent.prompt + spent.completion,
    }
    reason = _REASONS.get(reply.finish_reason or "")
    details = {"reason": reason} if reason else None
    status = "incomplete" if reason else "completed"
    return head | {"status": status, "incomplete_details": details, "output": _output(reply, n), "usage": usage}


def frames(body: Body, reply: Text | Calls | Failed, n: int) -> list[str]:
    """
    The server-sent events of a streamed response; usage comes with the last.
    """
    response = whole(body, reply, n)
    opening = _head(body, n)
    events = [
        {"type": "response.created", "response": opening},
        {"type": "response.in_progress", "response": opening},
        *(event for place, item in enumerate(response["output"]) for event in _item_events(item, place)),
        {"type": f"response.{response['status']}", "response": response},
    ]
    return [
        f"event: {event['type']}\ndata: {json.dumps({**event, 'sequence_number': at})}\n\n"
        for at, event in enumerate(events)
    ]


def stored_as(body: Body, reply: Text | Calls, n: int, stored: Mapping[str, Sequence[Body]]) -> dict[str, list[Body]]:
    """
    Returns the part of a conversation that the server keeps: everything up to this response, by its id, unless `store`
    is false.
    """
    if body.get("store") is False:
        return {}
    return {_id(n): [*history(body, stored), *_output(reply, n)]}


def _id(n: int) -> str:
    return f"resp_{n}"


def _head(body: Body, n: int) -> Body:
    return {
        "id": _id(n),
        "object": "response",
        "created_at": CREATED + n,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "metadata": {},
        "model": body["model"],
        "output": [],
        "parallel_tool_calls": True,
        "previous_response_id": body.get("previous_response_id"),
        "store": body.get("store", True),
        "temperature": 1.0,
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": body.get("tools") or [],
        "top_p": 1.0,
        "usage": None,
    }


def _output(reply: Text | Calls, n: int) -> list[Body]:
    items: list[Body] = [dict(item) for item in reply.items]
    refusal = reply.refusal if isinstance(reply, Text) else None
    if reply.text or refusal is not None or (isinstance(reply, Text) and not reply.items):
        said = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
        content = [said] if refusal is None else [{"type": "refusal", "refusal": refusal}]
        status = "incomplete" if reply.finish_reason in _REASONS else "completed"
        items.append({"id": f"msg_{n}", "type": "message", "role": "assistant", "status": status, "content": content})
    for i, scripted in enumerate(reply.calls if isinstance(reply, Calls) else ()):
        items.append(_wire_call(scripted, n, i))
    return items


def _wire_call(call: ScriptedCall, n: int, i: int) -> Body:
    return {
        "id": f"fc_{n}_{i}",
        "type": "function_call",
        "status": "completed",
        "call_id": f"call_{n}_{i}" if call.id is None else call.id,
        "name": call.name,
        "arguments": call.arguments,
    }


def _item_events(item: Body, place: int) -> Iterator[Body]:
    at: dict[str, Any] = {"output_index": place, "item_id": item.get("id")}
    begun = {name: type(item[name])() for name in ("arguments", "content") if name in item}
    started = item | begun | {"status": "in_progress"} if "status" in item else item
    yield {"type": "response.output_item.added", "output_index": place, "item": started}
    if item["type"] == "function_call":
        for piece in pieces(item["arguments"]):
            yield {"type": "response.function_call_arguments.delta", **at, "delta": piece}
        yield {"type": "response.function_call_arguments.done", **at, "arguments": item["arguments"]}
    elif item["type"] == "message":
        for i, said in enumerate(item["content"]):
            yield from _part_events(said, {**at, "content_index": i})
    yield {"type": "response.output_item.done", "output_index": place, "item": item}


def _part_events(said: Body, at: Body) -> Iterator[Body]:
    name, key = ("output_text", "text") if said["type"] == "output_text" else ("refusal", "refusal")
    logprobs: Body = {"logprobs": []} if name == "output_text" else {}
    yield {"type": "response.content_part.added", **at, "part": said | {key: ""}}
    for piece in pieces(said[key]):
        yield {"type": f"response.{name}.delta", **at, "delta": piece, **logprobs}
    yield {"type": f"response.{name}.done", **at, key: said[key], **logprobs}
    yield {"type": "response.content_part.done", **at, "part": said}
