"""
The readers on transcripts of real agents, where they lie beside the repository.
"""

from pathlib import Path
from typing import Final

import pytest

from guardrails.offline.transcripts import Report, open_calls
from tests.tables import table


DATA: Final = Path(__file__).parents[4] / "shared" / "data"
CALLS: Final = {
    "cc_context_evaluator": 3_196,
    "cc_entireio_cli": 20_240,
    "cx_agentv": 4_253,
    "livemcpbench": 814,
    "mint": 10_811,
    "reflexion_hotpotqa": 3_200,
    "tau2_retail": 7_754,
    "toolbench_rapidapi": 300,
    "whowhen_a": 408,
}
RAW: Final = {"claude_code": 299, "codex_rollout": 1_190, "gemini_cli": 7, "openai_chat": 168}
NONE: Final = ("raw/mint", "raw/react_text", "raw/toolbench", "raw/whowhen", "errors_and_retries.jsonl.gz")
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="`../shared/data` is not here")


@table("source", CALLS)
def test_every_line_of_the_data_sets_is_a_call(source: str) -> None:
    report = Report()
    calls = list(open_calls(DATA / f"{source}.jsonl.gz", report))
    assert (len(calls), len(report.broken)) == (CALLS[source], 0)
    assert all(call.has_result is (call.is_error is not None) for call in calls)
    assert all(call.plain_hash is not None and call.masked_hash is not None for call in calls if call.has_result)
    assert not any("backwards" in notice for notice in report.notices)


@table("folder, count", RAW.items())
def test_a_raw_transcript_gives_its_calls(folder: str, count: int) -> None:
    calls = [call for path in (DATA / "raw" / folder).iterdir() for call in open_calls(path, Report())]
    assert len(calls) == count
    assert all(call.tool and call.session_id for call in calls)


@table("place", NONE)
def test_what_is_no_transcript_is_skipped_with_a_notice(place: str) -> None:
    path = DATA / place
    for file in path.iterdir() if path.is_dir() else [path]:
        report = Report()
        assert list(open_calls(file, report)) == []
        assert "skipped" in report.notices[0]
