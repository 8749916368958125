"""
The clients: how each tells its events, and how it is answered.
"""

from collections.abc import Mapping
from typing import Any, Final

from .claude import Claude
from .client import Client
from .codex import Codex
from .gemini import Gemini


CLIENTS: Final[Mapping[str, Client]] = {"claude": Claude(), "codex": Codex(), "gemini": Gemini()}


def client_of(said: Mapping[str, Any]) -> Client:
    """
    The client that has *said* an event, as far as it says so.
    """
    if "timestamp" in said and "turn_id" not in said:
        return CLIENTS["gemini"]
    codex = "turn_id" in said or ("model" in said and "permission_mode" in said and "prompt_id" not in said)
    return CLIENTS["codex" if codex else "claude"]
