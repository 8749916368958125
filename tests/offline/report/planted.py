"""
Calls in few words: `"a x=1"`: tool a was asked for x and gave 1; `"a x!timeout"`: it failed so; `"a x?"`: no result is recorded.
"""

import json

from pathlib import Path
from typing import Any, Final, NamedTuple

from guardrails import Budget, Guard, Policy, Tool


Sessions = list[list[str]]

T0: Final = 1_769_111_840
SAID: Final = {
    "timeout": "Error: request timed out after 30 seconds",
    "not_found": "Error: 404 not found: no such record",
    "validation": "Error: validation failed: `n` must be an integer",
    "permission": "Error: permission denied",
}
"""What tools say of a failure of some types."""


class Planted(NamedTuple):
    """
    One call.
    """

    tool: str
    arguments: dict[str, str]
    result: str | None
    error: str | None


def planted(step: str) -> Planted:
    """
    Returns the call that *step* tells.
    """
    asked, sign, said = next(step.partition(sign) for sign in step if sign in "=!?")
    tool, _, argument = asked.partition(" ")
    error = said.partition(" ")[0] if sign == "!" else None
    result = None if sign == "?" else SAID.get(said, said)
    return Planted(tool, {"of": argument} if argument else {}, result, error)


def lines(sessions: Sessions) -> str:
    """
    Returns JSON lines of one call each, a minute apart.
    """
    calls = [(place, planted(step)) for place, steps in enumerate(sessions) for step in steps]
    rows = [
        {
            "session_id": f"s{place}",
            "tool": call.tool,
            "arguments": call.arguments,
            "result": call.result,
            "is_error": None if call.result is None else call.error is not None,
            "error_type": call.error,
            "ts": T0 + 60 * number,
        }
        for number, (place, call) in enumerate(calls)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


def own(path: Path, guards: list[Guard], sessions: Sessions) -> None:
    """
    Write records of sessions that really ran under *guards*.
    """
    schema = {"type": "object", "properties": {"of": {"enum": ["right", "x", "y"]}}}
    policy = Policy([Budget(max_calls=10_000), *guards], tools=[Tool(name="checked", parameters=schema)])
    for place, steps in enumerate(sessions):
        with policy.session(f"s{place}", records=path, clock=lambda: T0) as session:
            for call in map(planted, steps):

                def execute(tool: str, arguments: Any, call: Planted = call) -> Any:
                    if call.error is not None:
                        raise RuntimeError(call.result)
                    return call.result

                session.begin_turn()
                session.call(call.tool, call.arguments, execute)
