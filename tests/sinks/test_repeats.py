import json
import unicodedata

from pathlib import Path
from typing import Any

import orjson

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Policy, Validation
from guardrails.core.guards.base import Guard, Verdict, guard
from guardrails.sinks import JsonLines, read
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


@given(st.text(max_size=30), st.text("ab\n\"'\\é ", min_size=MIN_CHARS, max_size=40), st.text("ab", max_size=30))
def test_no_value_is_left_in_a_message(before: str, value: str, after: str) -> None:
    for form in (value, repr(value), json.dumps(value)):
        left = cleared(f"{before}{form}{after}", value)
        assert not any(value in part for part in left.split(ERASED))


@given(st.text("ab"), st.lists(st.text("ab", max_size=MIN_CHARS - 1)))
def test_short_values_are_left(message: str, values: list[str]) -> None:
    assert cleared(message, *values) == message


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


def test_a_settled_call_without_its_arguments_keeps_no_message_where_they_are_redacted() -> None:
    settled = {"event": "settle", "error_message": "bad hunter2", "guard_errors": []}

    assert written(settled, redact="arguments.password") == {
        **settled,
        "error_message": ERASED,
        "erased": ["error_message"],
    }
    assert written(settled, redact="result.password") == settled


# What a session writes


@guard
class Talkative(Guard):
    """A guard whose failure repeats what it looked at."""

    def check(self, call: Any, state: Any, mine: Any, facts: Any) -> Verdict:
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
