"""
The agent loop that everybody writes first: without guards, nothing but a count of requests ends it.
"""

import json

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from guardrails.core.values.usage import Usage, read_usage


if TYPE_CHECKING:
    from openai import OpenAI

NOTHING: Final = Usage(0, 0)


@dataclass(slots=True)
class Unguarded:
    """
    The result of a loop without guards.
    """

    requests: int = 0
    usage: Usage = NOTHING
    answer: str | None = None
    """None: it was stopped before there was one."""


def run_unguarded(
    client: "OpenAI",
    *,
    model: str,
    messages: list[dict[str, Any]],
    tools: list[dict[str, Any]],
    functions: Mapping[str, Callable[..., Any]],
    max_requests: int,
) -> Unguarded:
    """
    Run every call that *model* asks for until it answers, or until *max_requests* were made.
    """
    done = Unguarded()
    create: Any = client.chat.completions.create
    while done.requests < max_requests:
        completion = create(model=model, messages=messages, tools=tools)
        done.requests += 1
        done.usage = _sum(done.usage, read_usage(completion.usage))
        said = completion.choices[0].message
        if not said.tool_calls:
            done.answer = said.content or ""
            break
        messages.append(said.model_dump(exclude_none=True))
        for wanted in said.tool_calls:
            content = _run(functions, wanted.function.name, wanted.function.arguments)
            messages.append({"role": "tool", "tool_call_id": wanted.id, "content": content})
    return done


def _run(functions: Mapping[str, Callable[..., Any]], name: str, arguments: str) -> str:
    try:
        return json.dumps(functions[name](**json.loads(arguments or "{}")))
    except Exception as error:  # noqa: BLE001 (the model reads it)
        return f"error: {error!r}"


def _sum(a: Usage, b: Usage) -> Usage:
    return Usage(a.input + b.input, a.output + b.output, a.cached + b.cached)
