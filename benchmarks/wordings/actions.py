"""
The next action of a model, read from a completion, and whether it obeys.
"""

import json
import re

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from guardrails import Tool


_CUT: Final = re.compile(r'\s*\{\s*"tool"\s*:\s*"(?P<tool>[^"]*)"')


class Action(NamedTuple):
    """
    A call of *tool*, or an answer if that is None. Without *arguments* it is a call that was cut before they were whole.
    """

    tool: str | None
    arguments: dict[str, Any] | None = None

    @property
    def kind(self) -> str:
        """
        The word for it in figures.
        """
        return "answer" if self.tool is None else "cut" if self.arguments is None else "call"


class Asked(NamedTuple):
    """
    The last call before the model is asked, and the tool that it was for.
    """

    tool: Tool
    arguments: Mapping[str, Any]


Obeys = Callable[[Action, Asked], bool]


def action_of(completion: Mapping[str, Any]) -> Action:
    """
    Returns the action of a chat completion; of several calls the first.
    """
    message = completion["choices"][0]["message"]
    if calls := message.get("tool_calls"):
        function = calls[0]["function"]
        try:
            said = json.loads(function["arguments"])
        except ValueError:
            said = None
        return Action(function["name"], said if isinstance(said, dict) else None)
    cut = _CUT.match(message.get("content") or "")
    return Action(None if cut is None else cut["tool"])


def other_than_it(action: Action, asked: Asked) -> bool:
    """
    Whether it is anything but the same call.
    """
    return action != (asked.tool.name, asked.arguments)


def the_same(action: Action, asked: Asked) -> bool:
    """
    Whether it is the same call.
    """
    return not other_than_it(action, asked)


def another_tool(action: Action, asked: Asked) -> bool:
    """
    Whether it is an answer or a call of another tool.
    """
    return action.tool != asked.tool.name


def an_answer(action: Action, asked: Asked) -> bool:
    """
    Whether it is an answer, and no call.
    """
    return action.tool is None


def fits(action: Action, asked: Asked) -> bool:
    """
    Whether it is a call of the tool with arguments that its schema allows.
    """
    check = asked.tool.arguments()
    return (
        action.tool == asked.tool.name
        and action.arguments is not None
        and check is not None
        and not check.check(action.arguments)[1]
    )
