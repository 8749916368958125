"""
The SDK's own tool runner behind a session.
"""

import asyncio
import json
import logging

from collections.abc import Callable
from typing import Any

import pytest

from openai import AsyncOpenAI, DefaultAsyncHttpxClient, DefaultHttpxClient, OpenAI, pydantic_responses_function_tool
from openai.lib.responses_tool_runner import (
    AsyncRegisteredFunction,
    AsyncResponsesToolRunner,
    RegisteredFunction,
    ResponsesToolLedger,
    ResponsesToolRunner,
    ToolRunnerError,
)
from openai.types.responses import Response
from pydantic import BaseModel

from guardrails import Budget, Duplicates, Policy, Registry, ResponseFailed, Session, Validation
from guardrails.integrations.tool_runner import AsyncGuardedToolRunner, GuardedToolRunner
from guardrails.testing import responses
from guardrails.testing.scripted_openai import (
    BrokenStream,
    Calls,
    Failed,
    Raw,
    Reply,
    ScriptedOpenAI,
    Text,
    Usage,
    call,
    obeying,
    reasoning,
)


class Runs:
    """
    One way to run the guarded runner.
    """

    def __init__(self, *, asynchronous: bool, stream: bool) -> None:
        self.asynchronous = asynchronous
        self.stream = stream

    def __call__(self, server: ScriptedOpenAI, session: Session, *, params: Any = (), **options: Any) -> Response:
        request: Any = {"model": "m", "input": "go", **dict(params)}
        run: Any = {name: options.pop(name) for name in ("max_steps", "eager", "ledger") if name in options}
        run = {"stream": self.stream, **run}
        if self.asynchronous:
            return asyncio.run(self._asynchronously(server, session, request, options, run))
        http = DefaultHttpxClient(verify=False)
        with OpenAI(base_url=server.base_url, api_key="-", max_retries=0, http_client=http) as client:
            return GuardedToolRunner(session, **options).run(client, request, **run)

    async def _asynchronously(self, server: Any, session: Session, request: Any, options: Any, run: Any) -> Response:
        http = DefaultAsyncHttpxClient(verify=False)
        async with AsyncOpenAI(base_url=server.base_url, api_key="-", max_retries=0, http_client=http) as client:
            return await AsyncGuardedToolRunner(session, **options).run(client, request, **run)

    def __str__(self) -> str:
        return ("async" if self.asynchronous else "sync") + (" streamed" if self.stream else "")


ALL = [Runs(asynchronous=a, stream=s) for a in (False, True) for s in (False, True)]


@pytest.fixture(params=ALL, ids=str)
def runs(request: pytest.FixtureRequest) -> Runs:
    given: Runs = request.param
    return given


class Searches:
    """
    A search that remembers where it looked.
    """

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.tools = Registry()
        self.tools.register(self.search, name="search")

    def search(self, path: str) -> str:
        self.ran.append(path)
        return f"nothing in {path}"


def search(path: str, id_: str | None = None) -> Any:
    return call("search", {"path": path}, id=id_)


def outputs(body: Any) -> list[Any]:
    return [json.loads(item["output"]) for item in body["input"] if item.get("type") == "function_call_output"]


def choices(server: ScriptedOpenAI) -> list[Any]:
    return [body.get("tool_choice", "absent") for body in server.requests]


Serve = Callable[..., ScriptedOpenAI]


def test_the_runner_s_functions_run_behind_the_session(runs: Runs, serve: Serve) -> None:
    thought = reasoning("where?")
    server = serve([Calls(search("a", "a"), search("a", "b"), text="Let me look.", items=(thought,)), Text("nothing")])
    searches = Searches()
    with Policy([Duplicates(window=5)]).session("runner") as session:
        assert runs(server, session, tools=searches.tools).output_text == "nothing"
        assert session.progress["calls_used"] == 1
    assert searches.ran == ["a"]
    assert [e["status"] for e in outputs(server.requests[1])] == ["success", "duplicate_call_blocked"]
    assert thought in server.requests[1]["input"]
    assert [[tool["name"] for tool in body["tools"]] for body in server.requests] == [["search"]] * 2


def test_a5_a_spent_budget_forces_the_final_answer_with_tools_still_listed(runs: Runs, serve: Serve) -> None:
    server, searches = serve(obeying(lambda _, n: Calls(search(str(n))), "that is all")), Searches()
    with Policy([Budget(max_turns=2)]).session("runner") as session:
        assert runs(server, session, tools=searches.tools).output_text == "that is all"
    assert choices(server) == ["absent", "absent", "none"]
    assert server.requests[-1]["tools"] == searches.tools.schemas("responses")
    assert outputs(server.requests[-1])[-1]["limit_message"] == "Tool call limit reached (2). Stopping tool loop."


def test_d1_after_max_steps_the_final_answer_is_forced_where_the_sdk_would_raise(runs: Runs, serve: Serve) -> None:
    server, searches = serve(obeying(lambda _, n: Calls(search(str(n))), "that is all")), Searches()
    with Policy().session("runner") as session:
        assert runs(server, session, tools=searches.tools, max_steps=3).output_text == "that is all"
    assert (len(searches.ran), choices(server)) == (3, ["absent"] * 3 + ["none"])
    last = outputs(server.requests[-1])[-1]
    assert (last["code"], last["limit_reached"]) == ("loop.max_steps", True)
    assert last["limit_message"] == "Tool call limit reached (3). Stopping tool loop."
    assert "limit_message" not in outputs(server.requests[-1])[-2]


def test_steps_are_raised_by_the_call_that_raises_every_limit(runs: Runs, serve: Serve) -> None:
    server, searches = serve(obeying(lambda _, n: Calls(search(str(n))), "that is all")), Searches()
    with Policy().session("runner") as session:
        session.extend(max_steps=2)
        assert runs(server, session, tools=searches.tools, max_steps=1).output_text == "that is all"
    assert len(searches.ran) == 3


def test_a_further_message_of_the_user_opens_what_the_policy_says(runs: Runs, serve: Serve) -> None:
    searches = Searches()
    with Policy([Budget(max_turns=1, go_on={"max_turns": 2})]).session("runner") as session:
        for ran in (1, 3):
            server = serve(obeying(lambda _, n: Calls(search(f"{ran} {n}")), "that is all"))  # noqa: B023
            runs(server, session, tools=searches.tools)
            assert len(searches.ran) == ran


@pytest.mark.parametrize("guards", [[Budget(max_turns=2)], []])
def test_a_model_that_ignores_none_has_nothing_run_and_the_digest_answers(
    runs: Runs, serve: Serve, guards: list[Any]
) -> None:
    server, searches = serve(lambda _, n: Calls(search(str(n)))), Searches()
    with Policy(guards).session("runner") as session:
        response = runs(server, session, tools=searches.tools, max_steps=2)
        assert response.output_text == session.digest()
    assert (len(searches.ran), choices(server)) == (2, ["absent", "absent", "none", "none"])
    assert [e["status"] for e in outputs(server.requests[-1])] == ["success", "success", "limit_reached"]


def test_a_model_that_says_nothing_ends_in_the_digest(runs: Runs, serve: Serve) -> None:
    server, searches = serve([Calls(search("a")), Text("")]), Searches()
    with Policy().session("runner") as session:
        assert runs(server, session, tools=searches.tools).output_text == session.digest()


@pytest.mark.parametrize("choice", ["required", {"type": "function", "name": "search"}])
def test_c1_a_forced_choice_which_the_sdk_refuses_is_sent_once(runs: Runs, serve: Serve, choice: Any) -> None:
    server, searches = serve([Calls(search("a")), Text("done")]), Searches()
    with Policy().session("runner") as session:
        runs(server, session, tools=searches.tools, params={"tool_choice": choice})
    assert choices(server) == [choice, "absent"]


def test_c2_a_strategy_decides_turn_by_turn(runs: Runs, serve: Serve) -> None:
    server, searches = serve(obeying(lambda _, n: Calls(search(str(n))), "done")), Searches()
    with Policy([Budget(max_turns=2)]).session("runner") as session:
        runs(server, session, tools=searches.tools, strategy=lambda calls, turns: "required" if turns else "auto")
    assert choices(server) == ["auto", "required", "none"]


@pytest.mark.parametrize(
    ("bad", "status"),
    [
        (call("search", '{"path": "a'), "validation_error"),
        (call("search", "[1]"), "validation_error"),
        (call("search", '{"path": NaN}'), "validation_error"),
        (call("search", {"path": 7}), "validation_error"),
        (call("fly", {"to": "Kyoto"}), "denied"),
        (call("search", {"path": "x"}, id=""), "success"),
        (call("search", {"path": "x"}, id="twice"), "success"),
    ],
)
def test_a_call_that_the_sdk_ends_a_run_on_is_a_result_and_goes_back_as_it_came(
    runs: Runs, serve: Serve, bad: Any, status: str
) -> None:
    server, searches = serve([Calls(search("a", "twice")), Calls(bad), Text("done")]), Searches()
    with Policy([Validation()]).session("runner") as session:
        assert runs(server, session, tools=searches.tools).output_text == "done"
    assert [e["status"] for e in outputs(server.requests[-1])] == ["success", status]
    [_, went_back] = [item for item in server.requests[-1]["input"] if item.get("type") == "function_call"]
    assert (went_back["name"], went_back["arguments"]) == (bad.name, bad.arguments)


def test_d4_a_tool_that_raises_is_data_and_the_run_goes_on(runs: Runs, serve: Serve) -> None:
    def read(path: str) -> str:
        raise FileNotFoundError(path)

    server = serve([Calls(call("read", {"path": "x"})), Text("it is not there")])
    with Policy().session("runner") as session:
        assert runs(server, session, tools=[read]).output_text == "it is not there"
    assert outputs(server.requests[1])[0]["error_type"] == "not_found"


class Query(BaseModel):
    path: str
    depth: int = 1


def test_functions_registered_for_the_sdk_s_runner_are_guarded_as_they_are(runs: Runs, serve: Serve) -> None:
    ran: list[Any] = []
    schema: Any = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": False,
    }
    plain: Any = {"type": "function", "name": "plain", "parameters": schema, "strict": True}
    typed: Any = pydantic_responses_function_tool(Query, name="typed")
    functions: list[Any]
    if runs.asynchronous:

        async def later(given: Any) -> str:
            await asyncio.sleep(0)
            ran.append(given)
            return "ok"

        functions = [AsyncRegisteredFunction(plain, later), AsyncRegisteredFunction.from_tool(typed, execute=later)]
    else:

        def now(given: Any) -> str:
            ran.append(given)
            return "ok"

        functions = [RegisteredFunction(plain, now, independent=True), RegisteredFunction.from_tool(typed, execute=now)]
    server = serve(
        [
            Calls(call("plain", {"n": 1}), call("plain", {"n": "1"}), call("typed", {"path": "a", "depth": 2})),
            Text("done"),
        ]
    )
    with Policy([Validation()]).session("runner") as session:
        assert runs(server, session, functions=functions).output_text == "done"
    assert ran == [{"n": 1}, Query(path="a", depth=2)]
    assert [e["status"] for e in outputs(server.requests[1])] == ["success", "validation_error", "success"]
    assert server.requests[0]["tools"][0] == plain


def test_usage_is_charged_and_each_request_is_told(runs: Runs, serve: Serve) -> None:
    server, searches = (
        serve([Calls(search("a"), usage=Usage(1000, 50)), Text("done", usage=Usage(2000, 100))]),
        Searches(),
    )
    with Policy(prices={"m": {"input_mtok": 1.0, "output_mtok": 10.0}}).session("runner") as session:
        runs(server, session, tools=searches.tools)
        assert session.cost_usd == pytest.approx((3000 + 1500) / 1e6)


def test_a_response_that_failed_is_the_sdk_s_own_error_and_is_charged_as_unpriced(runs: Runs, serve: Serve) -> None:
    server = serve([Failed("out of order")])
    with Policy().session("runner") as session:
        with pytest.raises(ToolRunnerError):
            runs(server, session, tools=Searches().tools)
        assert session.unpriced == 1


@pytest.mark.parametrize("runs", [ALL[1], ALL[3]], ids=str)
def test_a_stream_that_breaks_is_not_free(runs: Runs, serve: Serve) -> None:
    server, searches = serve([BrokenStream(Calls(search("a")), after=4)]), Searches()
    with Policy().session("runner") as session:
        with pytest.raises(ToolRunnerError):
            runs(server, session, tools=searches.tools)
        assert (session.unpriced, searches.ran) == (1, [])


@pytest.mark.parametrize("runs", [ALL[1], ALL[3]], ids=str)
def test_a_stream_that_ends_early_runs_nothing_is_not_free_and_is_named(runs: Runs, serve: Serve) -> None:
    sent = responses.frames({"model": "m"}, Calls(search("a")), 0)
    for count in range(len(sent)):
        searches = Searches()
        server = serve([Raw("".join(sent[:count]), "text/event-stream")])
        with Policy().session("runner") as session:
            with pytest.raises(ToolRunnerError, match=r"the stream ended before .* \(HTTP 200 from") as raised:
                runs(server, session, tools=searches.tools)
            assert (session.unpriced, searches.ran) == (1, [])
        assert isinstance(raised.value.__cause__, ResponseFailed)


def test_d11_the_log_tells_the_run(runs: Runs, serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="guardrails")
    with Policy(prices={"m": {"input_mtok": 1.0}}).session("runner") as session:
        runs(serve([Calls(search("a")), Text("done")]), session, tools=Searches().tools)
    assert [r.message for r in caplog.records if r.name == "guardrails"] == [
        "executing tool calls",
        "executing tool",
        "tool loop complete, returning text response",
    ]


@pytest.mark.parametrize(
    "form", [str, lambda text: [{"role": "user", "content": [{"type": "input_text", "text": text}]}]]
)
def test_d9_what_goes_out_has_no_control_characters(runs: Runs, serve: Serve, form: Any) -> None:
    odd, clean = "a\x00b\x1b[31m\x7fc\n", "ab[31mc\n"
    server = serve([Calls(search(odd)), Text("done")])
    searches = Searches()
    with Policy().session("d9") as session:
        runs(server, session, tools=searches.tools, params={"input": form(odd), "instructions": odd})
    for body in server.requests:
        said = body["input"] if isinstance(body["input"], str) else body["input"][0]["content"]
        assert clean == (said if isinstance(said, str) else said[0]["text"])
        assert body["instructions"] == clean
    assert outputs(server.requests[1])[0]["result"] == f"nothing in {clean}"
    assert searches.ran == [odd]


def test_eager_execution_is_guarded_too(serve: Serve) -> None:
    server, searches = serve([Calls(search("a"), search("b"), call("fly", {})), Text("done")]), Searches()
    with Policy([Budget(max_calls=5)]).session("runner") as session:
        assert ALL[1](server, session, tools=searches.tools, eager=True).output_text == "done"
    assert searches.ran == ["a", "b"]


def test_a_ledger_of_the_sdk_s_resumes_a_guarded_run(serve: Serve) -> None:
    saved: list[Any] = []
    server, searches = serve([Calls(search("a"), call("fly", {})), Failed(), Text("done")]), Searches()
    with Policy().session("runner") as session:
        with pytest.raises(ToolRunnerError):
            ALL[0](server, session, tools=searches.tools, ledger=ResponsesToolLedger("run", saved.append))
        boundary = [checkpoint for checkpoint in saved if checkpoint["phase"] == "boundary"][-1]
        ledger = ResponsesToolLedger("run", saved.append, boundary)
        assert ALL[0](server, session, tools=searches.tools, ledger=ledger).output_text == "done"
    assert searches.ran == ["a"]
    assert [e["status"] for e in outputs(server.requests[-1])] == ["success", "denied"]


def test_iterate_shows_each_turn_before_its_functions_run(serve: Serve) -> None:
    server, searches = serve([Calls(search("a")), Text("done")]), Searches()
    http = DefaultHttpxClient(verify=False)
    with (
        Policy().session("runner") as session,
        OpenAI(base_url=server.base_url, api_key="-", http_client=http) as client,
    ):
        runner = GuardedToolRunner(session, tools=searches.tools)
        seen = [(turn.final, list(searches.ran)) for turn in runner.iterate(client, {"model": "m", "input": "go"})]
    assert seen == [(False, []), (True, ["a"])]


def test_a_synchronous_runner_takes_no_asynchronous_function() -> None:
    async def later() -> str:
        return "later"

    with Policy().session("x") as session, pytest.raises(TypeError, match="`later` is asynchronous: use `AsyncG"):
        GuardedToolRunner(session, tools=[later])


def test_the_sdk_s_own_runner_still_ends_without_an_answer_where_ours_does_not(serve: Serve) -> None:
    """
    What this module is for; once this fails, the SDK has changed.
    """
    tool: Any = {"type": "function", "name": "search", "parameters": {}, "strict": False}
    script: list[Reply] = [Calls(search(str(n))) for n in range(3)]
    http = DefaultHttpxClient(verify=False)
    server = serve(script)
    with OpenAI(base_url=server.base_url, api_key="-", http_client=http) as client:
        runner = ResponsesToolRunner(functions=[RegisteredFunction(tool, lambda _: "ok")])
        with pytest.raises(ToolRunnerError, match="max_steps"):
            runner.run(client, {"model": "m", "input": "go"}, max_steps=3)
    assert issubclass(AsyncGuardedToolRunner, AsyncResponsesToolRunner)
