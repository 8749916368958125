"""
Readers that other packages add, by the entry point group `guardrails.readers`.

They are asked after the library's own, so that none can take another's file. They are looked for only if a file is in
none of the library's formats.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from guardrails.core.values.types import ERROR_TYPES
from guardrails.offline.readers.text.fields import amount

from .base import Reader, RecordedCall, Report
from .unpacked import ReaderError


GROUP: Final = "guardrails.readers"

_NONE: Final = type(None)
_KINDS: Final[dict[str, tuple[type, ...]]] = {
    **dict.fromkeys(("source", "run"), (str,)),
    **dict.fromkeys(("id", "model", "error_type", "decision", "code"), (str, _NONE)),
    "call_index": (int,),
    **dict.fromkeys(("http_status", "retry_after_ms", "plain_hash", "masked_hash", "sig", "number"), (int, _NONE)),
    **dict.fromkeys(("has_result", "polling"), (bool,)),
    **dict.fromkeys(("is_error", "read_only", "is_complete"), (bool, _NONE)),
    **dict.fromkeys(("labels", "nudges"), (tuple,)),
}
"""The other fields of a call, and their types."""


@cache
def added_readers() -> tuple[Reader, ...]:
    """
    Returns the readers of other packages, in the order of their entry points' names.

    Raises ReaderError for one that cannot be loaded or is no `Reader`.
    """
    found = sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))
    return tuple(Added(point) for point in found)


class Added:
    """
    A reader of another package. An error in it is a ReaderError that names the package and says what to do.
    """

    def __init__(self, point: EntryPoint) -> None:
        of = f" of the package `{point.dist.name}`" if point.dist is not None else ""
        self._whose = f"the reader `{point.name}` (`{point.value}`){of}"
        self._next = "correct it or uninstall the package"
        try:
            made = point.load()
            reader = made() if isinstance(made, type) else made
        except Exception as error:
            raise self._failed("cannot be loaded", error) from error

        kinds = {"name": str, "whole": bool}
        wrong = [
            f"`{name}`, a {kind.__name__}"
            for name, kind in kinds.items()
            if type(getattr(reader, name, None)) is not kind
        ]
        wrong += [
            f"the method `{name}`" for name in ("recognises", "calls") if not callable(getattr(reader, name, None))
        ]
        if wrong:
            raise ReaderError(f"{self._whose} is no reader: it lacks {', '.join(wrong)}; {self._next}")

        self._reader: Reader = reader
        self.name, self.whole = reader.name, reader.whole

    def recognises(self, head: str) -> bool:
        try:
            return bool(self._reader.recognises(head))
        except Exception as error:
            raise self._failed("failed in `recognises`", error) from error

    def calls(self, lines: Iterable[bytes], source: str, report: Report, file: str) -> Iterator[RecordedCall]:
        try:
            made = iter(self._reader.calls(lines, source, report, file))
        except Exception as error:
            raise self._failed(f"failed in `calls` on `{file}`", error) from error

        while True:
            try:
                call = next(made)
            except StopIteration:
                return
            except (OSError, ReaderError):
                # Of the file, not of its reader.
                raise
            except Exception as error:
                raise self._failed(f"failed in `calls` on `{file}`", error) from error

            if wrong := _wrong(call):
                raise ReaderError(f"{self._whose} gave {wrong}; {self._next}")
            yield call

    def _failed(self, what: str, error: Exception) -> ReaderError:
        return ReaderError(f"{self._whose} {what}: {type(error).__name__}: {error}; {self._next}")


def _wrong(call: Any) -> str | None:
    """
    Returns the fault of *call* that no tool could read it with, None if it has none.
    """
    if not isinstance(call, RecordedCall):
        return f"a {type(call).__name__} for a `RecordedCall`"
    if type(call.tool) is not str or not call.tool or type(call.session_id) is not str:
        return "a call whose `tool` or `session_id` is no text"
    if not (call.result is None or type(call.result) is str):
        return "a call whose `result` is no text"
    numbers = (call.ts_ms, call.duration_ms, call.turn, call.tokens_in, call.tokens_out)
    if not all(each is None or type(each) is int for each in numbers):
        return "a call with a time, a turn or a count that is no whole number"
    for name, kinds in _KINDS.items():
        if type(getattr(call, name)) not in kinds:
            return f"a call whose `{name}` is no {kinds[0].__name__}"
    for name in ("cost_usd", "tool_cost_usd"):
        if (cost := getattr(call, name)) is not None and amount(cost) is None:
            return f"a call whose `{name}` is no amount in USD"
    if not (call.error_type is None or call.error_type in ERROR_TYPES):
        return "a call whose `error_type` is not one of the known types"
    return None
