"""
Which format a file is in.
"""

import json

from pathlib import Path
from typing import Any

from guardrails.offline.transcripts import Format
from guardrails.offline.transcripts.files import FORMATS, format_of, values_of
from tests.tables import table


NAMES = {
    "calls.jsonl": "json lines of calls",
    "claude_code.jsonl": "claude code session",
    "claude_stream.jsonl": "claude code session",
    "cline.json": "chat",
    "cline_tags.json": "chat",
    "codex_code_mode.jsonl": "codex rollout",
    "codex_exec.jsonl": "codex exec",
    "codex_rollout.jsonl": "codex rollout",
    "gemini_cli.json": "gemini cli session",
    "gemini_cli.jsonl": "gemini cli session",
    "langsmith.jsonl": "langsmith runs",
    "openai_chat.json": "chat",
    "openai_chat.jsonl": "chat",
    "openai_responses.json": "chat",
    "openinference.jsonl": "opentelemetry spans",
    "openinference_otlp.jsonl": "opentelemetry spans",
    "opencode.json": "opencode session",
    "opencode_run.jsonl": "opencode session",
    "otlp_messages.json": "opentelemetry spans",
    "otlp.jsonl": "opentelemetry spans",
    "own_records.jsonl": "guardrails records",
}


def recognise(text: str) -> Format | None:
    claimed = format_of([value for _, value in values_of(text.encode())[0]])
    return None if claimed is None else claimed[0]


def test_every_fixture_and_every_format_is_named(files: Path) -> None:
    assert {path.name for path in files.iterdir()} == set(NAMES)
    assert {form.name for form in FORMATS} == set(NAMES.values())


@table("file", NAMES)
def test_a_format_is_recognised_by_its_content(files: Path, file: str) -> None:
    form = recognise((files / file).read_text())
    assert form is not None
    assert form.name == NAMES[file]


@table("file", [name for name in NAMES if name.endswith(".jsonl")])
def test_a_file_that_ends_anywhere_is_of_the_same_format(files: Path, file: str) -> None:
    text = (files / file).read_text()
    for size in range(len(text) * 2 // 3, len(text), 97):
        assert recognise(text[:size]) is recognise(text)


def test_a_format_is_claimed_only_if_most_lines_fit(read: Any, files: Path) -> None:
    line = (files / "claude_code.jsonl").read_text().splitlines()[0]
    strange = json.dumps({"kind": "step", "body": {"x": 1}})
    calls, report = read("\n".join([line, strange, strange]))
    assert (calls, report.read_as) == ([], {})
    assert "skipped" in report.notices[0]


def test_lines_that_could_not_be_read_are_counted_with_one_example(read: Any, files: Any) -> None:
    calls, report = read((files / "calls.jsonl").read_text() + json.dumps({"kind": "step"}) + "\n\n{\n")
    assert len(calls) == 6
    assert report.notices[0] == '`given`: could not read 2 lines, the first is line 7: {"kind": "step"}'


VERCEL = [
    [{"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "c", "toolName": "t", "input": {}}]}],
    [{"role": "assistant", "id": "m", "parts": [{"type": "tool-t", "toolCallId": "c", "state": "output-available"}]}],
]


@table("messages", VERCEL)
def test_messages_whose_calls_would_not_be_seen_are_no_chat(messages: Any) -> None:
    assert recognise(json.dumps(messages)) is None
    assert recognise(json.dumps({"messages": messages})) is None


@table(
    "text",
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
def test_what_is_no_transcript_is_of_no_format(text: str) -> None:
    assert recognise(text) is None
