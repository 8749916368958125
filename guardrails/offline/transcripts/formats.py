"""
The formats that can be read: the library's own, and those that other packages add by the entry point group `guardrails.readers`.

Formats of other packages are asked after the library's, so that none can take another's file. They are looked for only
if a file is in none of the library's formats.
"""

from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from guardrails.core.values.errors import GuardrailsError

from .call_lines import CallLines
from .calls import RecordedCall, Report
from .claude_code import ClaudeCode
from .codex import Codex
from .events import Came, Event, Format, Made, Used, Values
from .gemini_cli import GeminiCLI
from .langsmith import LangSmith
from .openai_chat import OpenAIChat
from .openai_responses import OpenAIResponses
from .own_records import OwnRecords
from .spans import Spans


FORMATS: Final[tuple[Format, ...]] = (
    OwnRecords(),
    CallLines(),
    ClaudeCode(),
    Codex(),
    GeminiCLI(),
    LangSmith(),
    Spans(),
    OpenAIResponses(),
    OpenAIChat(),
)
"""The more particular forms first: a list of items holds messages too."""
GROUP: Final = "guardrails.readers"


class ReaderError(GuardrailsError):
    """
    A file cannot be read for want of a package, or because of a broken one.
    """


def format_names() -> list[str]:
    """
    Returns the formats that can be read, as a person would call them, those of other packages last. If a reader of
    those is broken, they are left out.
    """
    added: tuple[Format, ...] = ()
    with suppress(ReaderError):
        added = added_formats()
    return [form.name for form in (*FORMATS, *added)]


@cache
def added_formats() -> tuple[Format, ...]:
    """
    Returns the formats of other packages, in the order of their entry points' names.

    Raises ReaderError for one that cannot be loaded or is no `Format`.
    """
    found = sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))
    return tuple(_Added(point) for point in found)


class _Added:
    """
    A format of another package. An error in it is a ReaderError that names the package and says what to do.
    """

    def __init__(self, point: EntryPoint) -> None:
        of = f" of the package `{point.dist.name}`" if point.dist is not None else ""
        self._whose = f"the reader `{point.name}` (`{point.value}`){of}"
        try:
            made = point.load()
            self._form: Format = made() if isinstance(made, type) else made
            self.name = str(self._form.name)
            if not (callable(self._form.fits) and callable(self._form.events)):
                raise TypeError("it lacks the methods `fits` and `events`")
        except Exception as error:
            raise self._failed("cannot be loaded", error) from error

    def fits(self, value: Any) -> bool | None:
        try:
            return self._form.fits(value)
        except Exception as error:
            raise self._failed("failed in `fits`", error) from error

    def events(self, values: Values, file: str, report: Report) -> Iterator[Event]:
        try:
            for event in self._form.events(values, file, report):
                if not isinstance(event, (Made, Came, Used)):
                    raise TypeError(f"it gave a {type(event).__name__} for an event")
                if isinstance(event, Made) and not _is_sound(event.call):
                    raise TypeError("it gave a call whose `tool` or `session_id` is no text")
                yield event
        except Exception as error:
            raise self._failed(f"failed in `events` on `{file}`", error) from error

    def _failed(self, what: str, error: Exception) -> ReaderError:
        said = f"{type(error).__name__}: {error}"
        return ReaderError(f"{self._whose} {what}: {said}; correct it or uninstall the package")


def _is_sound(call: Any) -> bool:
    return (
        isinstance(call, RecordedCall) and type(call.tool) is str and type(call.session_id) is str and bool(call.tool)
    )
