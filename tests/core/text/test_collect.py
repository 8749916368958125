"""
Iterators and bytes made into bounded values.
"""

import asyncio
import base64

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from guardrails import Policy, Truncate
from guardrails.core.text.plain_json import MAX_ITEMS, collect, collect_async, decoded
from tests.tables import table


class Source:
    """
    Counts what is taken from it and remembers that it was closed.
    """

    def __init__(self, item: Any = 1, length: int | None = None) -> None:
        self.item, self.length, self.taken, self.closed = item, length, 0, False

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self.length is not None and self.taken >= self.length:
            raise StopIteration
        self.taken += 1
        return self.item

    def close(self) -> None:
        self.closed = True

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        try:
            return next(self)
        except StopIteration:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        self.close()


def collected(source: Source, limit: int, *, is_async: bool) -> tuple[list[Any], bool]:
    return asyncio.run(collect_async(source, limit)) if is_async else collect(source, limit)


@table("is_async", [False, True])
@table("item", ["", "x" * 100, 1, None, {}, {"a": "b" * 50}, [[]], b"", b"\xff" * 30, object()])
def test_an_iterator_ends_in_time_and_is_closed(item: Any, is_async: bool) -> None:
    source = Source(item)
    items, complete = collected(source, 65_536, is_async=is_async)

    assert not complete
    assert source.closed
    assert 1 <= len(items) <= MAX_ITEMS
    assert source.taken == len(items) + 1
    assert len(collected(Source("x" * 97), 10_000, is_async=is_async)[0]) == 100, "about as large as its limit"
    ends = Source({"id": 1}, length=3)
    assert collected(ends, 1_000, is_async=is_async) == ([{"id": 1}] * 3, True)
    assert ends.closed


def test_a2_what_an_iterator_raises_is_not_swallowed() -> None:
    def failing() -> Iterator[int]:
        yield 1
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError, match="gone"):
        collect(failing())


@table("kind", [bytes, bytearray, memoryview])
@table(
    ("data", "value"),
    [
        (b"", ""),
        ("h\u00e9llo \U0001f600".encode(), "h\u00e9llo \U0001f600"),
        (b"\xff\xfe", {"base64": "//4=", "bytes": 2}),
        (b"text\x00text", {"base64": "dGV4dAB0ZXh0", "bytes": 9}),
        (b"ascii" * 4000 + b"\xff", None),
    ],
)
def test_bytes_become_text_or_base64(kind: Any, data: bytes, value: Any) -> None:
    expected = value if value is not None else {"base64": base64.b64encode(data).decode(), "bytes": len(data)}

    assert decoded(kind(data)) == (expected, True)


def test_d3_the_model_reads_how_long_cut_bytes_really_are() -> None:
    session = Policy([Truncate(max_bytes=1_000)]).session("s")
    envelope = session.call("read", {}, lambda *_: b"x" * 10_000_000)

    assert envelope.is_complete is False
    assert "of 10,000,000 characters shown]" in envelope.to_json()
    assert envelope.to_json().count("truncated:") == 1
