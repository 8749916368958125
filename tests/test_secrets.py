"""
Known forms of secrets, through every sink and every way to it.
"""

import json

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from guardrails import Approve, Policy
from guardrails.hooks.options import Options
from guardrails.hooks.respond import respond
from guardrails.otel.telemetry import Telemetry, TracedSink
from guardrails.sinks import JsonLines, MemorySink, OnRecord, Record
from tests.core.text.test_redaction import KEY, SECRETS
from tests.otel.seen import Seen


WORD = "Tr0ub4dor&3x"
FORMS: list[Any] = yaml.safe_load(Path(__file__).with_name("secrets.yaml").read_text().replace("HIDDEN", WORD))
FORMS += [{"q": f"use {secret} now"} for secret in SECRETS.values()]
MARKS = [KEY[3:], "IOSFODNN7", "A" * 30, "Q" * 18, WORD]


class Own:
    """A sink of somebody's own, which says nothing of secrets."""

    written = dropped = failed = 0

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def put(self, record: Any, size_hint: int) -> None:
        self.lines.append(orjson.dumps(record() if callable(record) else record))

    def flush(self, timeout: float | None = None) -> bool:
        return True

    def close(self) -> None: ...


def sinks(path: Path) -> dict[str, tuple[Any, Callable[[], str]]]:
    memory, seen, own = MemorySink(), list[Record](), Own()
    lines = JsonLines(path, results="full")
    return {
        "memory": (memory, lambda: orjson.dumps(memory.records).decode()),
        "callable": (OnRecord(seen.append), lambda: orjson.dumps(seen).decode()),
        "lines": (lines, path.read_text),
        "traced": (TracedSink(Telemetry(), lines), path.read_text),
        "own": (own, lambda: b"".join(own.lines).decode()),
    }


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "records.jsonl"


@pytest.mark.parametrize("name", ["memory", "callable", "lines", "traced", "own"])
def test_no_known_form_passes_a_sink(name: str, path: Path) -> None:
    sink, text = sinks(path)[name]

    def refuse(_: str, given: Any) -> None:
        raise ValueError(f"cannot use {given}")

    asked = Policy([Approve(tools=("pay",))]).session("asked", records=sink)
    for name, secret in SECRETS.items():
        asked.call("pay", {"name": name}, refuse, id=name)
        asked.refuse(name, by=f"ann {secret}", reason=secret)
    for n, form in enumerate(FORMS):
        session = Policy([]).session(f"s{n}", records=sink)
        session.call("t", form, refuse)
        session.call("t", form, lambda _, given: {"echo": given})
        session.close()
    said = text()
    assert [mark for mark in MARKS if mark in said] == []
    assert said.count("[redacted]") + said.count("[erased]") >= 2 * len(FORMS)


def test_no_known_form_is_content_of_a_span() -> None:
    seen = Seen(content=True)
    for n, form in enumerate(FORMS):
        seen.session(f"s{n}", Policy([])).call("t", {"form": form}, lambda _, given: given)
    said = str(seen.calls())
    assert [mark for mark in MARKS if mark in said] == []
    assert said.count("[redacted]") >= 2 * len(FORMS)


def test_signatures_are_those_of_the_plain_values_which_an_option_keeps(path: Path) -> None:
    plain, shown = MemorySink(redact_secrets=False), MemorySink()
    for sink in (plain, shown):
        Policy([]).session("s", records=sink).call("t", {"password": WORD}, lambda *_: "ok")
    assert WORD in orjson.dumps(plain.records).decode()
    assert [one["sig"] for one in plain.records] == [one["sig"] for one in shown.records]
    assert shown.records[0]["erased"] == ["arguments.password"]
    with JsonLines(path, redact_secrets=False) as lines:
        lines.put({"arguments": {"password": WORD}}, 10)
    assert WORD in path.read_text()


def test_records_of_a_hook_hold_no_secret(tmp_path: Path) -> None:
    options = Options(store=str(tmp_path / "s.db"), records=str(tmp_path / "r.jsonl"), client="claude")
    event = {"session_id": "s", "transcript_path": "", "cwd": str(tmp_path), "tool_name": "Bash", "tool_use_id": "t1"}
    asked = {"hook_event_name": "PreToolUse", "tool_input": {"command": f"curl -u admin:{WORD} https://x"}}
    respond(json.dumps(event | asked).encode(), options)
    said = (tmp_path / "r.jsonl").read_text()
    assert "admin:[redacted]" in said
    assert WORD not in said
