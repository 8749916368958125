"""
Refuses requests of Responses whose tools, tool choice or items the real API would not take.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from .replies import NAME, Body, Fail, refused


_ROLES: Final = frozenset({"system", "developer", "user", "assistant"})
_CALLS: Final = {"function_call": "arguments", "custom_tool_call": "input"}
_OUTPUTS: Final = frozenset({"function_call_output", "custom_tool_call_output"})
_OURS: Final = frozenset({"function", "custom"})

Stored = Mapping[str, Sequence[Body]]
"""Conversations by the id of their last response."""


def history(body: Body, stored: Stored) -> list[Body]:
    """
    All items that a request goes on from, its own among them.
    """
    given = body.get("input")
    own = [{"role": "user", "content": given}] if isinstance(given, str) else list(given or ())
    return [*stored.get(body.get("previous_response_id") or "", ()), *own]


def problem(body: Body, stored: Stored) -> Fail | None:
    """
    The HTTP 400 of the real API for a request that it would refuse; unknown fields are tolerated.
    """
    return next((p for p in (*_request_problems(body, stored), *_input_problems(body, stored)) if p is not None), None)


def _request_problems(body: Body, stored: Stored) -> Iterator[Fail | None]:
    if not isinstance(body.get("model"), str):
        yield refused("Missing required parameter: 'model'.", "model")
    tools = body.get("tools")
    if tools is not None and not isinstance(tools, list):
        yield refused("Invalid type for 'tools': expected an array.", "tools")
        return
    for i, tool in enumerate(tools or []):
        name = tool.get("name") if isinstance(tool, dict) else None
        ours = isinstance(tool, dict) and tool.get("type") in _OURS
        if not isinstance(tool, dict) or not isinstance(tool.get("type"), str):
            yield refused(f"Missing required parameter: 'tools[{i}].type'.", f"tools[{i}].type")
        elif ours and (not isinstance(name, str) or not NAME.fullmatch(name)):
            yield refused(f"Missing required parameter: 'tools[{i}].name'.", f"tools[{i}].name")
        elif ours and tool.get("strict") is not False and _loose(tool.get("parameters")):
            yield refused(
                f"Invalid schema for function '{name}': all fields must be required.", f"tools[{i}].parameters"
            )
    yield _choice_problem(body.get("tool_choice"), tools or [])
    previous = body.get("previous_response_id")
    if previous is not None and previous not in stored:
        yield refused(f"Previous response with id '{previous}' not found.", "previous_response_id")


def _loose(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return False
    every = set(schema.get("properties") or ())
    return schema.get("additionalProperties") is not False or every != set(schema.get("required") or ())


def _choice_problem(choice: Any, tools: list[Any]) -> Fail | None:
    listed = [(tool.get("type"), tool.get("name")) for tool in tools]
    match choice:
        case None | "none" | "auto":
            return None
        case "required" if tools:
            return None
        case {"type": "allowed_tools", "mode": "auto" | "required", "tools": [_, *_] as allowed}:
            asked = [(tool.get("type"), tool.get("name")) for tool in allowed]
        case {"type": str()} if choice["type"] != "allowed_tools":
            asked = [(choice["type"], choice.get("name"))]
        case _:
            return refused("Invalid value for 'tool_choice'.", "tool_choice")
    lacking = [name or kind for kind, name in asked if (kind, name) not in listed]
    return refused(f"Tool choice '{lacking[0]}' not found in 'tools' parameter.", "tool_choice") if lacking else None


def _input_problems(body: Body, stored: Stored) -> Iterator[Fail | None]:
    given = body.get("input")
    if isinstance(given, str):
        return
    if not isinstance(given, list) or not given or not all(isinstance(item, dict) for item in given):
        yield refused("Invalid 'input': expected text or an array of items with minimum length 1.", "input")
        return
    waiting: Counter[str] = Counter()
    items = history(body, stored)
    for i, item in enumerate(items):
        at = f"input[{i}]"
        kind = item.get("type", "message")
        if kind in _CALLS:
            yield _call_problem(item, at)
            waiting[str(item.get("call_id"))] += 1
        elif kind in _OUTPUTS:
            if not isinstance(item.get("output"), (str, list)):
                yield refused(f"Invalid type for '{at}.output': expected text or an array.", f"{at}.output")
            if not waiting[str(item.get("call_id"))]:
                said = f"No tool call found for function call output with call_id {item.get('call_id')}."
                yield refused(said, "input")
            waiting[str(item.get("call_id"))] -= 1
        elif kind == "reasoning":
            yield _reasoning_problem(body, items, i)
        elif kind == "message" and item.get("role") not in _ROLES:
            yield refused(f"Invalid value: '{item.get('role')}'.", f"{at}.role")
        elif kind == "message" and not isinstance(item.get("content"), (str, list)):
            yield refused(f"Invalid type for '{at}.content': expected text or an array.", f"{at}.content")
    yield from (
        refused(f"No tool output found for function call {call_id}.", "input")
        for call_id in waiting
        if waiting[call_id]
    )


def _call_problem(item: Body, at: str) -> Fail | None:
    for name in ("call_id", "name", _CALLS[item["type"]]):
        if not isinstance(item.get(name), str) or (name == "call_id" and not item[name]):
            return refused(f"Missing required parameter: '{at}.{name}'.", f"{at}.{name}")
    return None


def _reasoning_problem(body: Body, items: list[Body], i: int) -> Fail | None:
    item, after = items[i], items[i + 1] if i + 1 < len(items) else {}
    if not isinstance(item.get("summary"), list):
        return refused("Invalid type for 'summary': expected an array.", "input")
    if after.get("role", "assistant") != "assistant" or after.get("type", "message") in _OUTPUTS or not after:
        said = f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item."
        return refused(said, "input")
    if body.get("store") is False and not item.get("encrypted_content"):
        said = f"Item with id '{item.get('id')}' not found. Items are not persisted when `store` is set to false."
        return refused(said, "input")
    return None
