"""
A reply of the scripted server as the two APIs of OpenAI write it: `whole`, and as the `frames` of a stream.
"""

import json

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final


if TYPE_CHECKING:
    from .scripted_openai import Body, Text, Usage

_REASONS: Final = {"length": "max_output_tokens", "content_filter": "content_filter"}


class ChatCompletions:
    """
    `/v1/chat/completions`. The usage event (`choices == []`) comes only if `stream_options.include_usage` asks for it;
    every other event then says `usage: null`.
    """

    def whole(self, body: "Body", reply: "Text", n: int) -> "Body":
        """
        The response to the request *body*, of number *n*, that does not stream.
        """
        content = reply.text or (None if reply.calls or reply.refusal else "")
        message: Body = {"role": "assistant", "content": content, "refusal": reply.refusal}
        if reply.calls:
            message["tool_calls"] = [
                {
                    "id": _id(call, n, i),
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for i, call in enumerate(reply.calls)
            ]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reply.finish_reason}
        response = {"id": f"chatcmpl-{n}", "object": "chat.completion", "created": 1_700_000_000 + n}
        response |= {"model": body["model"], "choices": [choice]}
        used = reply.used(body.get("messages"), body.get("tools"))
        return response | ({"usage": _usage(used, "prompt", "completion")} if used else {})

    def frames(self, body: "Body", reply: "Text", n: int) -> list[str]:
        """
        The server-sent events of a streamed response, `[DONE]` last.
        """
        head: Body = self.whole(body, reply, n) | {"object": "chat.completion.chunk"}
        [choice], usage = head.pop("choices"), head.pop("usage", None)
        deltas: list[Body] = [{"role": "assistant", "content": None if reply.calls and not reply.text else ""}]
        deltas += [{"content": piece} for piece in _pieces(reply.text)]
        deltas += [{"refusal": piece} for piece in _pieces(reply.refusal or "")]
        for i, call in enumerate(choice["message"].get("tool_calls", ())):
            deltas.append({"tool_calls": [{**call, "index": i, "function": {**call["function"], "arguments": ""}}]})
            pieces = _pieces(call["function"]["arguments"])
            deltas += [{"tool_calls": [{"index": i, "function": {"arguments": piece}}]} for piece in pieces]
        chunks: list[Body] = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": reply.finish_reason}]})
        if (body.get("stream_options") or {}).get("include_usage"):
            head["usage"] = None
            chunks += [{"choices": [], "usage": usage}] if usage else []
        return [*(f"data: {json.dumps(head | chunk)}\n\n" for chunk in chunks), "data: [DONE]\n\n"]


class Responses:
    """
    `/v1/responses`. Usage comes with the last event.
    """

    def whole(self, body: "Body", reply: "Text", n: int) -> "Body":
        """
        The response to the request *body*, of number *n*, that does not stream.
        """
        used, reason = reply.used(body.get("input"), body.get("tools")), _REASONS.get(reply.finish_reason or "")
        return {
            "id": f"resp_{n}",
            "object": "response",
            "created_at": 1_700_000_000 + n,
            "status": "incomplete" if reason else "completed",
            "error": None,
            "incomplete_details": {"reason": reason} if reason else None,
            "model": body["model"],
            "output": _output(reply, n, "incomplete" if reason else "completed"),
            "parallel_tool_calls": True,
            "tool_choice": body.get("tool_choice", "auto"),
            "tools": body.get("tools") or [],
            "usage": used and _usage(used, "input", "output"),
        }

    def frames(self, body: "Body", reply: "Text", n: int) -> list[str]:
        """
        The server-sent events of a streamed response.
        """
        response = self.whole(body, reply, n)
        events: list[Body] = [{"type": "response.created", "response": {**response, "output": [], "usage": None}}]
        for place, item in enumerate(response["output"]):
            events += _events(item, {"output_index": place, "item_id": item.get("id")})
        events.append({"type": f"response.{response['status']}", "response": response})
        texts = (json.dumps({**event, "sequence_number": at}) for at, event in enumerate(events))
        return [f"event: {event['type']}\ndata: {text}\n\n" for event, text in zip(events, texts, strict=True)]


WIRES: Final[Mapping[str, ChatCompletions | Responses]] = {
    "/v1/chat/completions": ChatCompletions(),
    "/v1/responses": Responses(),
}


def _usage(used: "Usage", read: str, written: str) -> "Body":
    return {
        f"{read}_tokens": used.prompt,
        f"{read}_tokens_details": {"cached_tokens": used.cached},
        f"{written}_tokens": used.completion,
        f"{written}_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": used.prompt + used.completion,
    }


def _output(reply: "Text", n: int, status: str) -> "list[Body]":
    items: list[Body] = [*reply.items]
    if reply.text or reply.refusal is not None or not (reply.calls or items):
        text = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
        content = [text] if reply.refusal is None else [{"type": "refusal", "refusal": reply.refusal}]
        items.append({"id": f"msg_{n}", "type": "message", "role": "assistant", "status": status, "content": content})
    for i, call in enumerate(reply.calls):
        made = {"id": f"fc_{n}_{i}", "type": "function_call", "status": "completed", "call_id": _id(call, n, i)}
        items.append({**made, "name": call.name, "arguments": call.arguments})
    return items


def _events(item: "Body", at: "Body") -> "Iterator[Body]":
    begun = {name: type(item[name])() for name in ("arguments", "content") if name in item}
    yield {"type": "response.output_item.added", **at, "item": item | begun}
    if item["type"] == "function_call":
        yield from _written("function_call_arguments", "arguments", item, at)
    for i, part in enumerate(item["content"] if item["type"] == "message" else ()):
        here, key = {**at, "content_index": i}, part["type"].removeprefix("output_")
        yield {"type": "response.content_part.added", **here, "part": {**part, key: ""}}
        yield from _written(part["type"], key, part, here)
        yield {"type": "response.content_part.done", **here, "part": part}
    yield {"type": "response.output_item.done", **at, "item": item}


def _written(name: str, key: str, part: "Body", at: "Body") -> "Iterator[Body]":
    for piece in _pieces(part[key]):
        yield {"type": f"response.{name}.delta", **at, "delta": piece, "logprobs": []}
    yield {"type": f"response.{name}.done", **at, key: part[key], "logprobs": []}


def _id(call: Any, n: int, i: int) -> str:
    return f"call_{n}_{i}" if call.id is None else str(call.id)


def _pieces(text: str, size: int = 12) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]
