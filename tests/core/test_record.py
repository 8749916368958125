import io

from typing import Any

import orjson

from guardrails import Policy
from guardrails.core.record import MAX_SNAPSHOT_BYTES, snapshot
from guardrails.core.values.types import ToolCall
from guardrails.sinks import JsonLines, MemorySink, read
from tests.tables import table


class Handle:
    """Nothing is known of it but its address, so arguments with one cannot be signed."""


def unsigned(arguments: Any) -> ToolCall:
    return ToolCall("t", arguments, "call_1", None, None)


def test_the_arguments_of_a_record_are_those_from_before_the_tool_ran(clock: Any, tmp_path: Any) -> None:
    arguments = {"handle": Handle(), "rows": [1, 2], "late": 1}

    def spoil(_: str, given: dict[str, Any]) -> str:
        given["rows"].clear()
        del given["late"]
        return "ok"

    # Only flush writes, so that the tool is done before its call's line is made.
    with JsonLines(tmp_path / "calls.jsonl") as sink:
        session = Policy().session("s", clock=clock, records=sink)
        assert session.call("t", arguments, spoil).ok
        sink.flush()

    call = next(iter(read(tmp_path / "calls.jsonl")))
    assert call["sig"] is None
    assert call["arguments"] == {"handle": "<Handle>", "rows": [1, 2], "late": 1}


def test_recording_uses_nothing_up_that_the_tool_is_given(clock: Any) -> None:
    def read_all(_: str, given: dict[str, Any]) -> list[Any]:
        return [given["file"].read(), *given["rows"]]

    session = Policy().session("s", clock=clock, records=MemorySink())
    arguments = {"file": io.StringIO("text"), "rows": iter([1, 2]), "handle": Handle()}
    assert session.call("t", arguments, read_all).value == ["text", 1, 2]


def test_signed_arguments_are_not_written_again() -> None:
    canonical = b'{"a":1}'
    assert snapshot(ToolCall("t", {"a": 1}, "call_1", b"", 1, (), canonical)) is canonical


@table(
    "arguments",
    [
        {"handle": Handle(), "text": "x" * 100_000},
        {"handle": Handle(), "rows": [b""] * 40_000},
        [[]] * MAX_SNAPSHOT_BYTES,
    ],
)
def test_a_snapshot_is_bounded_and_says_so(arguments: Any) -> None:
    written = snapshot(unsigned(arguments))
    assert len(written) <= MAX_SNAPSHOT_BYTES
    assert b"truncated" in written
    orjson.loads(written)
