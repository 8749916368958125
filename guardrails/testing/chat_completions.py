"""
The chat.completions wire of the scripted server: what the API refuses, and how a reply is written, whole or streamed.
"""

import json

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from .replies import NAME, Body, Calls, Fail, Failed, ScriptedCall, Text, refused, used


PATH: Final = "/v1/chat/completions"
CREATED: Final = 1_700_000_000
PIECE: Final = 12
"""Characters of text or arguments in one streamed event."""

_ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_NEEDS_TOOLS: Final = ("tool_choice", "parallel_tool_calls")


def problem(body: Body, stored: Mapping[str, Sequence[Body]]) -> Fail | None:
    """
    The HTTP 400 of the real API for a request that it would refuse; unknown fields are tolerated.
    """
    return next((p for p in (*_request_problems(body), *_message_problems(body)) if p is not None), None)


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


def _request_problems(body: Body) -> Iterator[Fail | None]:
    if not isinstance(body.get("model"), str):
        yield refused("you must provide a model parameter")
    tools = body.get("tools")
    if tools is not None and (not isinstance(tools, list) or not tools):
        yield refused("Invalid 'tools': expected an array with minimum length 1.", "tools")
    names = [_tool_name(tool) for tool in tools or []]
    for i, name in enumerate(names):
        if not isinstance(name, str) or not NAME.fullmatch(name):
            yield refused(f"Invalid 'tools[{i}].function.name': expected {NAME.pattern}.", f"tools[{i}].function.name")
    for key in _NEEDS_TOOLS:
        if body.get(key) is not None and not tools:
            yield refused(f"'{key}' is only allowed when 'tools' are specified.", key)
    yield _choice_problem(body.get("tool_choice"), names)
    if body.get("stream_options") is not None and not body.get("stream"):
        yield refused("The 'stream_options' parameter is only allowed when 'stream' is enabled.", "stream_options")


def _tool_name(tool: Any) -> Any:
    if not isinstance(tool, dict):
        return None
    return (tool.get(tool.get("type") or "function") or {}).get("name")


def _choice_problem(choice: Any, names: list[Any]) -> Fail | None:
    match choice:
        case None | "none" | "auto" | "required":
            return None
        case {"type": "function" | "custom" as kind}:
            wanted = (choice.get(kind) or {}).get("name")
            if wanted in names:
                return None
            return refused(f"Invalid value for 'tool_choice': '{wanted}' not found in 'tools'.", "tool_choice")
        case {"type": "allowed_tools", "allowed_tools": {"mode": "auto" | "required", "tools": [_, *_] as allowed}}:
            missing = [_tool_name(tool) for tool in allowed if _tool_name(tool) not in names]
            if not missing:
                return None
            return refused(f"Invalid value for 'tool_choice': '{missing[0]}' not found in 'tools'.", "tool_choice")
        case _:
            return refused("Invalid value for 'tool_choice'.", "tool_choice")


def _message_problems(body: Body) -> Iterator[Fail | None]:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(m, dict) for m in messages):
        yield refused("Invalid 'messages': expected an array of objects with minimum length 1.", "messages")
        return

    waiting: Counter[str] = Counter()
    for i, message in enumerate(messages):
        at = f"messages[{i}]"
        if message.get("role") == "tool":
            yield _content_problem(message, at)
            if not waiting[str(message.get("tool_call_id"))]:
                yield refused(
                    "Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'.",
                    f"{at}.role",
                )
            waiting[str(message.get("tool_call_id"))] -= 1
            continue

        yield _unanswered(waiting, at)
        waiting = Counter(str(c.get("id")) for c in message.get("tool_calls") or [] if isinstance(c, dict))
        yield _role_problem(message, at)
        yield _calls_problem(message, at)
        if not (message.get("role") == "assistant" and message.get("tool_calls")):
            yield _content_problem(message, at)
    yield _unanswered(waiting, f"messages[{len(messages)}]")


def _unanswered(waiting: Counter[str], at: str) -> Fail | None:
    ids = [id_ for id_, missing in waiting.items() if missing > 0]
    if not ids:
        return None
    return refused(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"The following tool_call_ids did not have response messages: {', '.join(ids)}",
        f"{at}.role",
    )


def _role_problem(message: Body, at: str) -> Fail | None:
    if message.get("role") in _ROLES:
        return None
    return refused(f"Invalid value for '{at}.role': '{message.get('role')}'.", f"{at}.role")


def _content_problem(message: Body, at: str) -> Fail | None:
    if isinstance(message.get("content"), (str, list)) or message.get("refusal") or message.get("function_call"):
        return None
    return refused(f"Invalid value for '{at}.content': expected a string or an array.", f"{at}.content")


def _calls_problem(message: Body, at: str) -> Fail | None:
    calls = message.get("tool_calls")
    if calls is None:
        return None
    if message.get("role") != "assistant" or not isinstance(calls, list) or not calls:
        return refused(f"Invalid '{at}.tool_calls': expected an array with minimum length 1.", f"{at}.tool_calls")
    for i, wire in enumerate(calls):
        match wire:
            case {"id": str(), "type": "function", "function": {"name": str(), "arguments": str()}}:
                pass
            case {"id": str(), "type": "custom", "custom": {"name": str(), "input": str()}}:
                pass
            case _:
                return refused(f"Invalid '{at}.tool_calls[{i}]'.", f"{at}.tool_calls[{i}]")
    return None
