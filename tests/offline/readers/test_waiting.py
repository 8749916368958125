"""
Calls that wait for their results.
"""

from guardrails.offline.readers.base import RecordedCall
from guardrails.offline.readers.waiting import Waiting


def call(id: str, session: str = "s") -> RecordedCall:
    return RecordedCall("source", session, -1, "t", {}, id=id)


def ids(calls: object) -> list[str | None]:
    return [one.id for one in calls]  # type: ignore[attr-defined]


def test_calls_are_given_out_in_the_order_in_which_they_began() -> None:
    waiting = Waiting()
    for key in "abc":
        waiting.add(call(key), key)
    assert waiting.settle("s", "b") is not None
    assert ids(waiting.ready("s")) == []
    assert waiting.settle("s", "a") is not None
    assert ids(waiting.ready("s")) == ["a", "b"]
    assert ids(waiting.rest()) == ["c"]


def test_a_call_has_its_place_in_its_session() -> None:
    waiting = Waiting()
    calls = [call("a"), call("a", "other"), call("b")]
    for one in calls:
        waiting.add(one, one.id)
    assert [one.call_index for one in calls] == [0, 0, 1]


def test_a_call_without_an_id_waits_for_nothing() -> None:
    waiting = Waiting()
    waiting.add(call("a"), None)
    assert ids(waiting.ready("s")) == ["a"]


def test_an_id_that_is_used_again_names_the_new_call() -> None:
    waiting = Waiting()
    first, second = call("x"), call("x")
    waiting.add(first, "x")
    waiting.add(second, "x")
    assert waiting.settle("s", "x") is second
    assert list(waiting.ready("s")) == [first, second]
    assert waiting.settle("s", "x") is None
