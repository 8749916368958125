"""
The wire of Anthropic Messages: how a request is read, and how a reply is written, whole or streamed.
"""

import json

from collections.abc import Iterator
from typing import Any, Final

from guardrails.testing.scripted_openai import Body, Calls, Text, Usage

from .asked import Asked


PATH: Final = "/v1/messages"
COUNT: Final = "/v1/messages/count_tokens"


def read(body: Body) -> Asked:
    """
    The request as the tests look at it.
    """
    prompt: list[str] = []
    results: list[str] = []
    notes: list[str] = []
    turn = 0
    for message in body.get("messages") or ():
        if message["role"] == "assistant":
            turn += 1
            continue
        for block in _blocks(message["content"]):
            if block["type"] == "tool_result":
                results.append(_text(block.get("content")))
            elif block["type"] == "text":
                (notes if turn else prompt).append(block["text"])
    tools = tuple(tool["name"] for tool in body.get("tools") or () if "name" in tool)
    return Asked(body, "\n".join(prompt), turn, tuple(results), tuple(notes), tools)


def whole(body: Body, reply: Text | Calls, n: int) -> Body:
    """
    The message that answers a request that does not stream.
    """
    calls = reply.calls if isinstance(reply, Calls) else ()
    said = [{"type": "text", "text": reply.text}] if reply.text or not calls else []
    made = [
        {"type": "tool_use", "id": call.id or f"toolu_{n}_{i}", "name": call.name, "input": json.loads(call.arguments)}
        for i, call in enumerate(calls)
    ]
    return _head(body, n) | {
        "content": [*said, *made],
        "stop_reason": "tool_use" if calls else "end_turn",
        "usage": _usage(reply.used(body.get("messages"))),
    }


def frames(body: Body, reply: Text | Calls, n: int) -> Iterator[str]:
    """
    The server-sent events of a streamed message.
    """
    message = whole(body, reply, n)
    usage = message["usage"]
    yield _event("message_start", message=_head(body, n) | {"usage": usage | {"output_tokens": 1}})
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            begun, delta = block | {"text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            begun = block | {"input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield _event("content_block_start", index=index, content_block=begun)
        yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield _event("message_delta", delta=ended, usage={"output_tokens": usage["output_tokens"]})
    yield _event("message_stop")


def _head(body: Body, n: int) -> Body:
    return {
        "id": f"msg_{n}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model"),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _usage(spent: Usage | None) -> Body:
    spent = spent or Usage(0, 0)
    return {
        "input_tokens": spent.prompt - spent.cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": spent.cached,
        "output_tokens": spent.completion,
    }


def _event(kind: str, **fields: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"


def _blocks(content: Any) -> list[Body]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _text(content: Any) -> str:
    return "\n".join(block.get("text", f"[{block['type']}]") for block in _blocks(content or ""))
