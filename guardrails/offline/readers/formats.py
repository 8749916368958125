"""
The formats that can be read, and which of them a file is in.
"""

from contextlib import suppress
from typing import Final

from guardrails.offline.readers.traces.langsmith import LangSmith
from guardrails.offline.readers.transcripts.call_lines import CallLines
from guardrails.offline.readers.transcripts.claude_code import ClaudeCode
from guardrails.offline.readers.transcripts.codex_rollout import CodexRollout
from guardrails.offline.readers.transcripts.gemini_cli import GeminiCLI
from guardrails.offline.readers.transcripts.openai_chat import OpenAIChat
from guardrails.offline.readers.transcripts.openai_responses import OpenAIResponses
from guardrails.offline.readers.transcripts.otlp import OTLP
from guardrails.offline.readers.transcripts.own_records import OwnRecords

from .base import Reader
from .plugins import added_readers
from .unpacked import ReaderError


READERS: Final[tuple[Reader, ...]] = (
    OwnRecords(),
    CallLines(),
    ClaudeCode(),
    CodexRollout(),
    GeminiCLI(),
    LangSmith(),
    OTLP(),
    OpenAIResponses(),
    OpenAIChat(),
)
"""The more particular forms first: a list of items holds messages too."""


def recognise(head: str) -> Reader | None:
    """
    Returns the reader of a file whose text begins with *head* (up to 64 KB). Returns None if it is in none of the
    formats.

    Readers of other packages are asked last. Raises ReaderError for one that is broken.
    """
    own = next((reader for reader in READERS if reader.recognises(head)), None)
    return own or next((reader for reader in added_readers() if reader.recognises(head)), None)


def format_names() -> list[str]:
    """
    Returns the formats that can be read, as a person would call them, those of other packages last. If a reader of
    those is broken, they are left out.
    """
    added: tuple[Reader, ...] = ()
    with suppress(ReaderError):
        added = added_readers()
    return [reader.name for reader in (*READERS, *added)]
