"""
The readers on transcripts of real agents, where they lie beside the repository.

Somebody else turned the raw transcripts into lines of calls; a reader of a raw file has to find the same calls.
"""

import json

from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from guardrails.offline.transcripts import RecordedCall, Report, open_calls
from tests.tables import table


DATA: Final = Path(__file__).parents[4] / "shared" / "data"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="`../shared/data` is not here")

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
RAW: Final = {
    "claude_code": ("claude code session", 20, 299, ("cc_entireio_cli", "cc_context_evaluator")),
    "codex_rollout": ("codex rollout", 12, 1_190, ("cx_agentv",)),
    "gemini_cli": ("gemini cli session", 3, 7, ("cc_entireio_cli",)),
    "openai_chat": ("chat", 20, 168, ("livemcpbench",)),
}
KNOWN_DIFFERENCES: Final = {
    # "aborted by user after 29.7s": the reader calls it a failure, the lines do not.
    ("codex_rollout", "is_error"): 1,
    # "Tool call timed out.": a host's sentence, which no reading takes for a failure.
    ("openai_chat", "is_error"): 5,
}
CUT: Final = 3_900
"""Longer strings are cut in the lines."""


@cache
def lines_of(source: str) -> dict[str, tuple[list[RecordedCall], list[str]]]:
    """
    The sessions of a data set: their calls, and what tells each call.
    """
    sessions: dict[str, list[RecordedCall]] = defaultdict(list)
    for call in open_calls(DATA / f"{source}.jsonl.gz", Report()):
        sessions[call.session_id].append(call)
    return {name: (calls, list(map(key, calls))) for name, calls in sessions.items()}


def cut(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: cut(each) for key, each in value.items()}
    if isinstance(value, list):
        return [cut(each) for each in value]

    return value[:CUT] if isinstance(value, str) else value


def key(call: RecordedCall) -> str:
    tool, arguments = call.tool, call.arguments
    if tool == "execute-tool" and isinstance(arguments, dict):
        # The lines name the tool behind the benchmark's router.
        tool, arguments = f"{arguments['server_name']}/{arguments['tool_name']}", arguments.get("params")
    return json.dumps([tool, cut(arguments)], sort_keys=True)


def within(part: list[str], whole: list[str]) -> int | None:
    """
    Where *part* stands in *whole*, in one piece: a raw file may be a section of its session.
    """
    return next((at for at in range(len(whole) - len(part) + 1) if whole[at : at + len(part)] == part), None)


def pairs(folder: str, sources: tuple[str, ...]) -> Iterator[tuple[RecordedCall, RecordedCall]]:
    """
    Each call of the raw files with the same call of the lines.
    """
    for path in sorted((DATA / "raw" / folder).iterdir()):
        calls = list(open_calls(path, Report()))
        keys = list(map(key, calls))
        named = [sessions[calls[0].session_id] for s in sources if calls[0].session_id in (sessions := lines_of(s))]
        for lines, known in named or [each for s in sources for each in lines_of(s).values()]:
            at = within(keys, known)
            if at is not None and (named or calls[0].ts_ms == lines[at].ts_ms):
                yield from zip(calls, lines[at : at + len(calls)], strict=True)
                break
        else:
            raise AssertionError(f"{path.name} is in none of {sources}")


@table("source", CALLS)
def test_every_line_of_the_data_sets_is_a_call(source: str) -> None:
    report = Report()
    calls = list(open_calls(DATA / f"{source}.jsonl.gz", report))
    assert (len(calls), len(report.broken)) == (CALLS[source], 0)
    assert all(call.has_result is (call.is_error is not None) for call in calls)
    assert all(call.plain_hash is not None and call.masked_hash is not None for call in calls if call.has_result)
    assert not any("backwards" in notice for notice in report.notices)


def test_what_was_derived_from_the_calls_is_skipped_with_a_notice() -> None:
    report = Report()
    assert list(open_calls(DATA / "errors_and_retries.jsonl.gz", report)) == []
    assert len(report.notices) == 1
    assert "skipped" in report.notices[0]


@table("folder", ["mint", "react_text", "toolbench", "whowhen"])
def test_forms_that_are_not_read_are_skipped_with_a_notice(folder: str) -> None:
    for path in (DATA / "raw" / folder).iterdir():
        report = Report()
        assert list(open_calls(path, report)) == []
        assert "skipped" in report.notices[0]


@table("folder", RAW)
def test_a_raw_transcript_gives_the_calls_of_its_lines(folder: str) -> None:
    _, files, count, sources = RAW[folder]
    assert len(list((DATA / "raw" / folder).iterdir())) == files
    found = list(pairs(folder, sources))
    assert len(found) == count
    assert sum(raw.is_error != line.is_error for raw, line in found) == KNOWN_DIFFERENCES.get((folder, "is_error"), 0)
    assert all(raw.has_result == line.has_result for raw, line in found)
    texts = sum((raw.result or "")[:1500] == (line.result or "")[:1500] for raw, line in found)
    assert texts == count
    kinds = [(raw.error_type, line.error_type) for raw, line in found if line.is_error and raw.is_error]
    assert sum(mine == theirs for mine, theirs in kinds) >= 0.65 * len(kinds)


@table("folder", ["claude_code", "codex_rollout"])
def test_a_raw_transcript_gives_times_and_tokens_of_its_lines(folder: str) -> None:
    found = list(pairs(folder, RAW[folder][3]))
    assert all(raw.ts_ms == line.ts_ms for raw, line in found)
    assert all(raw.cost_usd == line.cost_usd for raw, line in found)
    other = sum((raw.tokens_in, raw.tokens_out) != (line.tokens_in, line.tokens_out) for raw, line in found)
    # After an abort the lines give the tokens of the next response to the call before it.
    assert other == (2 if folder == "codex_rollout" else 0)
