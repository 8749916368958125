"""
HTML that no shown text can break: every text that is not markup is escaped. Characters that steer a terminal or turn
the direction of writing are shown by their names.
"""

from collections.abc import Iterable
from html import escape
from typing import Final

from guardrails.core.text.short_keys import cached_if_short


NAME: Final = 72
"""Characters shown of a name from a transcript: tool, session, source, code."""
EMPTY: Final = "(empty)"
"""What stands for a name of no characters."""
SENTENCE: Final = 400
"""Characters shown of a notice or a reason."""
_TAIL: Final = 18
"""Of them, from the end: names that begin alike are told apart by how they end."""
_VOID: Final = {"br", "col", "input", "link", "meta"}


class Markup(str):
    """
    Text that is HTML already.
    """

    __slots__ = ()


def tag(name: str, /, *children: str, **attributes: object) -> Markup:
    """
    Returns an element. Children that are not `Markup` are escaped; `class_` is `class`, `data_x` is `data-x`; None
    leaves an attribute out, True writes it without a value.
    """
    opened = name
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        written = key.rstrip("_").replace("_", "-")
        opened += f" {written}" if value is True else f' {written}="{escape(visible(str(value)))}"'
    return Markup(f"<{opened}>" if name in _VOID else f"<{opened}>{join(children)}</{name}>")


def join(parts: Iterable[str], between: str = "") -> Markup:
    """
    Returns the parts one after the other, each escaped if it is not markup.
    """
    return Markup(
        between.join(part if isinstance(part, Markup) else escape(visible(part), quote=False) for part in parts)
    )


def visible(text: str) -> str:
    """
    Returns *text* with control, format and direction characters and lone surrogates as escapes, in the way of Python.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


@cached_if_short(512)
def short(text: str, limit: int = NAME) -> str:
    """
    Returns *text*, visible, in at most *limit* characters: the middle is left out.
    """
    if len(text) > 2 * limit:
        text = text[:limit] + text[-limit:]
        shown = visible(text)
    else:
        shown = visible(text)
        if len(shown) <= limit:
            return shown
    return f"{shown[: limit - _TAIL - 1]}…{shown[-_TAIL:]}"


def named(text: str) -> Markup:
    """
    Returns a name from a transcript, apart from the direction of writing around it.
    """
    return tag("bdi", short(text) or EMPTY)


def said(text: str) -> Markup:
    """
    Returns a sentence with something from a transcript in it.
    """
    return tag("bdi", short(text, SENTENCE))


def within(parts: Iterable[Markup], size: int) -> tuple[list[Markup], int]:
    """
    Returns the leading parts that fit into *size* bytes of UTF-8, and how many are left out.
    """
    kept: list[Markup] = []
    left_out = 0
    for part in parts:
        size -= len(part.encode())
        if size >= 0 and not left_out:
            kept.append(part)
        else:
            left_out += 1
    return kept, left_out
