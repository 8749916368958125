"""
One open session, in memory and packed.
"""

import json

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Budget, Denials, Duplicates, Policy, Retryable, Streak
from guardrails.offline.judge.judgement import Judge
from guardrails.offline.judge.track import MAX_STOPS, Track, track_of
from guardrails.offline.readers import RecordedCall


Calls = Callable[..., list[RecordedCall]]

POLICY = Policy(
    [Budget(max_calls=6), Streak(max_failures=2), Denials(max_turns_in_a_row=1), Duplicates(), Retryable(backoff=0.5)]
)


@st.composite
def stories(draw: st.DrawFn) -> list[RecordedCall]:
    made = []
    at_ms = 1_800_000_000_000
    for index in range(draw(st.integers(1, 14))):
        at_ms += draw(st.sampled_from([0, 100, 900, 700_000]))
        call = RecordedCall("data", "\ud800", index, draw(st.sampled_from(["a", "b", "\ud800"])), {})
        call.result = draw(st.sampled_from(["x", "y"]))
        call.error_type = draw(st.sampled_from([None, None, "timeout"]))
        call.is_error = call.error_type is not None
        call.has_result = draw(st.sampled_from([True, True, True, False]))
        call.ts_ms, call.duration_ms = at_ms, draw(st.sampled_from([None, 10, 2_000, 900_000]))
        call.turn, call.tokens_in = draw(st.integers(0, 3)), draw(st.none() | st.just(5))
        call.polling = draw(st.sampled_from([False, False, True]))
        made.append(call)
    return made


@given(story=stories(), cut=st.integers(0, 14))
def test_a_session_that_was_packed_goes_on_as_if_it_had_not_been(story: list[RecordedCall], cut: int) -> None:
    whole, packed = Judge(POLICY), Judge(POLICY)
    for number, call in enumerate(story):
        if number == cut and packed._track is not None:
            key = call.source, call.session_id, call.run
            track = track_of(packed._track.to_bytes(), packed.lens)
            assert track.to_bytes() == packed._track.to_bytes()
            packed._track = None
            packed.tracks.put(key, track)
        assert packed.judge(call) == whole.judge(call)
    assert packed.judgement() == whole.judgement()


def test_a_packed_session_is_json_whatever_its_tools_are_called(calls: Calls) -> None:
    judge = Judge(POLICY)
    for call in calls({"call": "\ud800=1", "duration_ms": 5_000, "turn": 1}):
        judge.judge(call)
    ((_, stops, packed),) = judge.tracks.packed()
    assert stops == 0
    assert json.loads(packed)["t"][1] == "\ud800"


def test_the_stops_of_one_session_are_bounded() -> None:
    track = Track(Judge(POLICY).lens(True, True), Judge(POLICY).lens(True, True))  # type: ignore[arg-type]
    for n in range(MAX_STOPS + 5):
        track.stop((n, "deny", "x"))
    assert (len(track.stops), track.stop_count) == (MAX_STOPS, MAX_STOPS + 5)
