"""
The chat.completions wire of the scripted server: what the API refuses, and how a reply is written, whole or streamed.
"""

import json

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from .refusals import calls_problem, tools_problem
from .replies import Body, Calls, Fail, Failed, ScriptedCall, Text, refused, used


PATH: Final = "/v1/chat/completions"
CREATED: Final = 1_700_000_000
PIECE: Final = 12
"""Characters of text or arguments in one streamed event."""

ROLES: Final = ("system", "developer", "user", "assistant", "tool")


def problem(body: Body, stored: Mapping[str, Sequence[Body]]) -> Fail | None:
    """
    Returns the HTTP 400 of the real API for a request that it would refuse.
    """
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(one, dict) for one in messages):
        return refused("Invalid 'messages': expected an array of objects with minimum length 1.", "messages")
    if not body.get("tools") and ("tools" in body or body.get("tool_choice") or "parallel_tool_calls" in body):
        return refused("'tool_choice' and 'parallel_tool_calls' are only allowed when 'tools' are specified.", "tools")
    if body.get("stream_options") and not body.get("stream"):
        return refused("'stream_options' is only allowed when 'stream' is enabled.", "stream_options")
    found = (_message_problem(message, f"messages[{place}]") for place, message in enumerate(messages))
    return (
        tools_problem(body, _tool_name)
        or next(filter(None, found), None)
        or calls_problem(messages, _ids, lambda one: one.get("tool_call_id"), key="messages", adjacent=True)
    )


def _message_problem(message: Body, at: str) -> Fail | None:
    calls, content = message.get("tool_calls"), message.get("content")
    if message.get("role") not in ROLES:
        return refused(f"Invalid value for '{at}.role': '{message.get('role')}'.", f"{at}.role")
    if not isinstance(content, (str, list)) and not calls and not message.get("refusal"):
        return refused(f"Invalid value for '{at}.content': expected a string or an array.", f"{at}.content")
    for place, made in enumerate(calls or ()):
        said = made.get(made.get("type")) or {}
        if not isinstance(said.get("arguments", said.get("input")), str) or not isinstance(made.get("id"), str):
            return refused(f"Invalid '{at}.tool_calls[{place}]'.", f"{at}.tool_calls[{place}]")
    return None


def _ids(message: Body) -> list[str]:
    return [made["id"] for made in message.get("tool_calls") or ()]


def _tool_name(tool: Any) -> Any:
    return (tool.get(tool.get("type") or "function") or {}).get("name", "") if isinstance(tool, dict) else ""


def stored_as(body: Body, reply: Text | Calls, n: int, stored: Mapping[str, Sequence[Body]]) -> dict[str, list[Body]]:
    """
    Returns the part of a conversation that the server keeps: none.
    """
    return {}


def whole(body: Body, reply: Text | Calls | Failed, n: int) -> Body | Fail:
    """
    The response to a request that does not stream.
    """
    if isinstance(reply, Failed):
        return Fail(500, message=reply.message, code=reply.code)
    message: Body = {"role": "assistant", "content": reply.text or None, "refusal": None, "annotations": []}
    if isinstance(reply, Calls):
        message["tool_calls"] = [_wire_call(c, n, i) for i, c in enumerate(reply.calls)]
    else:
        message |= {"content": None if reply.refusal else reply.text, "refusal": reply.refusal}

    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reply.finish_reason}
    response = _head(body, n, "chat.completion") | {"choices": [choice]}
    usage = usage_of(body, reply)
    return response if usage is None else response | {"usage": usage}


def frames(body: Body, reply: Text | Calls | Failed, n: int) -> list[str]:
    """
    The server-sent events of a streamed response, `[DONE]` last.

    The usage event (`choices == []`) comes only if `stream_options.include_usage` asks for it; every other event then
    says `usage: null`.
    """
    if isinstance(reply, Failed):
        first = frames(body, Text("..."), n)[0]
        return [first, f"data: {json.dumps({'error': {'message': reply.message, 'code': reply.code}})}\n\n"]
    wants_usage = bool((body.get("stream_options") or {}).get("include_usage"))
    head = _head(body, n, "chat.completion.chunk") | ({"usage": None} if wants_usage else {})

    chunks = [
        head | {"choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]}
        for delta, finish in _deltas(reply, n)
    ]
    usage = usage_of(body, reply) if wants_usage else None
    if usage is not None:
        chunks.append(head | {"choices": [], "usage": usage})
    return [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks] + ["data: [DONE]\n\n"]


def usage_of(body: Body, reply: Text | Calls) -> Body | None:
    """
    Returns the `usage` object, None if the script says so.
    """
    spent = used(reply, [body.get("messages"), body.get("tools")])
    if spent is None:
        return None
    return {
        "prompt_tokens": spent.prompt,
        "completion_tokens": spent.completion,
        "total_tokens": spent.prompt + spent.completion,
        "prompt_tokens_details": {"cached_tokens": spent.cached, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    }


def _head(body: Body, n: int, kind: str) -> Body:
    return {"id": f"chatcmpl-{n}", "object": kind, "created": CREATED + n, "model": body["model"]}


def _wire_call(call: ScriptedCall, n: int, i: int) -> Body:
    return {
        "id": f"call_{n}_{i}" if call.id is None else call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }


def _deltas(reply: Text | Calls, n: int) -> Iterator[tuple[Body, str | None]]:
    refusal = reply.refusal if isinstance(reply, Text) else None
    opening = None if isinstance(reply, Calls) and not reply.text else ""
    yield {"role": "assistant", "content": opening, "refusal": None}, None
    for piece in pieces(reply.text):
        yield {"content": piece}, None
    for piece in pieces(refusal or ""):
        yield {"refusal": piece}, None

    for i, scripted in enumerate(reply.calls if isinstance(reply, Calls) else ()):
        wire = _wire_call(scripted, n, i)
        named = wire | {"index": i, "function": {"name": scripted.name, "arguments": ""}}
        yield {"tool_calls": [named]}, None
        for piece in pieces(scripted.arguments):
            yield {"tool_calls": [{"index": i, "function": {"arguments": piece}}]}, None

    yield {}, reply.finish_reason


def pieces(text: str) -> Iterator[str]:
    """
    *text* in the parts that streamed events have.
    """
    return (text[i : i + PIECE] for i in range(0, len(text), PIECE))
