"""
Reading recorded chats.
"""

import gzip
import json

from pathlib import Path
from typing import Any

import pytest

from hypothesis import strategies as st

from guardrails.agent.demo.transcript import TranscriptError, parse_transcript, read_transcript, text_of
from tests.tables import table


TRANSCRIPTS = Path(__file__).parents[2] / "transcripts"


def assistant(text: Any = None, *calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": text, "tool_calls": list(calls) or None}


def wire(id_: Any = "c1", name: str = "grep", arguments: Any = "{}") -> dict[str, Any]:
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


def result(id_: str = "c1", content: Any = "found") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id_, "content": content}


USER = {"role": "user", "content": "go"}


def test_calls_come_with_the_results_of_their_ids() -> None:
    chat = parse_transcript(
        [USER, assistant(None, wire("a"), wire("b")), result("b", "2"), result("a", "1"), assistant("x")]
    )
    assert [(call.id, call.result) for call in chat.calls] == [("a", "1"), ("b", "2")]
    assert chat.notes == ()


def test_packed_data_is_told_by_its_content_and_not_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "chat.json").write_bytes(gzip.compress(json.dumps([USER, assistant("hi")]).encode()))
    (tmp_path / "chat.gz").write_text("\ufeff" + json.dumps([USER, assistant("hi")]), encoding="utf-8")
    assert read_transcript(tmp_path / "chat.json").turns == read_transcript(tmp_path / "chat.gz").turns


def test_each_user_message_starts_an_exchange() -> None:
    chat = read_transcript(TRANSCRIPTS / "parallel.json")
    assert [[m["content"] for m in e.prompt] for e in chat.exchanges] == [
        ["What is the weather in Oslo and Bergen?"],
        ["And in Tromsø? Then Oslo again."],
    ]
    assert [len(e.turns) for e in chat.exchanges] == [2, 2]


def test_content_in_parts_is_the_text_of_its_parts() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {}}, "b", {"type": "text", "text": None}]
    assert text_of(parts) == "ab"


def test_tools_are_the_recorded_ones_where_the_wire_takes_them() -> None:
    tools = [{"type": "function", "function": {"name": "grep", "parameters": {"type": "object"}}}]
    chat = parse_transcript({"messages": [USER, assistant(None, wire())], "tools": tools})
    assert list(chat.tools) == tools


@table("tools", [None, [], "grep", [{"name": "grep"}], [{"function": {"name": "a/b"}}], [7]])
def test_other_tools_are_made_of_the_calls_under_names_that_the_wire_takes(tools: Any) -> None:
    calls = [wire("1", "a/b"), wire("2", "grep"), wire("3", "grep"), wire("4", ""), wire("5", "x" * 80)]
    chat = parse_transcript({"messages": [USER, assistant(None, *calls)], "tools": tools})
    assert [tool["function"]["name"] for tool in chat.tools] == ["a_b", "grep", "_", "x" * 64]
    assert [call.tool for call in chat.calls][:2] == ["a/b", "grep"]


def test_a_call_without_an_id_or_with_arguments_as_an_object_can_be_played() -> None:
    custom = {"id": "c", "type": "custom", "custom": {"name": "patch", "input": "*** a"}}
    chat = parse_transcript([USER, assistant(None, wire(None, "a", {"x": 1}), wire("", "b", None), custom)])
    assert [call.arguments for call in chat.calls] == ['{"x": 1}', "{}", '{"input": "*** a"}']
    assert len({call.id for call in chat.calls}) == 3


@table(
    ("messages", "notes"),
    [
        ([USER, assistant("4")], ["holds no tool calls"]),
        ([USER, assistant(None, wire()), result()], ["is truncated: it ends without a final answer"]),
        ([USER, assistant(None, wire()), assistant("x")], ["lacks the results of 1 of 1 calls"]),
        (
            [
                USER,
                assistant(None, wire()),
                result(),
                result("other"),
                {"role": "function", "content": ""},
                assistant("x"),
            ],
            ["has messages that cannot be played (2): results of no call, or roles of an older wire"],
        ),
        ([USER, assistant("  ")], ["holds no tool calls", "is truncated: it ends without a final answer"]),
    ],
)
def test_what_a_recording_lacks_is_noted(messages: list[Any], notes: list[str]) -> None:
    assert list(parse_transcript(messages).notes) == notes


@table(
    ("data", "said"),
    [
        ({}, "no chat: expected a list of messages"),
        ("text", "no chat: expected a list of messages"),
        ([1], "no chat: expected a list of messages"),
        ([{"content": "no role"}], "no chat: expected a list of messages"),
        ([], "no chat: there is no message of an assistant"),
        ([USER], "no chat: there is no message of an assistant"),
        ([USER, assistant(None, {"id": "1"})], "no chat: `tool_calls[0]` of message 2 has no `function`"),
    ],
)
def test_what_is_no_chat_is_refused(data: Any, said: str) -> None:
    with pytest.raises(TranscriptError) as refused:
        parse_transcript(data)
    assert str(refused.value).startswith(said)


@table(
    ("content", "said"),
    [
        (b'{"messages": [{"role": "us', "chat:1:24: cut off or not JSON: unterminated string"),
        (b'{"messages": [', "chat:1:15: cut off or not JSON: expecting value"),
        (b'{"messages": ]}', "chat:1:14: not JSON: expecting value"),
        (b"\xff\xfe", "chat: not UTF-8 text, at byte 0"),
        (b"[" * 100_000, "chat: nested too deeply"),
        (gzip.compress(b"[]" * 100, mtime=0)[:-12], "chat: the compressed data is cut off or damaged"),
        (b"\x1f\x8bnonsense", "chat: the compressed data is cut off or damaged"),
        (b"{}", "chat: no chat: expected"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "chat").write_bytes(content)
    with pytest.raises(TranscriptError) as refused:
        read_transcript(tmp_path / "chat")
    assert str(refused.value).startswith(f"{tmp_path}/{said}")


def test_a_file_that_is_not_there_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match=r"nowhere\.json: cannot be read"):
        read_transcript(tmp_path / "nowhere.json")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
calls = st.fixed_dictionaries({}, optional={"id": json_values, "function": json_values, "custom": json_values})
messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "function"])},
    optional={"content": json_values, "tool_calls": json_values | st.lists(calls), "tool_call_id": json_values},
)
