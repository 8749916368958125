"""
Planted calls as transcripts, written as the programs write them whose formats they are.

A session is a list of steps. `"a x=1"`: tool a was asked for x and gave 1; `"a x!timeout"`: it failed so; `"a x?"`: no result is
recorded. Beside it a step may have `ms`, how long it took, and `tokens`, of the model response that begins with it; `same`: it
belongs to the response of the step before.
"""

import json

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from guardrails import Budget, Guard, Policy, Tool


Step = str | tuple[str, dict[str, Any]]
Sessions = list[list[Step]]

T0: Final = 1_769_111_840.0
ERRORS: Final = {
    "timeout": "Error: request timed out after 30 seconds",
    "rate_limit": "Error: rate limit exceeded (HTTP 429)",
    "not_found": "Error: 404 not found: no such record",
    "validation": "Error: validation failed: `n` must be an integer",
    "permission": "Error: permission denied",
    "unavailable": "Error: 503 service unavailable",
    "server_error": "Error: 500 internal server error",
    "connection": "Error: connection reset",
    "auth": "Error: 401 unauthorized",
    "conflict": "Error: 409 conflict",
    "too_large": "Error: 413 payload too large",
    "other": "Error: something went wrong",
}
"""What tools say of a failure of each type."""


class Planted(NamedTuple):
    """
    One call as it was made.
    """

    session: str
    place: int
    id: str
    at: float
    tool: str
    arguments: dict[str, str]
    result: str | None
    error: str | None
    ms: int
    tokens: int
    opens: bool
    """It begins a model response."""


def planted(sessions: Sessions) -> Iterator[Planted]:
    """
    The calls, a minute apart.
    """
    number = 0
    for place, steps in enumerate(sessions):
        for index, step in enumerate(steps):
            text, more = (step, {}) if isinstance(step, str) else step
            asked, sign, said = next(text.partition(sign) for sign in text if sign in "=!?")
            tool, _, argument = asked.partition(" ")
            error = said if sign == "!" else None
            result = None if sign == "?" else said if error is None else ERRORS[error]
            opens = not more.get("same", False)
            yield Planted(
                f"s{place}",
                index,
                f"call_{number}",
                T0 + 60.0 * number,
                tool,
                {"of": argument} if argument else {},
                result,
                error,
                more.get("ms", 0),
                more.get("tokens", 0),
                opens,
            )
            number += 1


def lines(sessions: Sessions) -> str:
    """
    JSON lines of one call each.
    """
    made, turns = [], 0
    for call in planted(sessions):
        turns += call.opens
        row = {"source": "data", "session_id": call.session, "call_index": call.place, "tool": call.tool, "turn": turns}
        row |= {"arguments": call.arguments, "result": call.result, "ts": call.at, "duration_ms": call.ms or None}
        row |= {"is_error": None if call.result is None else call.error is not None, "error_type": call.error}
        row |= {"tokens_in": call.tokens or None, "tokens_out": None}
        made.append(row)
    return "".join(json.dumps(row) + "\n" for row in made)


def claude(sessions: Sessions) -> str:
    """
    A session of Claude Code.
    """
    made: list[dict[str, Any]] = []
    turns = 0
    for call in planted(sessions):
        turns += call.opens
        use = {"type": "tool_use", "id": call.id, "name": call.tool, "input": call.arguments}
        usage = {"input_tokens": call.tokens, "output_tokens": 0}
        message = {"id": f"msg_{turns}", "model": "claude-opus-4-6", "type": "message", "role": "assistant"}
        made.append(
            {
                "type": "assistant",
                "sessionId": call.session,
                "uuid": f"a{call.id}",
                "timestamp": _iso(call.at),
                "message": {**message, "content": [use], "usage": usage},
            }
        )
        if call.result is not None:
            done = {"type": "tool_result", "tool_use_id": call.id, "content": call.result}
            done["is_error"] = call.error is not None  # type: ignore[assignment]
            made.append(
                {
                    "type": "user",
                    "sessionId": call.session,
                    "uuid": f"u{call.id}",
                    "timestamp": _iso(call.at + call.ms / 1000),
                    "message": {"role": "user", "content": [done]},
                }
            )
    return "".join(json.dumps(row) + "\n" for row in made)


def chat(sessions: Sessions) -> str:
    """
    Chats of OpenAI, one to a line.
    """
    chats: dict[str, list[dict[str, Any]]] = {}
    for call in planted(sessions):
        messages = chats.setdefault(call.session, [{"role": "user", "content": "go"}])
        function = {"name": call.tool, "arguments": json.dumps(call.arguments)}
        made = {"id": call.id, "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [made]})
        if call.result is not None:
            messages.append({"role": "tool", "tool_call_id": call.id, "content": call.result})
    return "".join(json.dumps({"id": name, "messages": messages}) + "\n" for name, messages in chats.items())


def codex(sessions: Sessions) -> str:
    """
    A rollout of Codex; it holds one session, so that the calls of others are made in one of their own.
    """
    made: list[dict[str, Any]] = []
    for call in planted(sessions):
        if call.place == 0:
            made.append(
                {"type": "session_meta", "payload": {"id": call.session, "source": "cli"}, "timestamp": _iso(call.at)}
            )
        payload = {
            "type": "function_call",
            "name": call.tool,
            "arguments": json.dumps(call.arguments),
            "call_id": call.id,
        }
        made.append({"type": "response_item", "payload": payload, "timestamp": _iso(call.at)})
        if call.result is not None:
            output = {"type": "function_call_output", "call_id": call.id, "output": call.result}
            made.append({"type": "response_item", "payload": output, "timestamp": _iso(call.at + call.ms / 1000)})
    return "".join(json.dumps(row) + "\n" for row in made)


FORMATS: Final[dict[str, Callable[[Sessions], str]]] = {"lines": lines, "claude": claude, "chat": chat, "codex": codex}


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def own(path: Path, guards: list[Guard], sessions: Sessions) -> None:
    """
    Records of sessions that really ran under *guards*, at *path*.
    """
    now = T0

    def clock() -> float:
        return now

    schema = {"type": "object", "properties": {"of": {"enum": ["right", "x", "y"]}}}
    policy = Policy([Budget(max_calls=10_000), *guards], tools=[Tool(name="checked", parameters=schema)])
    of: dict[str, list[Planted]] = {}
    for call in planted(sessions):
        of.setdefault(call.session, []).append(call)
    for name, calls in of.items():
        with policy.session(name, records=path, clock=clock) as session:
            for call in calls:

                def execute(tool: str, arguments: Any, call: Planted = call) -> Any:
                    nonlocal now
                    now += call.ms / 1000
                    if call.error is not None:
                        raise RuntimeError(call.result)
                    return call.result

                session.begin_turn()
                session.call(call.tool, call.arguments, execute)
                now += 60
