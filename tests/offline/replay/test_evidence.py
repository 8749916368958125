"""
What a recorded call really brought.
"""

from guardrails import Tool
from guardrails.offline.replay.evidence import WINDOW, Past, end_of
from guardrails.offline.transcripts import RecordedCall
from tests.tables import table


def call(**said: object) -> RecordedCall:
    made = RecordedCall("s", "a", {}, "data")
    for name, value in said.items():
        setattr(made, name, value)
    return made


def test_a_repeat_is_pointless_where_the_latest_identical_call_ended_alike() -> None:
    past = Past()
    assert [past.add(7, 1), past.add(7, 2), past.add(7, 1), past.add(7, 1)] == ["new", "new", "new", "later"]


def test_a_call_without_a_result_is_unknown_and_compared_with_nothing() -> None:
    past = Past()
    assert [past.add(7, 1), past.add(7, None), past.add(7, 1)] == ["new", "unknown", "second"]


def test_what_cannot_be_signed_is_never_a_repeat() -> None:
    past = Past()
    assert [past.add(None, 1), past.add(None, 1)] == ["new", "new"]


@table("between, worth", [(WINDOW - 1, "second"), (WINDOW, "new")])
def test_only_the_last_twenty_calls_count(between: int, worth: str) -> None:
    past = Past()
    past.add(7, 1)
    for n in range(between):
        past.add(100 + n, 1)
    assert past.add(7, 1) == worth


def end(call: RecordedCall) -> int | None:
    return end_of(call, Tool(name="a"))[1]


def test_hashes_that_the_transcript_holds_stand_above_its_text() -> None:
    assert end(call(plain_hash=5, result="cut")) == 5
    assert end(call(masked_hash=5, result="cut", is_error=True)) == ~5


def test_failures_are_compared_without_digits_and_successes_with_them() -> None:
    assert end(call(result="line 9", is_error=True)) == end(call(result="line 10", is_error=True))
    assert end(call(result="line 9")) != end(call(result="line 10"))


def test_a_failure_without_a_text_is_told_by_its_kind() -> None:
    timeouts = [end(call(error_type="timeout", is_error=True)) for _ in range(2)]
    assert timeouts[0] == timeouts[1] != end(call(error_type="auth", is_error=True))


@table("said", [{"has_result": False, "result": "x"}, {"result": None}])
def test_without_a_result_there_is_no_evidence(said: dict[str, object]) -> None:
    assert end(call(**said)) is None
