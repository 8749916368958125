"""
Stories of agents: loops that bring nothing, and honest work that looks like them.

Each line of `stories.jsonl` is one. Its `turns` are lists of calls, `[tool, arguments, result]`, or the seconds before the next turn, or
`user`, a message of the user's; `times` says how often they come. A result with `raises` is a failure. Loops and honest stories of one name
differ in an answer or a field alone, those that are `timed` in their pauses; twins are honest work that a rule of its own protects. The
stories are our own, written after what users of other agents complained of (docs/measurements.md names the threads), and know no guard.
"""

import builtins
import json

from pathlib import Path
from typing import Any, Final


Call = tuple[str, dict[str, Any], Any]
Story = list[list[Call] | float | str]
PAUSE: Final = 10.0
"""Seconds before a turn, unless the story says other ones. Half of the recorded calls come within 2 to 8 s of the one before, nine of ten
within 52 s."""
USER: Final = "user"
_LINES: Final = [json.loads(line) for line in Path(__file__).with_suffix(".jsonl").read_text("utf-8").splitlines()]


def _result(told: Any) -> Any:
    if isinstance(told, dict) and "raises" in told:
        return getattr(builtins, told["raises"])(told["says"])
    return told


def _turn(told: Any) -> Any:
    if not isinstance(told, list):
        return told
    return [(tool, arguments, _result(result)) for tool, arguments, result in told]


def _stories(kind: str, *, timed: bool = False) -> dict[str, Story]:
    lines = [line for line in _LINES if line["kind"] == kind and (line.get("timed") or not timed)]
    return {line["name"]: [_turn(told) for told in line["turns"]] * line.get("times", 1) for line in lines}


LOOPS: Final = _stories("loops")
HONEST: Final = _stories("honest")
TIMED_LOOPS: Final = _stories("loops", timed=True)
TIMED_HONEST: Final = _stories("honest", timed=True)
TWINS: Final = _stories("twins")
