"""
The interface of every sink, and the sinks that pass a record on at once.
"""

import threading

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from guardrails.core.erasing import Erasing, Record
from guardrails.core.values.logs import warn_once


Entry = Record | Callable[[], Record]
"""A record, or a function without parameters that makes it when it is written."""


@runtime_checkable
class Sink(Protocol):
    """
    Takes records. Every record that was put is counted once: written, dropped (no room, or closed) or failed.

    Secrets are redacted before. A sink with an attribute `redact_secrets` that is False gets them plain.
    """

    written: int
    dropped: int
    failed: int

    def put(self, record: Entry, size_hint: int) -> None:
        """
        Hand *record* over, about *size_hint* bytes of it; called on the hot path, never raises.

        The record, and the values from which a function will make it, belong to the sink from here on and must not be
        changed.
        """

    def flush(self, timeout: float | None = None) -> bool:
        """
        Wait up to *timeout* seconds until all records that were put are written. Returns False if they are not.
        """

    def close(self) -> None:
        """
        Flush. Records that are put later are dropped. A second close does nothing.
        """


def put_of(sink: Sink) -> Callable[[Entry, int], None]:
    """
    Returns the `put` of *sink*, behind the redaction of secrets unless it redacts by itself or wants them plain.
    """
    if isinstance(getattr(sink, "erasing", None), Erasing) or getattr(sink, "redact_secrets", True) is False:
        return sink.put
    erasing = Erasing()
    return lambda record, size: sink.put(lambda: erasing(record() if callable(record) else record), size)


class OnRecord:
    """
    Call *on_record* with each record, at once and in the caller's thread. Its exceptions are counted and logged once.
    Secrets are plain only if not *redact_secrets*.
    """

    def __init__(self, on_record: Callable[[Record], object], *, redact_secrets: bool = True) -> None:
        self._on_record = on_record
        self.erasing = Erasing(redact_secrets=redact_secrets)
        self._counting = threading.RLock()
        self._closed = False
        self.written = self.dropped = self.failed = 0

    def put(self, record: Entry, size_hint: int = 0) -> None:
        count = "dropped"
        try:
            if not self._closed:
                self._on_record(self.erasing(record() if callable(record) else record))
                count = "written"
        except Exception as error:  # a record never fails the call it is about
            count = "failed"
            warn_once(f"on_record {id(self)}", "`on_record` raised `%s`, the record is lost", type(error).__name__)
        with self._counting:
            setattr(self, count, getattr(self, count) + 1)

    def flush(self, timeout: float | None = None) -> bool:
        return True

    def close(self) -> None:
        self._closed = True


class MemorySink(OnRecord):
    """
    Keep the records in the list *records*; for tests. Secrets are plain only if not *redact_secrets*.
    """

    def __init__(self, *, redact_secrets: bool = True) -> None:
        self.records: list[Record] = []
        super().__init__(self.records.append, redact_secrets=redact_secrets)
