"""
Rules of an allow list that no command can match.
"""

import re

from functools import lru_cache
from typing import Final

from guardrails.core.commands.grammar.syntax import UnreadableError
from guardrails.core.values.late_pattern import pattern

from .form import NotPlainError, steps
from .run import ARITHMETIC


_LITERAL: Final = pattern(
    r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.|\{[^{}\s]*\}"""
    r"""|(?!\A\[{1,2}(?:\s|\Z))\[(?:[^]\s]+\])?|(?!\A!\s)[]*?{}!^#]|\$(?![A-Za-z_({])|[^\x20-\x7e]""",
    re.DOTALL,
)
"""Parts that a rule may hold beside plain text: quoted text, and signs that stand for several characters or for themselves."""


@lru_cache(maxsize=4096)
def unmatched(text: str) -> str | None:
    """
    Returns why the rule *text* of an allow list speaks of no command in the plain form. Returns None if it may speak of
    one.
    """
    # As it is written, but for those signs, a rule is such a command itself.
    try:
        found = steps(_LITERAL.sub("x", text))
    except NotPlainError as error:
        return f"it needs {error.kind}, and such a command is never allowed: {error.advice}"
    except UnreadableError as error:
        return str(error)
    if len(found) != 1 or len(found[0][1]) != 1:
        return "it speaks of several commands, and each is judged by itself: write one rule for each"
    if found[0][1][0][0] in ARITHMETIC:
        return f"`{found[0][1][0][0]}` works out what its words are, and is never allowed: leave the rule out"
    return None
