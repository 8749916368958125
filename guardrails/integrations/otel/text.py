"""
Text that is fit for an exporter: bounded, valid Unicode, and without secrets if it is content.
"""

from typing import Final

from guardrails.core.text.control import sanitise
from guardrails.core.text.redaction import CUT, EDGE_CHARS, redact


MAX_NAME: Final = 256
"""Characters of a name or an id."""
MAX_CONTENT: Final = 4_096
"""Characters of arguments, and of a result."""
_SCANNED: Final = 16_384
"""Bytes of them that wait to be read."""


def named(text: str) -> str:
    """
    A name or an id that a model has written: half a pair of surrogates would fail the whole batch of an exporter.
    """
    short = text[:MAX_NAME]
    return short if short.isascii() and short.isprintable() else sanitise(short)


def head(payload: bytes) -> bytes:
    """
    As much of the JSON *payload* as is looked at later.
    """
    return payload if len(payload) <= _SCANNED else payload[:_SCANNED]


def content(payload: bytes) -> str:
    """
    The text of *payload* without secrets, at most `MAX_CONTENT` characters of it.
    """
    text = payload.decode("utf-8", "replace")
    told = redact(text, len(text), keep_traceback=True)
    if len(payload) >= _SCANNED:
        # Half a secret has no shape to be found by.
        told = told[:-EDGE_CHARS]
    return told if len(told) <= MAX_CONTENT else f"{told[: MAX_CONTENT - len(CUT)]}{CUT}"
