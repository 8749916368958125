"""
What holds of the agent loop whatever a model says, and whatever a server changes in a good response, over both wires.
"""

import json

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from types import SimpleNamespace
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st
from openai import DefaultHttpxClient, OpenAI

from guardrails import Budget, Duplicates, MemorySink, Policy, ToolFilter, Truncate, Validation
from guardrails.errors import ResponseFailed
from guardrails.integrations.openai import run
from guardrails.testing.scripted_openai import Calls, Raw, Reply, ScriptedOpenAI, Text, call
from tests.openai_api import CHAT, RESPONSES, SSE, problems, reasoning
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


# Lies


REQUEST: Final = {"model": "m", "stream_options": {"include_usage": True}}
GOOD: Final = (
    Calls(call("look", {"path": "a"}, id="c1"), call("look", {"path": "b"}, id="c2"), items=(reasoning("hm"),)),
    Calls(call("look", {"path": "a"}, id="c1"), text="Let me look."),
    Text("It rains."),
    Text(refusal="I cannot"),
)
VALUES: Final[list[Any]] = [
    *(None, True, 0, 7, -1.5, 10**40, "", "x", "\ud83d", "\x00"),
    *([], [7], [[]], {}, {"type": "x"}, {"id": 7}),
]
GONE: Final = object()


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """
    Where something can be changed in *value*.
    """
    yield path
    within = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, held in within:
        yield from places(held, (*path, name))


def changed(body: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return {} if value is GONE else value
    made = within = deepcopy(body)
    for step in path[:-1]:
        within = within[step]
    if value is GONE:
        del within[path[-1]]
    elif isinstance(within[path[-1]], dict) and isinstance(value, dict):
        within[path[-1]] |= value
    else:
        within[path[-1]] = value
    return made


def driven(wire: str, bodies: list[Reply], *, stream: bool) -> None:
    """
    Run the loop before a server that sends *bodies*, then good answers.
    """
    ran: list[str] = []

    def look(path: str) -> str:
        ran.append(path)
        return f"nothing in {path}"

    messages: list[Any] = [{"role": "user", "content": "go"}]
    options: Any = {"model": "m", "messages": messages, "tools": [look], "wire": wire, "stream": stream}
    with connected(bodies) as (client, _), Policy([Validation()]).session("law") as session:
        failed = None
        try:
            assert run(client, session, **options).answer.strip()
        except ResponseFailed as error:
            failed = error
        if failed is not None:
            assert (failed.status, str(failed).isprintable()) == (200, True)
            assert (ran, len(messages)) == ([], 1)
        bodies.clear()
        messages.append({"role": "user", "content": "and now?"})
        json.dumps(messages, allow_nan=False, ensure_ascii=False).encode()
        assert run(client, session, **options).answer == "done"


@table("stream", [False, True])
@table("wire", ["chat", "responses"])
@given(data=st.data())
def test_whatever_is_changed_in_a_response_it_is_an_answer_or_the_one_error(
    wire: str, data: st.DataObject, *, stream: bool
) -> None:
    api: Any = CHAT if wire == "chat" else RESPONSES
    reply = data.draw(st.sampled_from(GOOD))
    if stream:
        frames = api.frames(REQUEST, reply, 0)
        at = data.draw(st.integers(0, len(frames) - 1))
        head, _, said = frames[at].partition("data: ")
        good = json.loads(said) if "[DONE]" not in said else {}
    else:
        frames, at, head, good = [""], 0, "", api.whole(REQUEST, reply, 0)
    bad = good
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(list(places(bad))))
        bad = changed(bad, path, data.draw(st.sampled_from([GONE, *VALUES])))
    frames[at] = f"{head}data: {json.dumps(bad)}\n\n" if stream else json.dumps(bad)
    sent = Raw("".join(frames), SSE) if stream else Raw("".join(frames))
    driven(wire, [sent] * (2 if stream else 1), stream=stream)
