"""
What holds of the agent loop whatever a model says, over both wires.
"""

import json

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from openai import DefaultHttpxClient, OpenAI

from guardrails import Budget, Duplicates, MemorySink, Policy, ToolFilter, Truncate, Validation
from guardrails.integrations.openai import run
from guardrails.testing.scripted_openai import Calls, Reply, ScriptedOpenAI, Text, call
from tests.openai_api import problems, reasoning
from tests.tables import table


arguments = st.one_of(
    st.builds(lambda path: json.dumps({"path": path}), st.sampled_from("abc")),
    st.sampled_from(["", "{", '{"path": 7}', "[]", "null", '{"path": "a", "more": 1}', "path=a", "{}"]),
)
calls = st.builds(
    call,
    st.sampled_from(["look", "look", "fly", "fail"]),
    arguments,
    id=st.sampled_from([None, "", "call_0", "call_1"]),
)
thoughts = st.sampled_from([(), (reasoning("hm"),)])
replies = st.one_of(
    st.builds(
        lambda made, text, finish, items: Calls(*made, text=text, finish_reason=finish, items=items),
        st.lists(calls, min_size=1, max_size=4),
        st.sampled_from(["", "Let me look."]),
        st.sampled_from(["tool_calls", "length"]),
        thoughts,
    ),
    st.builds(Text, st.sampled_from(["", " ", "done"]), items=thoughts),
    st.builds(Text, refusal=st.just("I cannot")),
)


@contextmanager
def connected(script: list[Reply], *, plain: bool = False) -> Iterator[tuple[Any, list[Any]]]:
    """
    A client of a model that says *script*, then that it is done; and what is asked, which the API has to take. A *plain* one is of
    somebody's own: its `create` has the response and no more.
    """
    server = ScriptedOpenAI(lambda body, n: script[n] if n < len(script) else Text("done"))
    http = DefaultHttpxClient(transport=server.transport)
    with OpenAI(base_url="http://127.0.0.1/v1", api_key="-", max_retries=0, http_client=http) as client:
        chat, responses = (SimpleNamespace(create=api.create) for api in (client.chat.completions, client.responses))
        own = SimpleNamespace(chat=SimpleNamespace(completions=chat), responses=responses)
        yield own if plain else client, server.requests
    assert problems(server.requests) == []


def policy() -> Policy:
    return Policy([ToolFilter(), Validation(), Budget(max_calls=6), Duplicates(window=5), Truncate()])


@table("wire", ["chat", "responses"])
@given(
    script=st.lists(replies, max_size=8),
    stream=st.booleans(),
    cut=st.sampled_from([None, 1, 2, 5]),
    once=st.booleans(),
    plain=st.booleans(),
)
def test_every_call_is_answered_once_and_no_limit_is_passed(
    wire: Any, script: list[Reply], stream: bool, cut: int | None, once: bool, plain: bool
) -> None:
    ran: list[str] = []
    records = MemorySink()

    def look(path: str) -> str:
        ran.append(path)
        return f"nothing in {path}"

    def fail() -> str:
        ran.append("fail")
        raise ConnectionError("no route")

    compact = None if cut is None else lambda messages: messages[-cut:]
    said: list[str] = []
    with connected(script, plain=plain) as (client, bodies), policy().session("law", records=records) as session:
        result = run(
            client,
            session,
            model="m",
            messages="go",
            tools=[look, fail],
            wire=wire,
            stream=stream,
            compact=compact,
            max_tool_iterations=4,
            tool_choice="required" if once else None,
            on_text=said.append,
        )
        assert session.ledger.progress["calls_used"] == len(ran) <= 6

    # The loop ends with an answer, told in full, and in bounds.
    assert result.answer.strip()
    assert result.iterations <= 4
    assert result.requests == len(bodies) <= 4 + 3
    assert "".join(said).endswith(result.answer)
    # Each call of the whole conversation has one result, none is left over, and each that began is settled.
    made, answered = ids(result.messages)
    assert Counter(made) == Counter(answered)
    events = Counter(record["event"] for record in records.records)
    assert events["settle"] == len(ran)
    # A forced choice goes out once; none stays none.
    choices = [body.get("tool_choice") for body in bodies]
    assert choices.count("required") == (1 if once else 0)
    assert "none" not in choices or set(choices[choices.index("none") :]) == {"none"}


def ids(messages: list[Any]) -> tuple[list[Any], list[Any]]:
    made, answered = [], []
    for message in messages:
        made += [made_call["id"] for made_call in message.get("tool_calls", ())]
        if message.get("type") == "function_call":
            made.append(message["call_id"])
        if message.get("role") == "tool":
            answered.append(message["tool_call_id"])
        if message.get("type") == "function_call_output":
            answered.append(message["call_id"])
    return made, answered


@example(script=[Calls(call("fly", '{"path": "a"}', id="call_0"), call("fly", '{"path": "a"}', id="call_0"))])
@given(script=st.lists(replies, max_size=6))
def test_the_two_ways_to_talk_come_to_the_same(script: list[Reply]) -> None:
    outcomes = []
    for wire in ("chat", "responses"):
        with connected(script) as (client, _), policy().session("same") as session:
            result = run(client, session, model="m", messages="go", tools=[look_up], wire=wire, max_tool_iterations=4)
        outcomes.append((result.answer, result.ended, result.code, result.requests, result.iterations))
    assert outcomes[1:] == outcomes[:-1]


def look_up(path: str) -> str:
    return f"nothing in {path}"


look_up.__name__ = "look"
