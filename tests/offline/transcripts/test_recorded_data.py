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
    "raw/claude_code/": 299,
    "raw/codex_rollout/": 1_190,
    "raw/gemini_cli/": 7,
    "raw/openai_chat/": 168,
    **dict.fromkeys(("raw/mint/", "raw/react_text/", "raw/toolbench/", "raw/whowhen/", "errors_and_retries"), 0),
}


@pytest.mark.skipif(not DATA.is_dir(), reason="`../shared/data` is not here")
@table("source, count", CALLS.items())
def test_a_transcript_of_a_real_agent_gives_its_calls(source: str, count: int) -> None:
    files = [*(DATA / source).iterdir()] if source.endswith("/") else [DATA / f"{source}.jsonl.gz"]
    report = Report()
    calls = [call for file in files for call in open_calls(file, report)]
    assert (len(calls), len(report.broken)) == (count, 0)
    assert all(call.tool and call.session_id for call in calls)
    assert source.startswith("raw") or all(call.plain_hash is not None for call in calls if call.has_result)
    assert sum("skipped" in notice for notice in report.notices) == (0 if count else len(files))
