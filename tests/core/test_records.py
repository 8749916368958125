"""
What paths and modes take out of a record, and what a message may still say.
"""

import dataclasses
import io

from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Policy
from guardrails.core.erasing import ERASED, Erasing
from guardrails.core.record import MAX_SNAPSHOT_BYTES, snapshot
from guardrails.core.text.signature import sign
from guardrails.core.values.types import ToolCall
from guardrails.sinks import JsonLines, MemorySink, read, to_line
from tests.tables import table


CASES = yaml.safe_load(Path(__file__).with_name("records.yaml").read_text())
USERS = [{"name": "a", "pin": "t0"}, {"name": "b", "pin": "t1"}]
ARGUMENTS = {"city": "Shibuya", "card": 4111111111111111, "users": USERS}


@dataclasses.dataclass
class Login:
    user: str
    word: str
    tags: frozenset[str] = frozenset()


def shown(record: dict[str, Any], *paths: str, **modes: Any) -> dict[str, Any]:
    line: dict[str, Any] = orjson.loads(to_line(Erasing(paths, **modes)(record)))
    return line


@table(("path", "erased"), CASES["paths"])
@table("ready", [False, True])
def test_a_path_erases_and_the_line_says_what(path: str, erased: list[str], ready: bool) -> None:
    before = orjson.dumps(ARGUMENTS)
    line = shown({"n": 1, "arguments": orjson.Fragment(before) if ready else ARGUMENTS}, path)
    assert line.get("erased", []) == erased
    assert line["n"] == 1
    assert orjson.dumps(ARGUMENTS) == before


@table(("arguments", "path", "erased"), [
    ({"login": Login("anna", "open sesame")}, "arguments.login.word", "arguments.login.word"),
    ({"logins": [Login("anna", "open sesame")]}, "arguments.logins.*.word", "arguments.logins.0.word"),
    ({"login": Login("anna", "", frozenset({"open sesame"}))}, "**.tags.*", "arguments.login.tags.0"),
    ({"by_id": {1: {"word": "open sesame"}}}, "arguments.by_id.*.word", "arguments.by_id.\x001.word"),
    ({"by_id": {"!dict": {"word": "open sesame"}}}, "arguments.by_id.word", "arguments.by_id.!dict"),
])  # fmt: skip
def test_a_path_leads_into_objects_and_what_is_no_json_goes_whole(arguments: object, path: str, erased: str) -> None:
    *_, canonical = sign("t", arguments)
    assert canonical is not None
    line = shown({"arguments": orjson.Fragment(canonical), "problems": [["", "no open\nSESAME", "value"]]}, path)
    assert "sesame" not in str(line).casefold()
    assert line["erased"] == [erased, "problems"]


NESTED = orjson.Fragment(b"[" * 3000 + b'"open sesame"' + b"]" * 3000)


@table("arguments", ['{"word": "open sesame"', {"_truncated_json": '{"word": "open sesame'}, [NESTED]])
def test_what_cannot_be_looked_into_is_erased(arguments: object) -> None:
    assert "sesame" not in str(shown({"arguments": arguments}, "arguments.**.word"))


@table(("message", "left"), CASES["messages"])
@table("event", ["call", "settle"])
def test_a_message_that_repeats_what_went_is_erased_whole(message: str, left: str, event: str) -> None:
    given = {"word": "open sesame", "card": 4111111111111111}
    record = {"event": event, "arguments": given, "error_message": message, "guard_errors": [["budget", message]]}
    line = shown(record, "arguments.word")
    assert (line["error_message"], line["guard_errors"]) == (left, [["budget", left]])
    assert ("arguments" in line) is (event == "call")


def test_a_message_goes_where_nobody_knows_what_it_may_repeat() -> None:
    record = {"event": "settle", "error_message": "no sesame"}
    assert shown(record, "arguments.word")["error_message"] == ERASED
    assert shown(record, arguments="hash")["error_message"] == ERASED
    assert shown(record) == record


CALL = {
    "n": 1,
    "sig": -5,
    "near_sig": 6,
    "arguments": {"a": 1},
    "result": "text",
    "result_hash": 7,
    "result_hash_masked": 8,
}


@table(("settings", "gone"), CASES["left_out"])
def test_arguments_and_results_may_be_left_out_but_for_their_hashes(settings: dict[str, Any], gone: list[str]) -> None:
    line = shown(CALL, **settings)
    assert line.pop("erased", []) == gone
    assert line == {key: value for key, value in CALL.items() if key not in gone}


@table("settings", [{"arguments": "none"}, {"results": None}, {"redact": "arguments..a"}, {"redact": ("",)}])
def test_a_setting_that_is_not_valid_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must be full, hash or off|not a dotted path"):
        Erasing(**settings)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**200), 2**200) | st.floats() | st.text() | st.binary() | st.just(object()),
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.dictionaries(st.text() | st.integers() | st.binary(), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(ANYTHING)
def test_anything_makes_one_whole_line_and_stays_as_it_was(value: object) -> None:
    record = {"n": 1, "value": value, "arguments": value, "error_message": value, "problems": [value, [value, value]]}
    before = {**record}
    line = to_line(Erasing("arguments.**.x*", results="hash")(record))
    assert line.count(b"\n") == 1
    assert line.endswith(b"}\n")
    assert all(record[key] is before[key] for key in before)


# The arguments of a record


class Handle:
    """Nothing is known of it but its address, so arguments with one cannot be signed."""


def test_the_arguments_of_a_record_are_those_from_before_the_tool_ran(clock: Any, tmp_path: Any) -> None:
    arguments = {"handle": Handle(), "rows": [1, 2], "late": 1}

    def spoil(_: str, given: dict[str, Any]) -> str:
        given["rows"].clear()
        del given["late"]
        return "ok"

    # Only flush writes, so that the tool is done before its call's line is made.
    with JsonLines(tmp_path / "calls.jsonl") as sink:
        assert Policy().session("s", clock=clock, records=sink).call("t", arguments, spoil).ok
        sink.flush()
    call = next(iter(read(tmp_path / "calls.jsonl")))
    assert (call["sig"], call["arguments"]) == (None, {"handle": "<Handle>", "rows": [1, 2], "late": 1})


def test_recording_uses_nothing_up_that_the_tool_is_given(clock: Any) -> None:
    def read_all(_: str, given: dict[str, Any]) -> list[Any]:
        return [given["file"].read(), *given["rows"]]

    session = Policy().session("s", clock=clock, records=MemorySink())
    arguments = {"file": io.StringIO("text"), "rows": iter([1, 2]), "handle": Handle()}
    assert session.call("t", arguments, read_all).value == ["text", 1, 2]


def test_signed_arguments_are_not_written_again() -> None:
    canonical = b'{"a":1}'
    assert snapshot(ToolCall("t", {"a": 1}, "call_1", b"", 1, (), canonical)) is canonical


LONG = [
    {"handle": Handle(), "text": "x" * 100_000},
    {"handle": Handle(), "rows": [b""] * 40_000},
    [[]] * MAX_SNAPSHOT_BYTES,
]


@table("arguments", LONG)
def test_a_snapshot_is_bounded_and_says_so(arguments: Any) -> None:
    written = snapshot(ToolCall("t", arguments, "call_1", None, None))
    assert len(written) <= MAX_SNAPSHOT_BYTES
    assert b"truncated" in written
    orjson.loads(written)
