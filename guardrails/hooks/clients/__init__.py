"""
The clients: how each tells its events, and how it is answered.
"""

from typing import TYPE_CHECKING, cast

from guardrails.hooks.told import Event

from . import claude, codex, gemini


if TYPE_CHECKING:
    from guardrails.hooks.told import Client

CLIENTS: "dict[str, Client]" = {one.__name__.rpartition(".")[2]: cast("Client", one) for one in (claude, codex, gemini)}


def client_of(event: Event) -> "Client":
    """
    Who tells *event*, as far as it says so.
    """
    if "timestamp" in event and "turn_id" not in event:
        return CLIENTS["gemini"]
    if "turn_id" in event or ("model" in event and "permission_mode" in event and "prompt_id" not in event):
        return CLIENTS["codex"]
    return CLIENTS["claude"]


def guessed(data: bytes) -> "Client":
    """
    Who has written *data*, which is no event that can be read.
    """
    if b'"BeforeTool"' in data or b'"AfterTool"' in data:
        return CLIENTS["gemini"]
    return CLIENTS["codex" if b'"turn_id"' in data else "claude"]
