"""
Each format is known by its content, and gives its calls.
"""

import dataclasses
import json

from pathlib import Path
from typing import Any, Final

import yaml

from guardrails.offline.transcripts import RecordedCall
from guardrails.offline.transcripts.files import FORMATS, format_of, values_of
from tests.tables import table


CASES: Final = yaml.safe_load(Path(__file__).with_name("cases.yaml").read_text(encoding="utf-8"))
NONE: Final = yaml.safe_load(Path(__file__).with_name("none.yaml").read_text(encoding="utf-8"))
NAMES: Final = {case["file"]: case["format"] for case in CASES if "file" in case}
PLAIN: Final = RecordedCall("given", "", None)


def fields_of(call: RecordedCall) -> dict[str, Any]:
    """
    The fields of *call* that are not as they are by default.
    """
    fields = {field.name: getattr(call, field.name) for field in dataclasses.fields(call)}
    own = {name: each for name, each in fields.items() if name == "tool" or each != getattr(PLAIN, name)}
    made: dict[str, Any] = json.loads(json.dumps({name: own[name] for name in own.keys() - {"source", "signed"}}))
    return made


def merged(value: Any, change: Any) -> Any:
    if not isinstance(value, dict) or not isinstance(change, dict):
        return change
    return value | {key: merged(value.get(key), each) for key, each in change.items()}


@table("case", [case for case in CASES if "calls" in case])
def test_a_transcript_gives_its_calls(read: Any, case: dict[str, Any]) -> None:
    calls, report = read(case.get("file") or "\n".join(map(json.dumps, case["lines"])))
    assert [fields_of(call) for call in calls] == case["calls"]
    assert (report.notices, report.broken) == (case.get("notices", []), [])


@table(
    "lines, change, expected", [(case["lines"], *row) for case in CASES if "changed" in case for row in case["changed"]]
)
def test_a_value_in_a_line_is_read_as_what_it_is(
    read: Any, lines: list[Any], change: dict[str, Any], expected: dict[str, Any]
) -> None:
    calls, report = read("\n".join(map(json.dumps, [*lines[:-1], merged(lines[-1], change)])))
    assert {name: getattr(calls[-1], name) for name in expected} == expected
    assert report.broken == []


def test_the_form_of_a_file_makes_no_difference(read: Any, files: Path) -> None:
    def of(file: str, text: str) -> Any:
        return read(text, file)[0]

    names = ("openai_chat.jsonl", "claude_code.jsonl", "langsmith.jsonl")
    chats, claude, runs = ((files / name).read_text() for name in names)
    assert of("f", "\n" + chats.replace("\n", "\n\n")) == of("f", chats)
    assert len(of("f", claude + claude)) == len(of("f", claude)), "lines that are written again"
    values = [json.loads(line) for line in runs.splitlines()]
    for whole in (values, {"runs": values, "cursors": {"next": None}}):
        assert of("f", json.dumps(whole)) == of("f", runs)


def test_the_items_of_a_thread_that_was_resumed_are_other_calls(read: Any, files: Path) -> None:
    once = (files / "codex_exec.jsonl").read_text()
    assert [call.has_result for call in read(once + once)[0]] == [True, True, True, True, False] * 2


def test_a_span_of_a_tool_tells_more_of_a_call_that_stands_in_messages(read: Any, files: Path) -> None:
    chats = json.loads((files / "otlp_messages.json").read_text())["resourceSpans"][0]["scopeSpans"][0]["spans"]

    def after_ms(start: int, name: str, **more: str) -> list[tuple[str | None, int | None]]:
        named = {"operation.name": "execute_tool", "tool.name": name, "conversation.id": "conv-9", **more}
        attributes = [{"key": f"gen_ai.{key}", "value": {"stringValue": value}} for key, value in named.items()]
        span = {"startTimeUnixNano": str(start), "endTimeUnixNano": str(start), "attributes": attributes}
        calls, _ = read(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [*chats, span]}]}]}))
        return [(call.id, (call.ts_ms and call.ts_ms % 1000) or None) for call in calls]

    late = 1_800_000_001_200_000_000
    assert after_ms(late, "weather") == [("call_0", 200), ("call_1", None), ("call_2", None)]
    named = after_ms(late, "forecast", **{"tool.call.id": "call_1"})
    assert named == [("call_0", None), ("call_1", 200), ("call_2", None)]
    # Names and ids of no message: both would tell of the same calls.
    assert after_ms(late, "Weather.run") == [(None, 200)]
    assert after_ms(1, "weather") == [(None, None)]


def recognised(text: str) -> str | None:
    claimed = format_of([value for _, value in values_of(text.encode())[0]])
    return None if claimed is None else claimed[0].name


def test_a_format_is_recognised_by_its_content_wherever_the_file_ends(files: Path) -> None:
    assert {path.name for path in files.iterdir()} == set(NAMES)
    assert {form.name for form in FORMATS} == set(NAMES.values())
    for file, name in NAMES.items():
        text = (files / file).read_text()
        cuts = range(len(text) * 2 // 3, len(text), 97) if file.endswith(".jsonl") else ()
        assert {recognised(text[:size]) for size in (*cuts, len(text))} == {name}, file


def test_a_format_is_claimed_only_if_most_lines_fit(read: Any, files: Path) -> None:
    line, strange = (files / "claude_code.jsonl").read_text().splitlines()[0], json.dumps({"kind": "step"})
    calls, report = read("\n".join([line, strange, strange]))
    assert (calls, report.read_as) == ([], {})
    assert "skipped" in report.notices[0]
    calls, report = read((files / "calls.jsonl").read_text() + strange + "\n\n{\n")
    assert len(calls) == 6
    assert report.notices[0] == '`given`: could not read 2 lines, the first is line 7: {"kind": "step"}'


@table("text", NONE)
def test_what_is_no_transcript_is_of_no_format(text: str) -> None:
    assert recognised(text) is None
