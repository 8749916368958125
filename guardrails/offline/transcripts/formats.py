"""
The formats that can be read: the library's own, and those that other packages add by the entry point group `guardrails.readers`.

Formats of other packages are asked after the library's, so that none can take another's file. They are looked for only
if a file is in none of the library's formats.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from guardrails.core.values.errors import GuardrailsError

from .call_lines import CallLines
from .calls import RecordedCall, Report
from .chat import Chat
from .claude_code import ClaudeCode
from .codex import Codex
from .events import Came, Event, Format, Made, Used, Values
from .gemini_cli import GeminiCLI
from .langsmith import LangSmith
from .opencode import OpenCode
from .own_records import OwnRecords
from .spans import Spans


FORMATS: Final = (
    OwnRecords(),
    CallLines(),
    ClaudeCode(),
    Codex(),
    GeminiCLI(),
    OpenCode(),
    LangSmith(),
    Spans(),
    Chat(),
)
"""The more particular forms first."""
GROUP: Final = "guardrails.readers"


class ReaderError(GuardrailsError):
    """
    A file cannot be read for want of a package, or because of a broken one.
    """


def format_names() -> list[str]:
    """
    Returns the formats that can be read, as a person would call them, those of other packages last, unless one of those is broken.
    """
    names = [form.name for form in FORMATS]
    with suppress(ReaderError):
        names += [form.name for form in added_formats()]
    return names


@cache
def added_formats() -> tuple[Format, ...]:
    """
    Returns the formats of other packages, in the order of their entry points' names.

    Raises ReaderError for one that cannot be loaded or is no `Format`.
    """
    return tuple(map(_Added, sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))))


class _Added:
    """
    A format of another package. An error in it is a ReaderError that names the package and says what to do.
    """

    def __init__(self, point: EntryPoint) -> None:
        self._point = point
        with self._telling("cannot be loaded"):
            made = point.load()
            form: Format = made() if isinstance(made, type) else made
            self.name, self._fits, self._events = str(form.name), form.fits, form.events

    def fits(self, value: Any) -> bool | None:
        with self._telling("failed in `fits`"):
            return self._fits(value)

    def events(self, values: Values, file: str, report: Report) -> Iterator[Event]:
        with self._telling(f"failed in `events` on `{file}`"):
            for event in self._events(values, file, report):
                if not isinstance(event, Made | Came | Used):
                    raise TypeError(f"it gave a {type(event).__name__} for an event")
                if isinstance(event, Made) and not _is_sound(event.call):
                    raise TypeError("it gave a call whose `tool` or `session_id` is no text")
                yield event

    @contextmanager
    def _telling(self, what: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            point = self._point
            of = f" of the package `{point.dist.name}`" if point.dist is not None else ""
            whose = f"the reader `{point.name}` (`{point.value}`){of}"
            said = f"{type(error).__name__}: {error}"
            raise ReaderError(f"{whose} {what}: {said}; correct it or uninstall the package") from error


def _is_sound(call: RecordedCall) -> bool:
    return type(call.tool) is str and type(call.session_id) is str and bool(call.tool)
