"""
The wire of Gemini: how a request is read, and how a reply is written, whole or streamed.
"""

import json

from typing import Any

from guardrails.testing.scripted_openai import Body, Calls, Text, Usage

from .asked import Asked


def read(body: Body) -> Asked:
    """
    The request as the tests look at it.
    """
    prompt: list[str] = []
    results: list[str] = []
    notes: list[str] = []
    turn, last = 0, ""
    for content in body.get("contents") or ():
        role = content.get("role", "user")
        turn += role == "model" != last
        last = role
        if role == "model":
            continue
        for part in content.get("parts") or ():
            if "functionResponse" in part:
                results.append(_text(part["functionResponse"].get("response")))
            elif "text" in part:
                (notes if turn else prompt).append(part["text"])
    tools = tuple(one["name"] for tool in body.get("tools") or () for one in tool.get("functionDeclarations") or ())
    mode = ((body.get("toolConfig") or {}).get("functionCallingConfig") or {}).get("mode")
    return Asked(body, "\n".join(prompt), turn, tuple(results), tuple(notes), tools, mode == "NONE")


def whole(body: Body, reply: Text | Calls, n: int) -> Body:
    """
    The response, all of it in one piece.
    """
    calls = reply.calls if isinstance(reply, Calls) else ()
    parts: list[Body] = [{"text": reply.text}] if reply.text or not calls else []
    parts += [
        {"functionCall": {"id": call.id or f"call_{n}_{i}", "name": call.name, "args": json.loads(call.arguments)}}
        for i, call in enumerate(calls)
    ]
    spent = reply.used(body.get("contents")) or Usage(0, 0)
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "modelVersion": "gemini-2.5-flash",
        "responseId": f"response_{n}",
        "usageMetadata": {
            "promptTokenCount": spent.prompt,
            "cachedContentTokenCount": spent.cached,
            "candidatesTokenCount": spent.completion,
            "totalTokenCount": spent.prompt + spent.completion,
        },
    }


def frames(body: Body, reply: Text | Calls, n: int) -> list[str]:
    """
    The server-sent events of a streamed response: one.
    """
    return [f"data: {json.dumps(whole(body, reply, n))}\r\n\r\n"]


def _text(response: Any) -> str:
    if isinstance(response, dict) and len(response) == 1:
        (only,) = response.values()
        if isinstance(only, str):
            return only
    return json.dumps(response, ensure_ascii=False)
