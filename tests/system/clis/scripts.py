"""
What scripted models do, whichever CLI they sit in.
"""

import re

from collections.abc import Callable

from guardrails.testing.scripted_openai import Calls, ScriptedCall, Text

from .model import ANSWER, Script
from .wires.asked import Asked


def each(*turns: ScriptedCall | Calls) -> list[Calls | Text]:
    """
    A model that makes the calls of each of the *turns*, whatever it reads, and then answers.
    """
    return [*(Calls(turn) if isinstance(turn, ScriptedCall) else turn for turn in turns), Text(ANSWER)]


def stuck(turn: Callable[[int], Calls], *, most: int = 12) -> Script:
    """
    A model that goes on with *turn* until it reads that it has to write its final answer; *most* turns at most.
    """

    def say(asked: Asked) -> Calls | Text:
        if asked.turn >= most or told_to_end(asked):
            return Text(ANSWER)
        return turn(asked.turn)

    return say


def refused(text: str) -> bool:
    """
    Whether the result *text* is a refusal of ours.
    """
    return bool(re.search(r"\b(duplicates|loops|budget|denials)\.[a-z_]+", text))


def told_to_end(asked: Asked) -> bool:
    """
    Whether the model has read that it is to write its final answer, in a result or beside one.
    """
    return any("final answer" in text for text in (*asked.results, *asked.notes))
