"""
The Responses wire of the scripted server: how a reply is written, whole or streamed.
"""

import json

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from .chat_completions import CREATED, pieces
from .replies import Body, Calls, Failed, ScriptedCall, Text, used
from .responses_input import history, problem


__all__ = ["PATH", "frames", "problem", "stored_as", "whole"]

PATH: Final = "/v1/responses"

_REASONS: Final = {"length": "max_output_tokens", "content_filter": "content_filter"}


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
