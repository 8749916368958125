"""
The wire of OpenAI Responses: how a request is read. Replies are written as the scripted OpenAI server writes them.
"""

from typing import Any, Final

from guardrails.testing.scripted_openai import Body

from .asked import Asked


PATH: Final = "/v1/responses"
_OUTPUTS: Final = frozenset({"function_call_output", "custom_tool_call_output"})
_MADE: Final = frozenset({"function_call", "custom_tool_call", "reasoning"})


def read(body: Body) -> Asked:
    """
    The request as the tests look at it.
    """
    prompt: list[str] = []
    results: list[str] = []
    notes: list[str] = []
    turn, own = 0, False
    for item in body.get("input") or ():
        kind = item.get("type", "message")
        before, own = own, kind in _MADE or item.get("role") == "assistant"
        turn += own and not before
        if kind in _OUTPUTS:
            results.append(_text(item.get("output")))
        elif kind == "message" and not own:
            (notes if turn else prompt).append(_text(item.get("content")))
    tools = tuple(tool.get("name", tool["type"]) for tool in body.get("tools") or ())
    return Asked(body, "\n".join(prompt), turn, tuple(results), tuple(notes), tools)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", f"[{part.get('type')}]") for part in content or ())
