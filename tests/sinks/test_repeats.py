import json
import unicodedata

from pathlib import Path
from typing import Any

import orjson

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Policy, Validation
from guardrails.core.guards.base import Guard, Verdict, guard
from guardrails.sinks import JsonLines, MemorySink, Record, parse_path, read, to_line
from guardrails.sinks.repeats import EDGE_CHARS, ERASED, MIN_CHARS, without_repeats
from tests.sinks.conftest import written
from tests.tables import table


LONG = "correct-horse-battery-staple"


def cleared(message: str, *values: str) -> str:
    return str(
        {"error_message": message, **without_repeats({"error_message": message}, frozenset(values))}["error_message"]
    )


@table(
    ("message", "value", "left"),
    [
        ("no user with password hunter2 here", "hunter2", "no user with password [erased] here"),
        ("hunter2 is not hunter2", "hunter2", "[erased] is not [erased]"),
        ("hunter2", "hunter2", "[erased]"),
        ("Hunter2 hunter", "hunter2", "Hunter2 hunter"),
        ("pinpin", "pin", "pinpin"),
        ("pins", "pins", "[erased]"),
        ("aXaXaXa", "aXaXa", "[erased]"),
        (f"got {LONG}", LONG, "got [erased]"),
        (f"got {LONG[:12]}...", LONG, "got [erased]..."),
        (f"got {LONG[:-5]} [...] {LONG[-10:]}", LONG, "got [erased] [...] [erased]"),
        (f"got {LONG[: EDGE_CHARS - 1]}...", LONG, f"got {LONG[: EDGE_CHARS - 1]}..."),
        ("got two\\nlines", "two\nlines", "got [erased]"),
        ("got two lines", "two \n lines", "got [erased]"),
        ('got "say \\"hi\\""', 'say "hi"', 'got "[erased]"'),
        ("got 'say \\\\ hi'", "say \\ hi", "got '[erased]'"),
        ("got \\u304d\\u3087\\u3046\\u3068", "きょうと", "got [erased]"),
        (f"got {unicodedata.normalize('NFD', 'crème brûlée')}", "crème brûlée", "got [erased]"),
        ("", "hunter2", ""),
    ],
)
def test_what_a_message_repeats_of_a_value_is_erased(message: str, value: str, left: str) -> None:
    assert cleared(message, value) == left


def test_values_that_overlap_leave_nothing_of_either() -> None:
    assert cleared("see abcdefghi.", "abcdef", "defghi") == "see [erased]."


@given(st.text(max_size=30), st.text("ab\n\"'\\é ", min_size=MIN_CHARS, max_size=40), st.text("ab", max_size=30))
def test_no_value_is_left_in_a_message(before: str, value: str, after: str) -> None:
    for form in (value, repr(value), json.dumps(value)):
        left = cleared(f"{before}{form}{after}", value)
        assert not any(value in part for part in left.split(ERASED))


@given(st.text("ab"), st.lists(st.text("ab", max_size=MIN_CHARS - 1)))
def test_short_values_are_left(message: str, values: list[str]) -> None:
    assert cleared(message, *values) == message


@given(st.text("ab"), st.lists(st.text("ab")), st.text("xyz"))
def test_what_no_value_has_a_part_in_is_left(message: str, values: list[str], other: str) -> None:
    left = cleared(f"{other}{message}{other}", *values)

    assert left.startswith(other)
    assert left.endswith(other)


ARGUMENTS = {"user": "anna", "password": "hunter2", "card": 4111111111111111, "sub": {"keys": ["k-1234", True, None]}}


@table(
    ("paths", "message", "left"),
    [
        (["arguments.password"], "anna: bad hunter2", "anna: bad [erased]"),
        (["**.PASS*"], "anna: bad hunter2", "anna: bad [erased]"),
        (["arguments.card"], "4111111111111111 is expired", "[erased] is expired"),
        (["arguments.sub"], "k-1234 True None", "[erased] True None"),
        (["arguments.sub.keys.0"], "k-1234", "[erased]"),
        (["arguments"], "anna: bad hunter2", "[erased]: bad [erased]"),
        (["arguments.nothing"], "anna: bad hunter2", None),
        (["result.password"], "anna: bad hunter2", None),
    ],
)
@table("ready", [False, True])
def test_a_message_of_a_call_loses_what_paths_erased(
    paths: list[str], message: str, left: str | None, ready: bool
) -> None:
    arguments = orjson.Fragment(orjson.dumps(ARGUMENTS)) if ready else ARGUMENTS
    record = {
        "event": "call",
        "arguments": arguments,
        "problems": [["password", message, "value"]],
        "guard_errors": [["budget", message]],
    }
    line = written(record, redact=tuple(paths))

    assert line["problems"] == [["password", left or message, "value"]]
    assert line["guard_errors"] == [["budget", left or message]]
    assert ({"problems", "guard_errors"} <= set(line.get("erased", ()))) is (left is not None)


@table("mode", ["hash", "off"])
def test_arguments_that_are_left_out_do_not_come_in_by_a_message(mode: str) -> None:
    line = written({"arguments": ARGUMENTS, "problems": [["", "anna: bad hunter2", "value"]]}, arguments=mode)

    assert line["problems"] == [["", "[erased]: bad [erased]", "value"]]


@table(
    ("arguments", "problem", "left"),
    [
        ({"sk-live-1234": 1}, ["sk-live-1234", "is unknown", "unknown"], ["[erased]", "is unknown", "unknown"]),
        ({"hunter": 1}, ["hunter", "is unknown", "unknown"], ["[erased]", "is unknown", "unknown"]),
        ({"k" * 90: 1}, ["k" * 61 + "...", "is unknown", "unknown"], ["[erased]...", "is unknown", "unknown"]),
        (
            {"headers": {"hunter2": 1}},
            ["headers.hunter2", "is no `hunter2`", "value"],
            ["headers.[erased]", "is no `[erased]`", "value"],
        ),
        ({"all": [{"key of one": 1}]}, ["all", "no `key of one`", "value"], ["all", "no `[erased]`", "value"]),
        ({"city": "Kyoto"}, ["city", "must have 3 characters", "value"], ["city", "must have 3 characters", "value"]),
        ({"stay": {"nights": "Kyoto"}}, ["stay.nights", "of nights", "value"], ["stay.nights", "of nights", "value"]),
    ],
)
@table("mode", ["hash", "off"])
def test_a_key_that_is_content_is_not_repeated_either(mode: str, arguments: Any, problem: Any, left: Any) -> None:
    line = written({"arguments": arguments, "problems": [problem], "error_message": problem[1]}, arguments=mode)

    assert line["problems"] == [left]
    assert line["error_message"] == left[1]


@table(
    "arguments",
    [
        "--password hunter2",
        b"--password hunter2",
        lambda: "--password hunter2",
        {"_truncated_json": '{"password":"hunter2', "original_bytes": 99},
    ],
)
@table("settings", [{"redact": "arguments.password"}, {"arguments": "hash"}])
def test_where_nobody_knows_the_values_all_of_a_message_goes(arguments: Any, settings: dict[str, Any]) -> None:
    line = written({"arguments": arguments, "error_message": "unknown option hunter2"}, **settings)

    assert line["error_message"] == ERASED
    assert "hunter2" not in str(line)


def test_a_settled_call_without_its_arguments_keeps_no_message_where_they_are_redacted() -> None:
    settled = {"event": "settle", "error_message": "bad hunter2", "guard_errors": []}

    assert written(settled, redact="arguments.password") == {
        **settled,
        "error_message": ERASED,
        "erased": ["error_message"],
    }
    assert written(settled, redact="result.password") == settled


def test_a_settled_call_is_written_without_its_arguments() -> None:
    settled = {"event": "settle", "arguments": ARGUMENTS, "error_message": "bad hunter2"}

    assert written(settled) == {"event": "settle", "error_message": "bad hunter2"}
    assert written(settled, arguments="hash")["erased"] == ["error_message"]
    assert written(settled, redact="arguments.password") == {
        "event": "settle",
        "error_message": "bad [erased]",
        "erased": ["error_message"],
    }


@table(
    "messages",
    [
        {"error_message": 7, "problems": "hunter2", "guard_errors": {"a": "b"}},
        {"error_message": b"hunter2", "problems": [7, [], ["a"], ["a", 1], ("a", "b")], "guard_errors": ()},
    ],
)
def test_messages_of_another_shape_do_no_harm(messages: Record) -> None:
    line = json.loads(to_line({"arguments": ARGUMENTS, **messages}, paths=(parse_path("arguments.password"),)))

    assert line["arguments"].keys() == {"user", "card", "sub"}


# What a session writes


@guard
class Talkative(Guard):
    """A guard whose failure repeats what it looked at."""

    def check(self, call: Any, state: Any, facts: Any) -> Verdict:
        raise KeyError(call.arguments["password"])


def sign_in(user: str, password: str) -> str:
    raise AssertionError


def refuse(_: str, arguments: dict[str, Any]) -> None:
    raise ValueError(f"{arguments.pop('password')} is not the one of {arguments['user']}")


def test_no_line_of_a_call_repeats_what_was_redacted(clock: Any, path: Path) -> None:
    policy = Policy([Validation(), Talkative()], tools=[sign_in], on_error="allow")
    with JsonLines(path, redact=("arguments.password",)) as sink:
        session = policy.session("s", clock=clock, records=sink)
        envelope = session.call("sign_in", {"user": "anna", "password": LONG}, refuse)
        assert LONG in str(envelope.error_message)

    assert LONG not in path.read_text()
    call, settle = read(path)
    assert call["guard_errors"] == [["talkative", f"KeyError: '{ERASED}'"]]
    assert settle["error_message"] == f"{ERASED} is not the one of anna"
    assert call["erased"] == ["arguments.password", "guard_errors"]
    assert settle["erased"] == ["error_message"]
    assert "arguments" not in settle


def test_only_a_call_that_failed_has_its_arguments_twice(clock: Any) -> None:
    sink = MemorySink()
    session = Policy([]).session("s", clock=clock, records=sink)
    session.call("t", {"a": 1}, lambda *_: "ok")
    session.call("sign_in", {"user": "anna", "password": LONG}, refuse)

    assert [("arguments" in record) for record in sink.records] == [True, False, True, True]
