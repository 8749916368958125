"""
The front door: what a command may run, worked out once for the same text.
"""

from collections.abc import Sequence
from typing import Final

from guardrails.core.commands.grammar.scope import UNKNOWN
from guardrails.core.commands.grammar.syntax import NoParserError, UnreadableError
from guardrails.core.commands.grammar.work import Work

from .found import Found
from .walk import Walker


_MAX_KEPT: Final = 32
_MAX_UNITS: Final = 4_000_000
"""Units of work whose outcome is kept: each is a character of a command's words, at most."""
_kept: dict[str | tuple[str, ...], tuple[Found | UnreadableError, int]] = {}


def walk(command: str | Sequence[str]) -> Found:
    """
    Returns all that *command* may run: the text of a script, or the words of one command that no shell splits again.
    Returns the same object again for a command that was asked a moment ago: do not change it.

    Raises UnreadableError if the command cannot be read, NoParserError without the parser.
    """
    key = command if isinstance(command, str) else tuple(command)
    kept = _kept.get(key)
    if kept is None:
        kept = _walked(key)
        _keep(key, kept)
    found = kept[0]
    if isinstance(found, UnreadableError):
        raise UnreadableError(str(found), found.advice) from found.__cause__
    return found


def _keep(key: str | tuple[str, ...], said: tuple[Found | UnreadableError, int]) -> None:
    """
    Keep the outcome for the next question, and as many before it as are small enough together.
    """
    if said[1] > _MAX_UNITS:
        return
    # Threads may do this at once: what another took away, or put there, is none of this one's business.
    _kept[key] = said
    units = sum(each for _, each in tuple(_kept.values()))
    for old in tuple(_kept):
        if old is key or (units <= _MAX_UNITS and len(_kept) <= _MAX_KEPT):
            break
        gone = _kept.pop(old, None)
        units -= 0 if gone is None else gone[1]


def _walked(command: str | tuple[str, ...]) -> tuple[Found | UnreadableError, int]:
    """
    Returns the commands that *command* may run, and the work of finding them.
    """
    size = len(command) if isinstance(command, str) else sum(map(len, command))
    work = Work(size)
    most = work.left
    walker = Walker(work)
    found: Found | UnreadableError = walker.found
    try:
        if any(UNKNOWN in part for part in ([command] if isinstance(command, str) else command)):
            found = UnreadableError("it holds a NUL")
        elif isinstance(command, str):
            walker.script(command, 0, None, None)
        else:
            walker.run(command, None, None)
    except NoParserError:
        raise
    except UnreadableError as error:
        found = error.with_traceback(None)
    except Exception as error:  # noqa: BLE001
        # Whatever fails in reading it, nobody has read it.
        found = UnreadableError(f"reading it failed ({type(error).__name__})")
        found.__cause__ = error.with_traceback(None)
    return found, size + most - work.left
