"""
One item of a conversation (a message of chat.completions, an item of Responses) and its JSON text.
"""

import json

from collections.abc import Mapping
from typing import Any

from .file import ConversationError


def text_of(item: Any) -> str:
    """
    The JSON of *item*: a mapping, an object of the openai client, or JSON text, which stays as it is.

    Raises ConversationError for what is no JSON object.
    """
    if isinstance(item, str):
        parsed(item)
        return _storable(item)
    if not isinstance(item, Mapping):
        dump = getattr(item, "model_dump", None)
        if dump is None:
            raise ConversationError(f"a message is a JSON object, not `{type(item).__name__}`")
        # Fields that the server did not send are not sent back: some servers refuse the nulls.
        item = dump(mode="json", exclude_unset=True)
    try:
        return _storable(json.dumps(item, ensure_ascii=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ConversationError(f"a message that is not JSON cannot be kept: {error}") from None


def parsed(text: str) -> dict[str, Any]:
    """
    The item that *text* is the JSON of. Raises ConversationError if it is no JSON object.
    """
    try:
        item = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise ConversationError(f"a message that is not JSON: {error}") from None
    if not isinstance(item, dict):
        raise ConversationError(f"a message is a JSON object, not `{text[:80]}`")
    return item


def _storable(text: str) -> str:
    """
    *text* as SQLite can hold it: lone surrogates are escaped, which JSON reads back as they were.
    """
    if text.isascii():
        return text
    return "".join(char if not "\ud800" <= char <= "\udfff" else f"\\u{ord(char):04x}" for char in text)
