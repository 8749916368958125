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


FRESH = [(100 + n, 1) for n in range(WINDOW)]


@table(
    "ends, worths",
    [
        ([(7, 1), (7, 2), (7, 1), (7, 1)], ["new", "new", "new", "later"]),
        # Without a result, and what cannot be signed.
        ([(7, 1), (7, None), (7, 1)], ["new", "unknown", "second"]),
        ([(None, 1), (None, 1)], ["new", "new"]),
        ([(7, 1), *FRESH[1:], (7, 1)], ["new"] * WINDOW + ["second"]),
        ([(7, 1), *FRESH, (7, 1)], ["new"] * (WINDOW + 2)),
    ],
)
def test_a_repeat_is_pointless_where_the_latest_identical_call_of_the_last_twenty_ended_alike(
    ends: list[tuple[int | None, int | None]], worths: list[str]
) -> None:
    past = Past()
    assert [past.add(*end) for end in ends] == worths


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
