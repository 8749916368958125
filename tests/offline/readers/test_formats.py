"""
Which format a file is in.
"""

import json

from pathlib import Path

from guardrails.offline.readers import READERS, recognise
from tests.tables import table


NAMES = {
    "calls.jsonl": "json lines of calls",
    "claude_code.jsonl": "claude code session",
    "claude_stream.jsonl": "claude code session",
    "codex_2025.jsonl": "codex rollout",
    "codex_rollout.jsonl": "codex rollout",
    "gemini_cli.json": "gemini cli session",
    "gemini_cli.jsonl": "gemini cli session",
    "langsmith.jsonl": "langsmith runs",
    "openai_chat.json": "openai chat",
    "openai_chat.jsonl": "openai chat",
    "openai_responses.json": "openai responses items",
    "openinference.jsonl": "opentelemetry spans",
    "openinference_otlp.jsonl": "opentelemetry spans",
    "otlp.jsonl": "opentelemetry spans",
    "own_records.jsonl": "guardrails records",
    "traj.json": "openai chat",
}

WIDER = {
    "codex rollout": {"openai responses items", "openai chat"},
}
"""Formats whose lines are another's too: theirs is asked first."""


def test_every_fixture_and_every_format_is_named(files: Path) -> None:
    assert {path.name for path in files.iterdir()} == set(NAMES)
    assert {reader.name for reader in READERS} == set(NAMES.values())


@table("file", NAMES)
def test_a_format_is_recognised_by_its_content(files: Path, file: str) -> None:
    reader = recognise((files / file).read_text())
    assert reader is not None
    assert reader.name == NAMES[file]


@table("file", NAMES)
def test_a_byte_order_mark_and_a_head_that_ends_anywhere_change_nothing(files: Path, file: str) -> None:
    head = (files / file).read_text()
    assert recognise("\ufeff" + head) is recognise(head)
    for size in range(len(head) * 2 // 3, len(head), 97):
        assert recognise(head[:size]) is recognise(head)


@table("file", NAMES)
def test_a_format_is_claimed_by_no_reader_but_its_own(files: Path, file: str) -> None:
    head = (files / file).read_text()
    claimed = {reader.name for reader in READERS if reader.recognises(head)}
    assert claimed - WIDER.get(NAMES[file], set()) == {NAMES[file]}


@table("file", [name for name in NAMES if name.endswith(".json")])
def test_a_document_may_stand_on_one_line(files: Path, file: str) -> None:
    head = (files / file).read_text()
    assert recognise(json.dumps(json.loads(head))) is recognise(head)


@table(
    "head",
    [
        "",
        "\n\n",
        "hello",
        "\x00\x00\x00",
        "{}",
        "[]",
        "null",
        "[1, 2]",
        '{"a": 1}',
        '{"messages": "none"}',
        '{"messages": [1]}',
        '{"messages": [{"role": ["user"]}]}',
        '{"type": ["user"], "isSidechain": true}',
        '{"type": {"a": 1}, "payload": {}}',
        '{"type": "session_meta", "payload": 1}',
        '{"source": "x", "session_id": "s", "call_index": 1, "tool": "t", "retry": "none", "result_head": ""}',
        "<html>",
        "%PDF-1.7",
    ],
)
def test_what_is_no_transcript_has_no_reader(head: str) -> None:
    assert recognise(head) is None
