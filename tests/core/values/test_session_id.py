"""
Names of sessions.
"""

from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Budget, Policy, SessionError
from guardrails.core.values.names import checked_id, session_name
from tests.tables import table


@table(
    ("name", "said"),
    [
        ("", "empty"),
        ("..", "`..`"),
        ("../../etc/passwd", "`..`"),
        ("a/b", "`/`"),
        ("a\\b", "not hold"),
        ("a\x00b", "control"),
        ("a\x7fb", "control"),
        ("a\u202eb", "turn the text around"),
        ("a\u061cb", "turn the text around"),
        ("\ufeffa", "turn the text around"),
        ("a\u00adb", "turn the text around"),
        ("..\u202e", "turn the text around"),
        ("x" * 257, "at most 256 bytes, not 257"),
        ("é" * 129, "not 258"),
        ("\ud800", "not seen"),
        (None, "NoneType"),
        (b"a", "bytes"),
    ],
)
def test_d8_a_name_that_could_reach_outside_is_refused(name: Any, said: str) -> None:
    with pytest.raises(SessionError, match=said):
        checked_id(name)


@table(
    "name",
    ["trip-42", "x" * 256, "é" * 128, "user@example.org:7", "a b", ".", "日本", "C:x", "می‌خواهم", "👩‍🔬", "שלום"],
)
def test_d8_other_names_are_kept_as_they_are(name: str) -> None:
    assert checked_id(name) is session_name(name) is name


@given(st.text(), st.text())
def test_d8_a_hosts_names_are_harmless_path_parts_and_two_threads_never_share_a_session(one: str, other: str) -> None:
    name = session_name(one)
    assert not set(name) & {"/", "\\", "\x00", "\n"}
    assert ".." not in name
    assert 0 < len(name.encode()) <= 256
    assert checked_id(name) is name
    assert (name == session_name(other)) == (one == other)


def test_d8_the_name_of_a_child_is_held_to_the_same(clock: Any) -> None:
    session = Policy([Budget(max_calls=3)]).session("s", clock=clock)
    for name in ("", "..", "a/b"):
        with pytest.raises(SessionError):
            session.child(name)
    assert session.child("sub").id == "s/sub"
    assert session.ledger.progress["calls_left"] == 0
