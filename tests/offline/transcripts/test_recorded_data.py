"""
The readers on transcripts of real agents, where they lie beside the repository.
"""

from pathlib import Path
from typing import Final

import pytest
import yaml

from guardrails.offline.transcripts import Report, open_calls
from tests.tables import table


DATA: Final = Path(__file__).parents[4] / "shared" / "data"
CALLS: Final = yaml.safe_load(Path(__file__).with_name("values.yaml").read_text(encoding="utf-8"))["recorded"]


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
