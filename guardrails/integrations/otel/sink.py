"""
Records that name the trace they belong to.
"""

import re

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from guardrails.core.erasing import Record
from guardrails.sinks.base import Entry, Sink


_TRACEPARENT: Final = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}(?:-.*)?"
)


class Ids(NamedTuple):
    """
    The ids of a span.
    """

    trace_id: int
    span_id: int


class TracedSink:
    """
    Puts records into *sink*, each with a field `trace`: the ids of the span that *present* names when it is put, if
    there is one. All its other attributes are those of the sink.
    """

    def __init__(self, sink: Sink, present: Callable[[], Ids | None]) -> None:
        self._sink = sink
        self._present = present

    def put(self, record: Entry, size_hint: int) -> None:
        ids = self._present()
        self._sink.put(record if ids is None else _named(record, ids), size_hint)

    def flush(self, timeout: float | None = None) -> bool:
        return self._sink.flush(timeout)

    def close(self) -> None:
        self._sink.close()

    @property
    def written(self) -> int:
        return self._sink.written

    @property
    def dropped(self) -> int:
        return self._sink.dropped

    @property
    def failed(self) -> int:
        return self._sink.failed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sink, name)


def ids_of(traceparent: str) -> Ids | None:
    """
    The ids in a W3C *traceparent*. Returns None if it is none.
    """
    found = _TRACEPARENT.fullmatch(traceparent)
    return None if found is None else Ids(int(found[1], 16), int(found[2], 16))


def _named(record: Entry, ids: Ids) -> Callable[[], Record]:
    def made() -> Record:
        trace = {"trace_id": f"{ids.trace_id:032x}", "span_id": f"{ids.span_id:016x}"}
        return {**(record() if callable(record) else record), "trace": trace}

    return made
