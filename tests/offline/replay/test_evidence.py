"""
What a recorded call really brought.
"""

from hypothesis import given
from hypothesis import strategies as st

from guardrails.offline.replay.evidence import CUT, WINDOW, Past, evidence_of
from guardrails.offline.transcripts import RecordedCall
from tests.tables import table


def call(**said: object) -> RecordedCall:
    made = RecordedCall("data", "s", 0, "a", {})
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


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1) | st.none()), min_size=WINDOW, max_size=60))
def test_what_is_remembered_is_bounded(story: list[tuple[int, int | None]]) -> None:
    past = Past()
    for sig, evidence in story:
        past.add(sig, evidence)
    assert len(past.sigs) == len(past.evidence) == len(past.said) == min(len(story), WINDOW + 1)


def test_results_are_alike_but_for_what_they_say_of_themselves() -> None:
    past = Past()
    for sig, evidence, said in (
        (7, 1, '{"took": 12, "passed": 3}'),
        (8, 2, '{"took": 12, "passed": 4}'),
        (9, ~3, '{"took": 12, "passed": 3}'),
        (6, 4, None),
        (5, 5, "x" * CUT),
        (4, None, '{"took": 12, "passed": 3}'),
    ):
        past.add(sig, evidence, said)
    past.add(7, 9, '{"took": 34, "passed": 3}')
    assert [past.alike(at) for at in range(6)] == [True, False, False, False, False, False]
    assert past.twin() == 0


def test_of_results_whose_text_is_not_known_only_equal_ones_are_alike() -> None:
    past = Past()
    assert [past.add(7, 1), past.add(7, 2, "x" * CUT), past.add(8, 2)] == ["new"] * 3
    assert (past.alike(0), past.alike(1), past.twin(), past.worked) == (False, True, None, True)


def test_hashes_that_the_transcript_holds_stand_above_its_text() -> None:
    assert evidence_of(call(plain_hash=5, result="cut"), False) == 5
    assert evidence_of(call(masked_hash=5, result="cut"), True) == ~5


def test_failures_are_compared_without_digits_and_successes_with_them() -> None:
    assert evidence_of(call(result="line 9"), True) == evidence_of(call(result="line 10"), True)
    assert evidence_of(call(result="line 9"), False) != evidence_of(call(result="line 10"), False)


def test_a_failure_without_a_text_is_told_by_its_kind() -> None:
    timeouts = [evidence_of(call(error_type="timeout"), True) for _ in range(2)]
    assert timeouts[0] == timeouts[1] != evidence_of(call(error_type="auth"), True)


@table("said", [{"has_result": False, "result": "x"}, {"result": None}])
def test_without_a_result_there_is_no_evidence(said: dict[str, object]) -> None:
    assert evidence_of(call(**said), False) is None
