"""
The texts of a result: MCP's blocks, and data that is written as text.
"""

from typing import Any, Final


BLOCKS: Final = 8
"""Texts of a list that are read like one."""
_OPENINGS: Final = frozenset('{["')


def blocks(rows: Any) -> list[str] | None:
    """
    Returns the leading and last texts of a list that is the content of an MCP result. Returns None if it is not.
    """
    if not rows or not isinstance(rows[0], dict) or not isinstance(rows[0].get("type"), str):
        return None
    texts = [_text(one) for one in (*rows[:BLOCKS], *rows[BLOCKS:][-BLOCKS:])]
    return [text for text in texts if text is not None] if any(text is not None for text in texts) else None


def _text(block: Any) -> str | None:
    if not isinstance(block, dict):
        return None
    if block.get("type") == "resource" and isinstance(block.get("resource"), dict):
        block = block["resource"]
    elif block.get("type") != "text":
        return None
    text = block.get("text")
    return text if isinstance(text, str) else None


def looks_like_data(text: str) -> bool:
    """
    Returns whether a text may be JSON.
    """
    return text[:64].lstrip()[:1] in _OPENINGS


def unfenced(text: str) -> str:
    """
    Returns the text between the marks of a fenced block, if the text is one.
    """
    if not text[:64].lstrip().startswith("```"):
        return text
    _, _, body = text.partition("\n")
    return body.rstrip().removesuffix("```")
