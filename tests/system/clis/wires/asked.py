"""
A request to the model, read alike on each wire.
"""

from dataclasses import dataclass

from guardrails.testing.scripted_openai import Body


@dataclass(frozen=True, slots=True)
class Asked:
    """
    What a CLI sends its model, and what the model reads of it.
    """

    body: Body
    prompt: str
    """What the user says before the first turn of the model, with what the CLI adds to it."""
    turn: int
    """Turns of the model that the conversation has so far."""
    results: tuple[str, ...]
    """What the model reads of each call that it made, in order."""
    notes: tuple[str, ...]
    """What else it reads after its first turn: texts of the user, of the system and of hooks."""
    tools: tuple[str, ...]
    """The names of the tools that it has; none where the CLI asks for a title or a summary."""
    silenced: bool = False
    """It may call none of them: the CLI wants its answer."""
