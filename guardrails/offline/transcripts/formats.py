"""
The formats that can be read: the library's own, and those that other packages add by the entry point group `guardrails.readers`.

Formats of other packages are asked after the library's, so that none can take another's file. They are looked for only
if a file is in none of the library's formats.
"""

from functools import cache
from importlib.metadata import entry_points
from typing import Any, Final

from guardrails.core.values.errors import GuardrailsError

from .call_lines import CALL_LINES
from .calls import Format
from .chat import CHAT
from .claude_code import CLAUDE_CODE
from .codex import CODEX, CODEX_EXEC
from .gemini_cli import GEMINI_CLI
from .langsmith import LANGSMITH
from .opencode import OPENCODE
from .own_records import OWN_RECORDS
from .spans import SPANS


AGENTS: Final = (CLAUDE_CODE, CODEX, CODEX_EXEC, GEMINI_CLI, OPENCODE)
FORMATS: Final = (OWN_RECORDS, CALL_LINES, *AGENTS, LANGSMITH, SPANS, CHAT)
"""The more particular forms first."""
GROUP: Final = "guardrails.readers"


class ReaderError(GuardrailsError):
    """
    A format, of this library or of another package, is broken.
    """


def failing(reader: str, error: Exception) -> ReaderError:
    """
    Returns the error for a person whose *reader* raised another one.
    """
    said = f"{type(error).__name__}: {error}"
    return ReaderError(f"the reader {reader} failed: {said}; correct it or uninstall its package")


@cache
def added_formats() -> tuple[Format, ...]:
    """
    Returns the formats of other packages, in the order of their entry points' names.

    Raises ReaderError for one that cannot be loaded or is no `Format`.
    """
    found = []
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        try:
            form = point.load()
            found.append(Format(str(form.name), form.fits, form.events))
        except Exception as error:
            raise failing(f"`{point.name}` (`{point.value}`)", error) from error
    return tuple(found)


def format_of(values: list[Any]) -> Format | None:
    """
    Returns the format of a file of these *values*: the first that most of them fit, and of which one has a sure sign.

    Formats of other packages are asked last. Raises ReaderError for one that is broken.
    """

    def claims(form: Format) -> bool:
        try:
            fits = [form.fits(value) for value in values]
        except Exception as error:
            raise failing(f"of {form.name}", error) from error
        return True in fits and 2 * fits.count(False) <= len(fits)

    return next(filter(claims, FORMATS), None) or next(filter(claims, added_formats()), None)
