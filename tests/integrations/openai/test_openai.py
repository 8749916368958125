"""
A guarded loop over chat.completions, through the real openai client.
"""

import asyncio
import json

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from openai import AsyncOpenAI, DefaultAsyncHttpxClient, DefaultHttpxClient, OpenAI, omit

from guardrails import Budget, Policy, Session, ToolFilter, Validation
from guardrails import Tool as Declared
from guardrails.integrations.openai import arun, run
from guardrails.integrations.openai.loop import LoopResult
from guardrails.session.final_answer import SILENT_CODE
from guardrails.testing.scripted_openai import Calls, Reply, Script, ScriptedOpenAI, Text, Usage, call, obeying
from tests.openai_api import problems
from tests.tables import table


pytestmark = pytest.mark.system


MODEL = "gpt-5-mini"
GREP = {
    "type": "function",
    "function": {
        "name": "grep",
        "description": "Search a file for a pattern.",
        "parameters": {
            "type": "object",
            "properties": {"pattern": {"type": "string"}, "path": {"type": "string"}},
            "required": ["pattern", "path"],
        },
    },
}
FORCED = "Tool call limit reached (3). Stopping tool loop."


class Ways:
    """
    One way to drive the loop: synchronous or not, streamed or not.
    """

    def __init__(self, *, asynchronous: bool, stream: bool) -> None:
        self.asynchronous = asynchronous
        self.stream = stream

    def __call__(self, server: ScriptedOpenAI, session: Session, **options: Any) -> LoopResult:
        options = {"model": MODEL, "stream": self.stream, "messages": [user()], **options}
        if self.asynchronous:
            return asyncio.run(self._asynchronously(server, session, options))
        http = DefaultHttpxClient(verify=False)
        with OpenAI(base_url=server.base_url, api_key="-", max_retries=0, http_client=http) as client:
            return run(client, session, **options)

    async def _asynchronously(self, server: ScriptedOpenAI, session: Session, options: dict[str, Any]) -> LoopResult:
        http = DefaultAsyncHttpxClient(verify=False)
        async with AsyncOpenAI(base_url=server.base_url, api_key="-", max_retries=0, http_client=http) as client:
            return await arun(client, session, **options)

    def __str__(self) -> str:
        return ("async" if self.asynchronous else "sync") + (" streamed" if self.stream else "")


WAYS = [Ways(asynchronous=a, stream=s) for a in (False, True) for s in (False, True)]


@pytest.fixture(params=WAYS, ids=str)
def drive(request: pytest.FixtureRequest) -> Ways:
    way: Ways = request.param
    return way


@pytest.fixture(params=[WAYS[0], WAYS[3]], ids=str)
def either(request: pytest.FixtureRequest) -> Ways:
    """
    For what has nothing to do with the wire.
    """
    way: Ways = request.param
    return way


@pytest.fixture
def serve() -> Iterator[Callable[..., ScriptedOpenAI]]:
    """
    Starts servers, and at the end checks that the API would have taken every request.
    """
    servers: list[ScriptedOpenAI] = []

    def start(script: Script | Sequence[Reply]) -> ScriptedOpenAI:
        servers.append(ScriptedOpenAI(script).__enter__())
        return servers[-1]

    yield start
    for server in servers:
        server.__exit__(None, None, None)
    assert [problems(server.requests) for server in servers] == [[] for _ in servers]


Serve = Callable[..., ScriptedOpenAI]


class Tool:
    """
    An executor that remembers what it ran.
    """

    def __init__(self) -> None:
        self.ran: list[Any] = []

    def __call__(self, tool: str, arguments: Any) -> Any:
        self.ran.append(arguments)
        return {"output": f"hit {len(self.ran)}"}


def user(text: str = "go") -> dict[str, Any]:
    return {"role": "user", "content": text}


def grep(n: int, id_: str | None = None) -> Any:
    return call("grep", {"pattern": "error", "path": f"{n}.c"}, id=id_)


def choices(server: ScriptedOpenAI) -> list[Any]:
    return [body.get("tool_choice", "absent") for body in server.requests]


def results(messages: list[Any]) -> list[Any]:
    return [json.loads(m["content"]) for m in messages if m["role"] == "tool"]


# The wire of B

SOURCES = {
    "src/main.c": '{"output": "src/main.c:12: log_error(\\"Failed to initialize\\");", "count": 1}',
    "src/config.c": '{"output": "src/config.c:45: return CONFIG_ERROR;", "count": 1}',
    "src/parser.c": '{"output": "src/parser.c:78: parse_error(line, col);", "count": 1}',
}
SUMMARY = (
    "I reached the limit of 3 tool calls. So far: src/main.c:12 logs `Failed to initialize` and src/config.c:45 returns "
    "CONFIG_ERROR. Say so to resume, or raise the limit."
)


def test_b1_b2_b3_a5_the_wire_of_b_message_for_message(drive: Ways, serve: Serve) -> None:
    asked = [(f"call_grep{i}", json.dumps({"pattern": "error", "path": p})) for i, p in enumerate(SOURCES, 1)]
    server = serve([*(Calls(call("grep", text, id=id_)) for id_, text in asked), Text(SUMMARY)])
    seen: list[str] = []

    def read(tool: str, arguments: Any) -> str:
        return SOURCES[arguments["path"]]

    with Policy(guards=[Budget(max_turns=3)], envelope="merged").session("b") as session:
        result = drive(
            server,
            session,
            messages=[user("Keep searching for errors in every file")],
            tools=[GREP],
            execute=read,
            tool_choice="auto",
            on_text=seen.append,
        )

    contents = list(SOURCES.values())
    contents[2] = contents[2][:-1] + f', "limit_reached": true, "limit_message": "{FORCED}"}}'
    wire: list[Any] = [user("Keep searching for errors in every file")]
    for (id_, text), content in zip(asked, contents, strict=True):
        function = {"name": "grep", "arguments": text}
        wire += [
            {"role": "assistant", "tool_calls": [{"id": id_, "type": "function", "function": function}]},
            {"role": "tool", "tool_call_id": id_, "content": content},
        ]
    requests = server.requests
    assert [body["messages"] for body in requests] == [wire[:1], wire[:3], wire[:5], wire]
    assert [body["tool_choice"] for body in requests] == ["auto", "auto", "auto", "none"]
    assert all(body["tools"] == [GREP] and body["model"] == MODEL for body in requests)
    assert all(body.get("stream", False) is drive.stream for body in requests)
    assert "".join(seen) == result.answer == SUMMARY
    assert (result.ended, result.code, result.requests, result.iterations) == ("forced", "budget.max_turns", 4, 3)
    assert result.messages == [*wire, {"role": "assistant", "content": SUMMARY}]


# C: the forced tool choice


@table(("asked", "sent"), [("auto", "auto"), ("none", "none"), (None, "absent"), (omit, "absent")])
def test_c1_a_free_choice_stays(drive: Ways, serve: Serve, asked: Any, sent: Any) -> None:
    server = serve([Calls(grep(1)), Text("done")])
    with Policy().session("c1") as session:
        drive(server, session, tools=[GREP], execute=Tool(), tool_choice=asked)
    assert choices(server) == [sent, sent]


# D1: the loop


# A model that does not answer


@table("nothing", [Text(""), Text(" \n"), Text("", finish_reason="content_filter")])
def test_a_model_that_answers_nothing_is_asked_once_more_without_tools(
    drive: Ways, serve: Serve, nothing: Reply
) -> None:
    server = serve([Calls(grep(1)), nothing, Text("done")])
    with Policy().session("silent") as session:
        result = drive(server, session, tools=[GREP], execute=Tool())
    assert (result.answer, result.ended, result.code) == ("done", "forced", SILENT_CODE)
    assert choices(server) == ["absent", "absent", "none"]
    assert [m["role"] for m in result.messages] == ["user", "assistant", "tool", "assistant"]


# Calls


def test_parallel_calls_each_get_their_message_denied_ones_too(drive: Ways, serve: Serve) -> None:
    server = serve([Calls(*(grep(n, f"c{n}") for n in range(5))), Text("done")])
    tool = Tool()
    with Policy(guards=[Budget(max_calls=3)]).session("five") as session:
        result = drive(server, session, tools=[GREP], execute=tool)
    assert [m["tool_call_id"] for m in result.messages if m["role"] == "tool"] == [f"c{n}" for n in range(5)]
    envelopes = results(result.messages)
    assert [e["status"] for e in envelopes] == ["success"] * 3 + ["limit_reached"] * 2
    assert [e.get("limit_message") for e in envelopes] == [None, None, FORCED, FORCED, FORCED]
    assert len(tool.ran) == 3
    assert (result.ended, result.code) == ("forced", "budget.max_calls")


@table(("parallel", "most"), [(None, 6), (2, 2)])
def test_tasks_run_the_calls_of_one_turn_together(serve: Serve, parallel: int | None, most: int) -> None:
    now, peak = 0, 0

    async def execute(tool: str, arguments: Any) -> Any:
        nonlocal now, peak
        now += 1
        peak = max(peak, now)
        await asyncio.sleep(0)
        now -= 1
        return arguments["path"]

    server = serve([Calls(*(grep(n) for n in range(6))), Text("done")])
    with Policy().session("tasks") as session:
        result = WAYS[2](server, session, tools=[GREP], execute=execute, parallel=parallel)
    assert [e["result"] for e in results(result.messages)] == [f"{n}.c" for n in range(6)]
    assert peak == most


# Functions as tools


def search_hotels(city: str, guests: int = 2) -> list[str]:
    """
    Search hotels.

    Args:
        city: where to look
    """
    return [f"{city} for {guests + 1}"]


@table("guards", [[], [ToolFilter()], [ToolFilter(unknown="allow")]])
def test_a_tool_that_nobody_offered_is_refused_and_never_run(either: Ways, serve: Serve, guards: list[Any]) -> None:
    server = serve([Calls(call("greb", {}), call("delete_everything", {"path": "/"})), Text("done")])
    tool = Tool()
    policy = Policy(guards=guards, tools=[Declared(name="delete_everything")])
    with policy.session("made-up") as session:
        near, far = results(either(server, session, tools=[GREP, search_hotels], execute=tool).messages)
        assert session.call("delete_everything", {}, tool).ok
    assert [(e["status"], e["code"], e["error_type"]) for e in (near, far)] == [
        ("denied", "tool_filter.unknown", "tool_missing")
    ] * 2
    assert near["next_action_hint"] == "Did you mean `grep`?"
    assert far["next_action_hint"] == "The tools are: `grep`, `search_hotels`."
    assert tool.ran == [{}]


def test_the_policy_s_parameters_stand_above_those_of_what_is_offered(either: Ways, serve: Serve) -> None:
    def pay(amount: int) -> int:
        return amount

    small = {"type": "object", "properties": {"amount": {"type": "integer", "maximum": 10}}}
    server = serve([Calls(call("pay", {"amount": 50}), call("pay", {"amount": 5})), Text("done")])
    with Policy(guards=[Validation()], tools=[Declared(name="pay", parameters=small)]).session("x") as session:
        refused, paid = results(either(server, session, tools=[pay]).messages)
    assert (refused["status"], paid["result"]) == ("validation_error", 5)


def test_a7_a_tool_whose_schema_is_none_runs_unchecked_with_one_warning(
    either: Ways, serve: Serve, caplog: pytest.LogCaptureFixture, request: pytest.FixtureRequest
) -> None:
    name = f"odd_{abs(hash(request.node.name))}"
    odd = {
        "type": "function",
        "function": {"name": name, "parameters": {"type": "object", "properties": {"a": {"type": "odd"}}}},
    }
    server = serve([Calls(call(name, {"a": n})) for n in (1, "x")] + [Text("done")])
    with Policy(guards=[Validation()]).session("odd") as session, caplog.at_level("WARNING", "guardrails"):
        ran = results(either(server, session, tools=[odd], execute=lambda _, given: given["a"]).messages)
    assert [one["result"] for one in ran] == [1, "x"]
    assert caplog.text.count(f"the arguments of `{name}` are not checked") == 1


def test_a_reply_is_kept_where_its_listener_fails(drive: Ways, serve: Serve) -> None:
    heard: list[str] = []

    def listen(text: str) -> None:
        heard.append(text)
        raise ValueError("listener")

    async def alisten(text: str) -> None:
        listen(text)

    server = serve([Calls(grep(1, "a"), text="Let me look."), Text("done")])
    messages, tool = [user()], Tool()
    with Policy().session("listener") as session:
        for on_text in (listen, alisten) if drive.asynchronous else (listen, listen):
            with pytest.raises(ValueError, match="listener"):
                drive(server, session, messages=messages, tools=[GREP], execute=tool, on_text=on_text)
    assert [m["role"] for m in messages] == ["user", "assistant", "tool", "assistant"]
    assert (messages[1]["content"], messages[-1]["content"]) == ("Let me look.", "done")
    assert results(messages)[0]["error_type"] == "cancelled"
    assert (len(heard), tool.ran) == (2, [])


# Usage


PRICES = {MODEL: {"input_mtok": 1.0, "output_mtok": 10.0}}


def test_stream_options_of_the_caller_stand(serve: Serve) -> None:
    server = serve([Text("done")])
    with Policy(prices=PRICES).session("usage") as session:
        WAYS[1](server, session, stream_options={"include_usage": False})
        assert session.ledger.cost_usd == 0
    assert server.requests[0]["stream_options"] == {"include_usage": False}


def test_a4_a_response_that_spends_the_budget_has_none_of_its_calls_run(drive: Ways, serve: Serve) -> None:
    def spends(_body: Any, n: int) -> Calls:
        return Calls(grep(n), grep(n + 10), usage=Usage(10_000 if len(tool.ran) < 4 else 300_000, 10))

    server = serve(obeying(spends, "out of money"))
    tool = Tool()
    with Policy(prices=PRICES, guards=[Budget(max_cost_usd=0.25)]).session("cost") as session:
        result = drive(server, session, tools=[GREP], execute=tool)
    assert (result.ended, result.code, result.requests) == ("forced", "budget.max_cost_usd", 4)
    assert len(tool.ran) == 4
    assert [e["status"] for e in results(result.messages)[4:]] == ["limit_reached"] * 2


# Errors


class Stop(BaseException):
    """
    What a tool does not survive.
    """


@table("way", [WAYS[0], WAYS[1], WAYS[3]])
def test_an_interrupted_turn_still_answers_every_call(serve: Serve, way: Ways) -> None:
    server = serve([Calls(grep(1), grep(2), grep(3)), Text("done")])
    messages = [user()]

    def execute(tool: str, arguments: Any) -> Any:
        if arguments["path"] == "2.c":
            raise Stop
        return arguments["path"]

    options: dict[str, Any] = {"tools": [GREP], "execute": execute, "parallel": 1}
    with Policy().session("interrupted") as session:
        with pytest.raises(Stop):
            way(server, session, messages=messages, **options)
        assert [e["status"] for e in results(messages)][:2] == ["success", "error"]
        assert results(messages)[1]["error_type"] == "cancelled"
        assert way(server, session, messages=[*messages, user("go on")], **options).answer == "done"


# D11: the log


# All four ways are one
