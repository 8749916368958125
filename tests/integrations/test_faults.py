"""
What servers, models, tools and hosts do wrong, over both wires.
"""

import asyncio
import json

from collections import Counter
from typing import Any

import pytest

from openai import APIConnectionError, APIError, AsyncOpenAI, DefaultAsyncHttpxClient, RateLimitError

from guardrails import Budget, MemorySink, Policy, Registry, Validation
from guardrails.integrations.openai import arun
from guardrails.testing.scripted_openai import Calls, Fail, Raw, Reply, Text, call
from tests.openai_api import CHAT, RESPONSES, SSE
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


@table("finish", ["length", "content_filter"])
def test_a_turn_that_was_cut_runs_what_is_whole_and_answers_what_is_not(way: Any, serve: Any, finish: str) -> None:
    cut = Calls(search("a"), call("search", '{"path": "b'), finish_reason=finish)
    server, tool = serve([cut, Text("cut here", finish_reason=finish)]), Tool()
    with Policy([Validation()]).session("cut") as session:
        result = way(server, session, tools=tool.registry)
    assert tool.ran == ["a"]
    assert [e["status"] for e in way.results(result.messages)] == ["success", "validation_error"]
    assert (result.answer, result.ended, result.finish_reason) == ("cut here", "answered", finish)


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


def test_a_conversation_that_cannot_be_kept_ends_the_loop_before_a_tool_runs(some: Any, serve: Any) -> None:
    class Full(list[Any]):
        def extend(self, items: Any) -> None:
            raise OSError("disk full")

    tool = Tool()
    with Policy().session("full") as session, pytest.raises(OSError, match="disk full"):
        some(serve([Calls(search("a"))]), session, messages=Full([some.user()]), tools=tool.registry)
    assert tool.ran == []
