"""
The formats that can be read, and which of them a file is in.
"""

from typing import Final

from .base import Reader
from .call_lines import CallLines
from .claude_code import ClaudeCode
from .codex_rollout import CodexRollout
from .copilot_cli import CopilotCLI
from .gemini_cli import GeminiCLI
from .openai_chat import OpenAIChat
from .openai_responses import OpenAIResponses
from .otlp import OTLP
from .own_records import OwnRecords
from .tau2 import Tau2


READERS: Final[tuple[Reader, ...]] = (
    OwnRecords(),
    CallLines(),
    ClaudeCode(),
    CodexRollout(),
    CopilotCLI(),
    GeminiCLI(),
    OTLP(),
    Tau2(),
    OpenAIResponses(),
    OpenAIChat(),
)
"""The more particular forms first: a simulation and a list of items hold messages too."""


def recognise(head: str) -> Reader | None:
    """
    The reader of a file whose text begins with *head* (up to 64 KB); None where it is in none of the formats.
    """
    return next((reader for reader in READERS if reader.recognises(head)), None)
