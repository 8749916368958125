"""
A conversation that grows past what its model reads, before each request of a loop.
"""

import json

from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails.agent.compaction import Compaction, too_long
from guardrails.core.values.usage import Usage
from guardrails.integrations.openai.context import Context
from guardrails.integrations.openai.conversation import WIRES


Messages = list[dict[str, Any]]


def compaction(context: int, wire: str = "chat") -> tuple[Compaction, list[str]]:
    said: list[str] = []
    return Compaction(WIRES[wire], "m", context, said.append), said


def turn(n: int, size: int, wire: str = "chat") -> Messages:
    result = json.dumps({"status": "success", "result": "x" * size})
    if wire == "responses":
        return [
            {"type": "reasoning", "id": f"r{n}", "summary": []},
            {"type": "function_call", "call_id": f"c{n}", "name": "read", "arguments": "{}"},
            {"type": "function_call_output", "call_id": f"c{n}", "output": result},
        ]
    call = {"id": f"c{n}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{n}", "content": result},
    ]


def conversation(*sizes: int, wire: str = "chat") -> Messages:
    begin = [{"role": "system", "content": "be good"}, {"role": "user", "content": "read all"}]
    return [*begin, *(item for n, size in enumerate(sizes) for item in turn(n, size, wire))]


def test_what_fits_stays_as_it_is() -> None:
    cut, said = compaction(10_000)
    messages = conversation(1_000, 1_000)
    assert cut(messages) is messages
    assert said == []


@pytest.mark.parametrize("wire", ["chat", "responses"])
def test_old_results_go_first_and_the_latest_stays_whole(wire: str) -> None:
    cut, said = compaction(10_000, wire)
    messages = conversation(9_000, 9_000, 9_000, wire=wire)
    kept = cut(messages)
    assert len(kept) == len(messages)
    assert kept[-1] is messages[-1]
    name = "output" if wire == "responses" else "content"
    first = json.loads(next(message[name] for message in kept if "result" in str(message.get(name))))
    assert (first["status"], first["truncated"], first["original_bytes"]) == ("success", True, 9_035)
    assert "grew too long" in said[0]


def test_then_whole_turns_go_and_what_was_said_to_the_model_stays() -> None:
    cut, _ = compaction(1_000)
    messages = [*conversation(*[500] * 20), {"role": "user", "content": "and now?"}, *turn(99, 100)]
    kept = cut(messages)
    assert [message["content"] for message in kept if message["role"] in ("system", "user")] == [
        "be good",
        "read all",
        "and now?",
    ]
    assert kept[-2:] == messages[-2:]
    assert len(kept) < 20


def test_what_is_not_read_yet_is_cut_last_and_its_beginning_stays() -> None:
    cut, _ = compaction(10_000)
    kept = cut(conversation(100_000))
    told = json.loads(kept[-1]["content"])
    assert set(told["result"]) == {"x"}
    assert 10_000 < len(told["result"]) < 14_000
    assert "Ask for less" in told["hint"]


def test_sizes_are_those_that_responses_tell() -> None:
    cut, said = compaction(10_000)
    messages = conversation(1_000)
    cut(messages)
    cut.told(Usage(input=9_000, output=1))
    assert said == []
    assert cut([*messages, *turn(1, 1_000)]) != messages
    assert len(said) == 1


def test_schemas_of_tools_count_once_and_do_not_stretch_what_follows() -> None:
    cut, said = compaction(100_000)
    begin = conversation()
    cut(begin)
    # A short task and many tools: a hundred tokens a byte, by which the next result would fill any model.
    cut.told(Usage(input=20_000, output=1))
    cut([*begin, *turn(0, 60_000)])
    assert said == []


def test_a_cut_leaves_room_so_that_not_each_request_is_cut() -> None:
    cut, said = compaction(10_000)
    messages: Messages = conversation()
    for n in range(40):
        messages = [*cut(messages), *turn(n, 2_000)]
    assert 1 < len(said) < 12


def test_a_server_that_says_it_is_too_long_halves_it_a_few_times() -> None:
    cut, _ = compaction(1_000_000)
    messages = conversation(*[4_000] * 10)
    sizes = []
    for _ in range(4):
        sizes.append(len(json.dumps(cut(messages))))
        assert cut.shrink()
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < sizes[0] / 2
    assert not cut.shrink()


@pytest.mark.parametrize(
    ("said", "is_one"),
    [
        ("Error code: 400 - {'error': {'code': 'context_length_exceeded'}}", True),
        ("This model's maximum context length is 8192 tokens", True),
        ("prompt is too long: 210000 tokens > 200000 maximum", True),
        ("the request exceeds the available context size, try increasing it", True),
        ("input length and `max_tokens` exceed context limit", True),
        ("invalid api key", False),
        ("rate limit reached: too many requests", False),
    ],
)
def test_the_words_of_servers_for_too_long_are_known(said: str, is_one: bool) -> None:
    assert too_long(ValueError(said)) is is_one


@given(
    st.lists(st.integers(0, 5_000), max_size=12),
    st.integers(1_000, 20_000),
    st.sampled_from(["chat", "responses"]),
)
def test_every_call_keeps_a_result_and_nothing_is_made_longer(sizes: list[int], context: int, wire: str) -> None:
    cut, _ = compaction(context, wire)
    messages = conversation(*sizes, wire=wire)
    before = json.dumps(messages)
    kept = cut(messages)
    assert json.dumps(messages) == before
    assert len(json.dumps(kept)) <= len(before)
    spoken = WIRES[wire]
    calls = [call.id for message in kept for call in spoken.calls_of(message)]
    assert calls == [spoken.answers(message) for message in kept if spoken.answers(message) is not None]
    # The loop finds nothing to mend in it.
    context_of_loop = Context(spoken, list(messages))
    context_of_loop.compacted(kept, None)
    assert context_of_loop.used() == kept
