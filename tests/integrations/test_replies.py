"""
Replies that are cut, wrong or late, and what tools, models and hosts do wrong, over both wires.
"""

import asyncio
import json

from collections import Counter
from typing import Any, Final

import pytest

from openai import APIConnectionError, APIError, AsyncOpenAI, DefaultAsyncHttpxClient, RateLimitError

from guardrails import Budget, MemorySink, Policy, Registry, Validation
from guardrails.errors import ResponseFailed
from guardrails.integrations.openai import arun
from guardrails.testing.scripted_openai import Calls, Fail, Raw, Reply, Text, Usage, call
from tests.openai_api import CHAT, RESPONSES, SSE, failed
from tests.tables import table


pytestmark = pytest.mark.system


SOON = {"retry-after-ms": "1"}


class Tool:
    """
    A search that remembers where it looked.
    """

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.registry = Registry()
        self.registry.register(self.search, name="search")

    def search(self, path: str) -> str:
        self.ran.append(path)
        return f"nothing in {path}"


def search(path: str, id_: str | None = None) -> Any:
    return call("search", {"path": path}, id=id_)


# The server


@table("status", [408, 429, 500, 503])
def test_what_the_client_retries_is_one_request_of_the_session(way: Any, serve: Any, status: int) -> None:
    fault, tool = Fail(status, SOON), Tool()
    server = serve([Calls(search("a")), fault, Calls(search("b")), fault, Text("done")])
    with Policy().session("retried") as session:
        result = way(server, session, retries=2, tools=tool.registry)
    assert (result.answer, tool.ran, result.requests) == ("done", ["a", "b"], 3)
    assert len(server.requests) == 5


@table(("fault", "error"), [(Fail(500), APIError), (Fail(429, {"Retry-After": "9"}), RateLimitError)])
def test_what_the_client_gives_up_on_leaves_all_fit_to_go_on(
    way: Any, serve: Any, fault: Reply, error: type[Exception]
) -> None:
    server, tool = serve([Calls(search("a")), fault, Calls(search("b")), Text("done")]), Tool()
    messages = [way.user()]
    with Policy([Budget(max_calls=5)]).session("429") as session:
        with pytest.raises(error):
            way(server, session, messages=messages, tools=tool.registry)
        assert len(way.outputs(messages)) == 1
        result = way(server, session, messages=messages, tools=tool.registry)
        assert session.ledger.progress["calls_used"] == 2
    assert (result.answer, tool.ran) == ("done", ["a", "b"])


@table("after", [0, 1, 3, 6])
def test_a_connection_that_drops_adds_nothing_and_runs_nothing(way: Any, serve: Any, after: int) -> None:
    reply, body = Calls(search("a"), search("b"), text="Let me look."), {"model": "m"}
    api: Any = CHAT if way.chat else RESPONSES
    begun = "".join(api.frames(body, reply, 0)[:after]) if way.stream else json.dumps(api.whole(body, reply, 0))[:40]
    broken = Raw(begun, SSE if way.stream else "application/json", broken=True)
    # A stream that is cut is asked for once more.
    asked = 2 if way.stream else 1
    server, tool = serve([*[broken] * asked, Calls(search("a")), Text("done")]), Tool()
    messages = [way.user()]
    with Policy().session("broken") as session:
        with pytest.raises(APIConnectionError):
            way(server, session, messages=messages, tools=tool.registry)
        assert (messages, tool.ran) == ([way.user()], [])
        # What it used is not known, and never free.
        assert session.ledger.unpriced == (2 if way.stream else 0)
        assert len(server.requests) == asked
        assert way(server, session, messages=messages, tools=tool.registry).answer == "done"


# The model


@table("arguments", ['{"path": "a', "path=a", "[1]", '"a"', "null and void"])
@table(("guards", "status"), [([Validation()], "validation_error"), ([], "error")])
def test_malformed_arguments_are_never_run_and_go_back_as_they_came(
    some: Any, serve: Any, arguments: str, guards: list[Any], status: str
) -> None:
    server, tool = serve([Calls(call("search", arguments), search("b")), Text("done")]), Tool()
    with Policy(guards).session("broken") as session:
        result = some(server, session, tools=tool.registry)
    assert tool.ran == ["b"]
    assert [e["status"] for e in some.results(result.messages)] == [status, "success"]
    assert json.dumps(arguments) in json.dumps(some.sent(server.requests[1]))


def test_ids_that_a_server_reuses_are_no_obstacle(way: Any, serve: Any) -> None:
    turns = [
        Calls(search("a", "call_0")),
        Calls(search("b", "call_0"), search("c", "call_0")),
        Calls(search("a", "call_0")),
    ]
    server, tool = serve([*turns, Text("done")]), Tool()
    with Policy([Budget(max_calls=10)]).session("ids") as session:
        result = way(server, session, tools=tool.registry)
    assert sorted(tool.ran) == ["a", "a", "b", "c"]
    assert [e["status"] for e in way.results(result.messages)] == ["success"] * 4


# The host


@table("wire", ["chat", "responses"])
def test_a_loop_cancelled_in_mid_turn_has_recorded_every_call_that_began(serve: Any, all_ways: Any, wire: str) -> None:
    way = next(way for way in all_ways if way.wire == wire and way.asynchronous)
    server, records = serve([Calls(*(search(p, p) for p in "abc"))]), MemorySink()
    messages = [way.user()]
    made, began = Registry(), []

    async def cancelled() -> None:
        @made.register(name="search")
        async def look(path: str) -> str:
            began.append(path)
            if len(began) == 3:
                task.cancel()
            if path != "a":
                await asyncio.Event().wait()
            return path

        http = DefaultAsyncHttpxClient(verify=False)
        async with AsyncOpenAI(base_url=server.base_url, api_key="-", http_client=http) as client:
            with Policy([Budget(max_calls=9)]).session("cancelled", records=records) as session:
                task = asyncio.create_task(
                    arun(client, session, model="m", messages=messages, tools=made, wire=way.wire)
                )
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert session.ledger.progress["calls_used"] == 3

    asyncio.run(cancelled())
    assert way.ids(messages) == (["a", "b", "c"], ["a", "b", "c"])
    assert [e.get("error_type") for e in way.results(messages)] == [None, "cancelled", "cancelled"]
    events = Counter(record["event"] for record in records.records)
    assert events["call"] == events["settle"] == 3


# Streams that are cut

CUT = "the stream ended before its response was complete"
CALL = Calls(
    call("search", {"path": "notes/a.md"}, id="a"), call("search", {"path": "b"}, id="b"), text="Let me look at both."
)
ANSWER = Text("It rains in Kyoto, and it will rain tomorrow.")


def frames(way: Any, reply: Any) -> list[str]:
    """
    The events of *reply* as its server streams them.
    """
    api: Any = CHAT if way.chat else RESPONSES
    made: list[str] = api.frames({"model": "m", "stream_options": {"include_usage": True}}, reply, 0)
    return made


def ends(way: Any, frame: str) -> bool:
    """
    Whether *frame* says that the response is complete.
    """
    if not way.chat:
        return '"response.completed"' in frame
    return '"finish_reason": "' in frame


@pytest.fixture(params=[f"{wire} {kind} streamed" for wire in ("chat", "responses") for kind in ("sync", "async")])
def stream(request: pytest.FixtureRequest, all_ways: Any) -> Any:
    """
    The ways that stream; the others have nothing to be cut.
    """
    return next(way for way in all_ways if str(way) == request.param)


@table("reply", [CALL, ANSWER])
def test_whatever_is_missing_of_a_stream_nothing_of_it_is_obeyed(stream: Any, serve: Any, reply: Any) -> None:
    sent = frames(stream, reply)
    whole = next(at for at, frame in enumerate(sent) if ends(stream, frame)) + 1
    for count in range(len(sent) + 1):
        server, tool = serve([Raw("".join(sent[:count]), SSE), Text("done")]), Tool()
        messages = [stream.user()]
        with Policy([Validation()]).session(f"cut-{count}") as session:
            result = stream(server, session, messages=messages, tools=tool.registry, parallel=1)
        if count >= whole:
            assert tool.ran == ["notes/a.md", "b"] if reply is CALL else result.answer == ANSWER.text
            continue
        assert (result.answer, result.ended, result.requests, tool.ran) == ("done", "answered", 2, [])
        assert len(messages) == 2
        assert server.requests[0] == server.requests[1]


@table("reply", [CALL, ANSWER])
def test_a_stream_that_is_cut_again_is_one_clear_error(stream: Any, serve: Any, reply: Any) -> None:
    cut = Raw("".join(frames(stream, reply)[:4]), SSE)
    server, tool = serve([cut, cut, reply, Text("done")]), Tool()
    messages = [stream.user()]
    with Policy([Validation()]).session("cut") as session:
        with pytest.raises(ResponseFailed, match=rf"^{CUT} \(HTTP 200 from `http") as raised:
            stream(server, session, messages=messages, tools=tool.registry)
        assert (raised.value.status, raised.value.url) == (
            200,
            f"{server.base_url}/{'chat/completions' if stream.chat else 'responses'}",
        )
        assert (messages, tool.ran, len(server.requests)) == ([stream.user()], [], 2)
        # What a cut response used is not known, and never free.
        assert session.ledger.unpriced == 2
        assert stream(server, session, messages=messages, tools=tool.registry).answer in ("done", ANSWER.text)


def test_an_error_in_a_stream_is_told_at_once(stream: Any, serve: Any) -> None:
    server, tool = serve([failed(chat=stream.chat, stream=True), Text("done")]), Tool()
    messages = [stream.user()]
    with Policy().session("failed") as session:
        with pytest.raises(ResponseFailed, match=r"^server_error: out of order") as raised:
            stream(server, session, messages=messages, tools=tool.registry)
        assert (raised.value.code, raised.value.status) == ("server_error", 200)
        assert (messages, tool.ran, len(server.requests)) == ([stream.user()], [], 1)
        assert stream(server, session, messages=messages).answer == "done"


# Replies of another form


HTML: Final = "<!DOCTYPE html>\n<html><body>Please sign in to the proxy.\x07</body></html>" + " " * 400
DEEP: Final = "[" * 100_000 + "]" * 100_000
GONE: Final = object()
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


def sent(wire: str, path: tuple[Any, ...], value: Any, end: str) -> Raw:
    """
    A good response with *value* at *path*; GONE takes away the place.
    """
    calls = end == "ran" or "tool_calls" in path
    reply = Calls(search("a", "c1"), usage=Usage(10, 2)) if calls else Text("It rains.", Usage(10, 2))
    body: Any = (CHAT if wire == "chat" else RESPONSES).whole({"model": "m"}, reply, 0)
    within = body
    for step in path[:-1]:
        within = within[step]
    if not path:
        body = value
    elif value is GONE:
        del within[path[-1]]
    else:
        within[path[-1]] = value
    if body is HTML:
        return Raw(HTML, "text/html; charset=utf-8")
    return Raw(body if isinstance(body, (str, bytes)) else json.dumps(body))


@table("fault", FAULTS)
def test_a_reply_comes_to_the_right_answer_or_to_the_one_clear_error(way: Any, serve: Any, fault: Any) -> None:
    wire, path, value, end = fault
    if way.stream or wire not in ("both", way.wire):
        return
    honest = False

    def script(body: Any, n: int) -> Reply:
        last = way.sent(body)[-1]
        answered = last.get("role") == "tool" or last.get("type") == "function_call_output"
        return Text("done") if honest or answered else sent(way.wire, path, value, end)

    tool, server, messages = Tool(), serve(script), [way.user()]
    with Policy(prices={"m": {"input_mtok": 1.0}}).session("lies") as session:
        if end in ("answered", "ran"):
            result = way(server, session, messages=messages, tools=tool.registry)
            assert (result.answer == "It rains.", len(tool.ran)) == (end == "answered", int(end == "ran"))
            assert session.ledger.unpriced == int("usage" in path)
        else:
            with pytest.raises(ResponseFailed) as raised:
                way(server, session, messages=messages, tools=tool.registry)
            error, text = raised.value, str(raised.value)
            assert end in text
            assert text.isprintable()
            address = f"{server.base_url}/{'chat/completions' if way.chat else 'responses'}"
            assert (error.url, error.status, len((error.body or "").encode()) <= 200) == (address, 200, True)
            assert (messages, tool.ran) == ([way.user()], [])
            # A reply that says what it used is priced, and no other is free.
            assert session.ledger.unpriced + bool(session.ledger.cost_usd) > 0
        honest = True
        # Whatever came, the conversation goes on: `serve` checks that the API would take every request.
        assert way(server, session, messages=[*messages, way.user()], tools=tool.registry).answer == "done"


@table("ids", [("c1", "c1"), ("", ""), ("c1", "c1", "c1"), ("c1", "c1_1_1", "c1"), (None, "call_1_0")])
def test_calls_that_share_an_id_are_answered_each_for_itself(way: Any, serve: Any, ids: tuple[str | None, ...]) -> None:
    made = [search(str(n), id_ or "") for n, id_ in enumerate(ids)]
    server, messages = serve([Calls(*made), Text("done")]), [way.user()]
    with Policy().session("twins") as session:
        assert way(server, session, messages=messages, tools=Tool().registry).answer == "done"
    assert [f"nothing in {n}" in said for n, said in enumerate(way.outputs(messages))] == [True] * len(ids)
    asked, answered = way.ids(messages)
    assert asked == answered
    assert len(set(answered)) == len(ids)
