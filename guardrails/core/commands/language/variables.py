"""
Variables before a command that change how something looks and never what runs.
"""

from typing import Final

from guardrails.core.values.late_pattern import pattern


_HARMLESS: Final = pattern(
    r"""(?x)
    (?:LANG|LANGUAGE|LC_[A-Z]+)=[A-Za-z0-9_.:@-]*
    |TZ=(?:[A-Za-z0-9_+-]+/)*[A-Za-z0-9_+-]*
    |(?:NO_COLOR|FORCE_COLOR|CLICOLOR|CLICOLOR_FORCE|COLUMNS|LINES|CI|DEBUG|VERBOSE|NODE_ENV|RUST_BACKTRACE
        |PYTHONUNBUFFERED|PYTHONDONTWRITEBYTECODE|PYTHONHASHSEED|PYTHONUTF8|SOURCE_DATE_EPOCH|DEBIAN_FRONTEND
        |GIT_TERMINAL_PROMPT|GIT_OPTIONAL_LOCKS|HUSKY)=[A-Za-z0-9_.:,*-]*
    |TERM=(?:dumb|linux|vt100|xterm|xterm-256color)
    |(?:PAGER|GIT_PAGER|MANPAGER)=(?:cat)?
    """
)


def is_harmless(assignment: str) -> bool:
    """
    Returns whether `NAME=value` needs no rule: no program takes it for a path, a program or code.
    """
    return _HARMLESS.fullmatch(assignment) is not None
