"""
More open sessions than memory is meant for.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from guardrails import Denials, Duplicates, Policy
from guardrails.offline.judge.files.spill import SpillError, SpillingTracks, key_bytes, key_of
from guardrails.offline.judge.judgement import Judge
from guardrails.offline.readers import RecordedCall


Calls = Callable[..., list[RecordedCall]]

POLICY = Policy([Duplicates(rule="evidence", window=20), Denials(max_turns_in_a_row=1)])


def interleaved(calls: Calls, sessions: int) -> list[RecordedCall]:
    told = [
        calls(*({"call": "a=1", "turn": turn} for turn in range(1, 6)), session_id=f"s{n}") for n in range(sessions)
    ]
    return [call for round_of in zip(*told, strict=True) for call in round_of]


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_sessions_that_were_put_out_of_memory_are_judged_like_the_others(calls: Calls, limit: int) -> None:
    made = interleaved(calls, 12)
    whole = Judge(POLICY)
    with SpillingTracks(limit) as tracks:
        spilling = Judge(POLICY, tracks)
        for call in made:
            assert spilling.judge(call) == whole.judge(call)
            assert len(tracks._open) <= limit
        judgement = spilling.judgement()
        assert judgement.spilled_sessions >= 12 - limit
        judgement.spilled_sessions = 0
        assert judgement == whole.judgement()


def test_a_round_over_more_sessions_than_are_kept_finds_some_of_them_in_memory(calls: Calls) -> None:
    """
    Were the oldest put out, every call would be of a session that was put out just before.
    """
    with SpillingTracks(limit=6) as tracks:
        judge, found = Judge(POLICY, tracks), 0
        for call in interleaved(calls, 9):
            found += (call.source, call.session_id, call.run) in tracks._open
            judge.judge(call)
        assert found >= 9


def test_nothing_is_written_where_memory_is_enough(calls: Calls) -> None:
    with SpillingTracks(limit=12) as tracks:
        judge = Judge(POLICY, tracks)
        for call in interleaved(calls, 12):
            judge.judge(call)
        assert tracks._folder is None
        assert judge.judgement().spilled_sessions == 0


def test_the_database_is_gone_afterwards(calls: Calls) -> None:
    with SpillingTracks(limit=1) as tracks:
        judge = Judge(POLICY, tracks)
        for call in interleaved(calls, 3):
            judge.judge(call)
        assert tracks._folder is not None
        folder = Path(tracks._folder.name)
        assert folder.is_dir()
    assert not folder.exists()


def test_what_is_taken_over_counts_as_a_session_and_not_as_spilled(calls: Calls) -> None:
    first = Judge(POLICY)
    made = interleaved(calls, 4)
    for call in made[:8]:
        first.judge(call)
    with SpillingTracks() as tracks:
        tracks.add_packed((key_bytes(key), stops, packed) for key, stops, packed in first.tracks.packed())
        second = Judge(POLICY, tracks)
        second.take_over(first.to_dict())
        for call in made[8:]:
            second.judge(call)
        for call in made[8:]:
            first.judge(call)
        assert second.judgement() == first.judgement()


def test_a_key_may_be_whatever_a_transcript_calls_its_sessions() -> None:
    key = "da/ta\x00", "../\ud800'; DROP TABLE tracks", "r\x00"
    assert key_of(key_bytes(key)) == key


def test_a_full_disk_is_said(calls: Calls) -> None:
    made = interleaved(calls, 400)
    with SpillingTracks(2) as kept:
        judge = Judge(POLICY, kept)
        for call in made[:5]:
            judge.judge(call)
        assert kept._database is not None
        kept._database.execute("PRAGMA max_page_count = 1")
        with pytest.raises(SpillError, match="temporary database: database or disk is full; `TMPDIR` names"):
            list(map(judge.judge, made[5:]))
