"""
The front door: what a command may run, worked out once for the same text.
"""

from collections.abc import Sequence
from functools import lru_cache

from guardrails.core.commands.grammar.scope import UNKNOWN, Scope
from guardrails.core.commands.grammar.syntax import NoParserError, UnreadableError

from .found import Found
from .walk import Walker


def walk(command: str | Sequence[str]) -> Found:
    """
    All that *command* may run: the text of a script, or the words of one command that no shell splits again. The same
    object again where it was asked a moment ago: not to be changed.

    Raises UnreadableError where it cannot be read, NoParserError without the parser.
    """
    found = _walked(command if isinstance(command, str) else tuple(command))
    if isinstance(found, UnreadableError):
        raise UnreadableError(str(found)) from found.__cause__
    return found


@lru_cache(maxsize=32)
def _walked(command: str | tuple[str, ...]) -> Found | UnreadableError:
    walker = Walker()
    try:
        if any(UNKNOWN in part for part in ([command] if isinstance(command, str) else command)):
            return UnreadableError("it holds a NUL")
        if isinstance(command, str):
            walker.script(command, Scope(), 0, None, None)
        else:
            walker.run(list(command), Scope(), None, None)
    except NoParserError:
        raise
    except UnreadableError as error:
        return error.with_traceback(None)
    except Exception as error:  # noqa: BLE001
        # Whatever fails in reading it, nobody has read it.
        failed = UnreadableError(f"reading it failed ({type(error).__name__})")
        failed.__cause__ = error.with_traceback(None)
        return failed
    return walker.found
