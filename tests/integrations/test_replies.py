"""
What models, servers and connections do wrong, over both wires: whatever comes, every call is answered once, no limit is passed,
and the conversation goes on.
"""

import json

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from types import SimpleNamespace
from typing import Any, Final

import pytest

from hypothesis import given
from hypothesis import strategies as st
from openai import APIConnectionError, APIError, DefaultHttpxClient, OpenAI, RateLimitError

from guardrails import Budget, Duplicates, MemorySink, Policy, ToolFilter, Truncate, Validation
from guardrails.core.guards.budget import held
from guardrails.errors import ResponseFailed
from guardrails.integrations.openai import run
from guardrails.testing.scripted_openai import Calls, Fail, Raw, Reply, ScriptedOpenAI, Text, Usage, call
from tests.openai_api import CHAT, RESPONSES, SSE, failed, problems, reasoning
from tests.tables import table

from .conftest import Search, answered, calls, envelopes, results, search, user


BODY: Final = {"model": "m", "stream_options": {"include_usage": True}}
GONE: Final = object()


# Laws


arguments = st.one_of(
    st.builds(lambda path: json.dumps({"path": path}), st.sampled_from("abc")),
    st.sampled_from(["", "{", '{"path": 7}', "[]", "null", '{"path": "a", "more": 1}', "path=a", "{}"]),
)
written = st.builds(
    call,
    st.sampled_from(["search", "search", "fly", "fail"]),
    arguments,
    id=st.sampled_from([None, "", "call_0", "call_1"]),
)
thoughts = st.sampled_from([(), (reasoning("hm"),)])
replies = st.one_of(
    st.builds(
        lambda made, text, finish, items: Calls(*made, text=text, finish_reason=finish, items=items),
        st.lists(written, min_size=1, max_size=4),
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
    tool, records, said = Search(), MemorySink(), list[str]()

    def fail() -> str:
        tool.ran.append("fail")
        raise ConnectionError("no route")

    tool.tools.register(fail)
    guards = [ToolFilter(), Validation(), Budget(max_calls=6), Duplicates(window=5), Truncate()]
    options: dict[str, Any] = {
        "model": "m",
        "tools": tool.tools,
        "wire": wire,
        "stream": stream,
        "on_text": said.append,
    }
    options |= {"max_tool_iterations": 4, "tool_choice": "required" if once else None}
    if cut is not None:
        options["compact"] = lambda messages: messages[-cut:]
    with connected(script, plain=plain) as (client, bodies), Policy(guards).session("law", records=records) as session:
        result = run(client, session, messages="go", **options)
        assert session.ledger.progress["calls_used"] == len(tool.ran) <= 6

    # The loop ends with an answer, told in full, and in bounds.
    assert result.answer.strip()
    assert result.iterations <= 4
    assert result.requests == len(bodies) <= 4 + 3
    assert "".join(said).endswith(result.answer)
    # Each call of the whole conversation has one result, none is left over, and each that began is settled.
    assert Counter(calls(result.messages)) == Counter(answered(result.messages))
    assert [record["event"] for record in records.records].count("settle") == len(tool.ran)
    # A forced choice goes out once; none stays none.
    choices = [body.get("tool_choice") for body in bodies]
    assert choices.count("required") == once
    assert "none" not in choices or set(choices[choices.index("none") :]) == {"none"}


GOOD: Final = (
    Calls(search("a", "c1"), search("b", "c2"), items=(reasoning("hm"),)),
    Calls(search("a", "c1"), text="Let me look."),
    Text("It rains."),
    Text(refusal="I cannot"),
)
VALUES: Final[list[Any]] = [
    *(None, True, 0, 7, -1.5, 10**40, "", "x", "\ud83d", "\x00", GONE),
    *([], [7], [[]], {}, {"type": "x"}, {"id": 7}),
]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """
    Where something can be changed in *value*.
    """
    yield path
    within = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in within:
        yield from places(inner, (*path, name))


def changed(body: Any, path: tuple[Any, ...], value: Any) -> Any:
    """
    *body* with *value* at *path*; GONE takes away the place.
    """
    if not path:
        return {} if value is GONE else value
    made = within = deepcopy(body)
    for step in path[:-1]:
        within = within[step]
    if value is GONE:
        del within[path[-1]]
    else:
        within[path[-1]] = value
    return made


@table("stream", [False, True])
@table("wire", ["chat", "responses"])
@given(data=st.data())
def test_whatever_is_changed_in_a_response_it_is_an_answer_or_the_one_error(
    wire: str, data: st.DataObject, *, stream: bool
) -> None:
    api: Any = CHAT if wire == "chat" else RESPONSES
    reply = data.draw(st.sampled_from(GOOD))
    frames = api.frames(BODY, reply, 0) if stream else ["data: " + json.dumps(api.whole(BODY, reply, 0))]
    at = data.draw(st.integers(0, len(frames) - 1))
    head, _, said = frames[at].partition("data: ")
    bad = json.loads(said) if "[DONE]" not in said else {}
    for _ in range(data.draw(st.integers(1, 3))):
        bad = changed(bad, data.draw(st.sampled_from(list(places(bad)))), data.draw(st.sampled_from(VALUES)))
    frames[at] = f"{head}data: {json.dumps(bad)}\n\n"
    sent = Raw("".join(frames), SSE) if stream else Raw(json.dumps(bad))
    bodies: list[Reply] = [sent] * (2 if stream else 1)
    tool, messages = Search(), [user()]
    options: Any = {"model": "m", "messages": messages, "tools": tool.tools, "wire": wire, "stream": stream}
    with connected(bodies) as (client, _), Policy([Validation()]).session("law") as session:
        failure = None
        try:
            assert run(client, session, **options).answer.strip()
        except ResponseFailed as error:
            failure = error.status, str(error).isprintable(), tool.ran, len(messages)
        assert failure in (None, (200, True, [], 1))
        bodies.clear()
        messages.append(user("and now?"))
        json.dumps(messages, allow_nan=False, ensure_ascii=False).encode()
        assert run(client, session, **options).answer == "done"


# Replies of another form


HTML: Final = "<!DOCTYPE html>\n<html><body>Please sign in to the proxy.\x07</body></html>" + " " * 400
DEEP: Final = "[" * 100_000 + "]" * 100_000
CHOICE: Final = ("choices", 0)
SAID: Final = (*CHOICE, "message")
ASKED: Final = (*SAID, "tool_calls")
FAULTS: Final[list[tuple[str, tuple[Any, ...], Any, str]]] = [
    ("both", (), HTML, "Please sign in"),
    ("both", (), "", "an empty body"),
    ("both", (), b'{"id": "\xff\xfe"}', "HTTP 200"),
    ("both", (), [], "a list"),
    ("both", (), DEEP, "[[["),
    ("both", (), {"error": {"message": "no such model", "code": "lost"}}, "lost: no such"),
    ("both", (), {"object": "error", "message": "too long", "code": 400}, "400: too"),
    ("both", ("error",), {"message": "overloaded"}, "overloaded"),
    ("both", ("error",), None, "answered"),
    ("both", ("usage",), GONE, "answered"),
    ("both", ("usage",), "12 tokens", "answered"),
    ("both", ("usage",), {"prompt_tokens": 10**40, "input_tokens": 10**40}, "answered"),
    ("chat", (*CHOICE, "error"), {"message": "provider died"}, "provider died"),
    ("chat", ("choices",), GONE, "has no `choices`"),
    ("chat", ("choices",), [None], "a choice is null"),
    ("chat", (*SAID, "content"), 7, "`content` is a number, not text"),
    ("chat", (*SAID, "content"), [{"type": "text", "text": "It rains."}], "answered"),
    ("chat", ASKED, {"id": "c"}, "`tool_calls` is an object"),
    ("chat", (*ASKED, 0, "function"), GONE, "no `name`"),
    ("chat", (*ASKED, 0, "type"), GONE, "ran"),
    ("chat", (*ASKED, 0, "id"), 7, "is a number, not text"),
    ("chat", (*ASKED, 0, "id"), GONE, "ran"),
    ("chat", (*ASKED, 0, "function", "arguments"), {"path": "a"}, "ran"),
    ("responses", ("output", 0, "arguments"), {"path": "a"}, "ran"),
    ("responses", ("output",), GONE, "no `output`"),
    ("responses", ("output", 0, "type"), GONE, "answered"),
    ("responses", ("output", 0, "content", 0, "text"), 7, "`text` is a number"),
    ("responses", ("status",), "failed", "is `failed`"),
]
"""The wire, the place in a good response, the value that stands there, and the end: a call `ran`, an answer, or the error."""


def lie(way: Any, path: tuple[Any, ...], value: Any, end: str) -> Raw:
    """
    A good response with *value* at *path*.
    """
    made = end == "ran" or "tool_calls" in path
    reply = Calls(search("a", "c1"), usage=Usage(10, 2)) if made else Text("It rains.", Usage(10, 2))
    body = changed(way.api.whole({"model": "m"}, reply, 0), path, value)
    kind = "text/html; charset=utf-8" if body is HTML else "application/json"
    return Raw(body if isinstance(body, (str, bytes)) else json.dumps(body), kind)


@pytest.mark.system
@table(("wire", "path", "value", "end"), FAULTS)
def test_a_reply_comes_to_the_right_answer_or_to_the_one_clear_error(
    way: Any, serve: Any, wire: str, path: tuple[Any, ...], value: Any, end: str
) -> None:
    if way.stream or wire not in ("both", way.wire):
        return
    honest = False

    def script(body: Any, n: int) -> Reply:
        last = way.sent(body)[-1]
        return Text("done") if honest or results([last]) else lie(way, path, value, end)

    tool, server, messages = Search(), serve(script), [user()]
    session = Policy(prices={"m": {"input_mtok": 1.0}}).session("lies")
    if end in ("answered", "ran"):
        result = way(server, session, messages=messages, tools=tool.tools)
        assert (result.answer == "It rains.", len(tool.ran)) == (end == "answered", int(end == "ran"))
        assert session.ledger.unpriced == int("usage" in path)
    else:
        with pytest.raises(ResponseFailed) as raised:
            way(server, session, messages=messages, tools=tool.tools)
        error, text = raised.value, str(raised.value)
        assert end in text
        assert text.isprintable()
        assert (error.url, error.status) == (way.address(server), 200)
        assert len((error.body or "").encode()) <= 200
        assert (messages, tool.ran) == ([user()], [])
        # A reply that says what it used is priced, and no other is free.
        assert session.ledger.unpriced + bool(session.ledger.cost_usd) > 0
    honest = True
    # Whatever came, the conversation goes on: `serve` checks that the API would take every request.
    assert way(server, session, messages=[*messages, user()], tools=tool.tools).answer == "done"


@pytest.mark.system
@table("ids", [("c1", "c1"), ("", ""), ("c1", "c1", "c1"), ("c1", "c1_1_1", "c1"), (None, "call_1_0")])
def test_calls_that_share_an_id_are_answered_each_for_itself(way: Any, serve: Any, ids: tuple[str | None, ...]) -> None:
    made = [Calls(*(search(f"{turn}{n}", id_ or "") for n, id_ in enumerate(ids))) for turn in "ab"]
    messages, tool = [user()], Search()
    assert way(serve([*made, Text("done")]), messages=messages, tools=tool.tools).answer == "done"
    assert answered(messages) == calls(messages)
    said = [f"nothing in {turn}{n}" for turn in "ab" for n in range(len(ids))]
    assert [envelope["result"] for envelope in envelopes(messages)] == said


@pytest.mark.system
@table("arguments", ['{"path": "a', "path=a", "[1]", '"a"', "null and void"])
@table(("guards", "status"), [([Validation()], "validation_error"), ([], "error")])
def test_malformed_arguments_are_never_run_and_go_back_as_they_came(
    way: Any, serve: Any, arguments: str, guards: list[Any], status: str
) -> None:
    server, tool = serve([Calls(call("search", arguments), search("b")), Text("done")]), Search()
    result = way(server, Policy(guards).session("broken"), tools=tool.tools)
    assert tool.ran == ["b"]
    assert [e["status"] for e in envelopes(result.messages)] == [status, "success"]
    assert json.dumps(arguments) in json.dumps(way.sent(server.requests[1]))


# Servers and connections that fail


@pytest.mark.system
@table("status", [408, 429, 500, 503])
def test_what_the_client_retries_is_one_request_of_the_session(way: Any, serve: Any, status: int) -> None:
    fault, tool = Fail(status, {"retry-after-ms": "1"}), Search()
    server = serve([Calls(search("a")), fault, Calls(search("b")), fault, Text("done")])
    result = way(server, retries=2, tools=tool.tools)
    assert (result.answer, tool.ran, result.requests) == ("done", ["a", "b"], 3)
    assert len(server.requests) == 5


@pytest.mark.system
@table(("fault", "error"), [(Fail(500), APIError), (Fail(429, {"Retry-After": "9"}), RateLimitError)])
def test_what_the_client_gives_up_on_leaves_all_fit_to_go_on(
    way: Any, serve: Any, fault: Reply, error: type[Exception]
) -> None:
    server, tool, messages = serve([Calls(search("a")), fault, Calls(search("b")), Text("done")]), Search(), [user()]
    session = Policy([Budget(max_calls=5, max_tokens=100_000)]).session("429")
    with pytest.raises(error):
        way(server, session, messages=messages, tools=tool.tools)
    assert len(results(messages)) == 1
    assert session.ledger.read(lambda state, _: held(state)) == (0, 0)
    result = way(server, session, messages=messages, tools=tool.tools)
    assert session.ledger.progress["calls_used"] == 2
    assert (result.answer, tool.ran) == ("done", ["a", "b"])


CUT = "the stream ended before its response was complete"
BOTH = Calls(search("notes/a.md", "a"), search("b", "b"), text="Let me look at both.")
ANSWER = Text("It rains in Kyoto, and it will rain tomorrow.")


def begun(way: Any, reply: Any, frames: int, *, broken: bool) -> Raw:
    """
    The first *frames* of a stream of *reply*, or the begin of a whole one, whose connection is lost then if it is *broken*.
    """
    if not way.stream:
        return Raw(json.dumps(way.api.whole(BODY, reply, 0))[:40], broken=broken)
    return Raw("".join(way.api.frames(BODY, reply, 0)[:frames]), SSE, broken=broken)


@pytest.mark.system
@table("reply", [BOTH, ANSWER])
@table(("kind", "error", "said"), [
    ("lost", APIConnectionError, None),
    ("cut", ResponseFailed, rf"^{CUT} \(HTTP 200 from `http"),
    ("failed", ResponseFailed, r"^server_error: out of order"),
])  # fmt: skip
def test_a_response_that_breaks_off_adds_nothing_and_runs_nothing(
    way: Any, serve: Any, reply: Any, kind: str, error: Any, said: str | None
) -> None:
    if kind != "lost" and not way.stream:
        return
    # A stream that is cut is asked for once more, one that says that it failed is not.
    asked = 2 if way.stream and kind != "failed" else 1
    for frames in (0, 1, 3, 4) if kind == "lost" else (4,):
        bad = begun(way, reply, frames, broken=kind == "lost")
        bad = failed(chat=way.chat, stream=True) if kind == "failed" else bad
        server, tool, messages = serve([*[bad] * asked, reply, Text("done")]), Search(), [user()]
        session = Policy([Validation()]).session(f"{kind}-{frames}")
        with pytest.raises(error, match=said) as raised:
            way(server, session, messages=messages, tools=tool.tools)
        assert (messages, tool.ran, len(server.requests)) == ([user()], [], asked)
        if isinstance(raised.value, ResponseFailed):
            assert (raised.value.status, raised.value.url) == (200, way.address(server))
        # What it used is not known, and never free.
        assert session.ledger.unpriced == (asked if way.stream else 0)
        assert way(server, session, messages=messages, tools=tool.tools).answer in ("done", ANSWER.text)


@pytest.mark.system
@table("reply", [BOTH, ANSWER])
def test_whatever_is_missing_of_a_stream_nothing_of_it_is_obeyed(way: Any, serve: Any, reply: Any) -> None:
    if not way.stream:
        return
    sent, last = way.api.frames(BODY, reply, 0), '"finish_reason": "' if way.chat else '"response.completed"'
    whole = next(at for at, frame in enumerate(sent) if last in frame) + 1
    for count in range(len(sent) + 1):
        server, tool, messages = serve([begun(way, reply, count, broken=False), Text("done")]), Search(), [user()]
        session = Policy([Validation()]).session(f"cut-{count}")
        result = way(server, session, messages=messages, tools=tool.tools, parallel=1)
        if count >= whole:
            assert tool.ran == ["notes/a.md", "b"] if reply is BOTH else result.answer == ANSWER.text
            continue
        assert (result.answer, result.ended, result.requests, tool.ran) == ("done", "answered", 2, [])
        assert len(messages) == 2
        assert server.requests[0] == server.requests[1]
