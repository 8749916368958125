"""
A guarded loop over chat.completions, through the real openai client.
"""

import asyncio
import functools
import json
import logging
import re
import threading

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from openai import (
    APIConnectionError,
    AsyncOpenAI,
    DefaultAsyncHttpxClient,
    DefaultHttpxClient,
    OpenAI,
    RateLimitError,
    omit,
)

from guardrails import Budget, Denials, Duplicates, Policy, PolicyError, Session, ToolFilter, Validation
from guardrails import Tool as Declared
from guardrails.core.values.errors import LoopLimitExceeded
from guardrails.integrations.openai import arun, run
from guardrails.session.turns.final_answer import SILENT_CODE
from guardrails.session.turns.loop import LIMIT_CODE, LoopResult
from guardrails.testing.scripted_openai import (
    BrokenStream,
    Calls,
    Fail,
    Reply,
    Script,
    ScriptedOpenAI,
    Text,
    Usage,
    call,
    obeying,
)


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
NAMED = {"type": "function", "function": {"name": "grep"}}
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
    assert [server.refused for server in servers] == [[] for _ in servers]


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


def greps(body: Any, n: int) -> Reply:
    return Calls(grep(n))


def always(reply: Reply) -> Script:
    return lambda _body, _n: reply


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


def test_b2_the_user_can_raise_the_limit_and_go_on(either: Ways, serve: Serve) -> None:
    server = serve(obeying(greps, "stopped"))
    tool = Tool()
    with Policy(guards=[Budget(max_turns=2)]).session("b") as session:
        first = either(server, session, tools=[GREP], execute=tool)
        again = either(server, session, tools=[GREP], execute=tool, messages=[*first.messages, user("go on")])
        assert (len(tool.ran), again.ended, again.requests) == (2, "forced", 1)

        session.extend(max_turns=3)
        either(server, session, tools=[GREP], execute=tool, messages=[*again.messages, user("go on")])
    assert len(tool.ran) == 5


# C: the forced tool choice


@pytest.mark.parametrize("forced", ["required", NAMED])
def test_c1_a_forced_choice_is_sent_once_and_its_key_absent_afterwards(drive: Ways, serve: Serve, forced: Any) -> None:
    def forcible(body: Any, n: int) -> Reply:
        return Calls(grep(n)) if body.get("tool_choice") == forced else Text("done")

    server = serve(forcible)
    with Policy().session("c1") as session:
        result = drive(server, session, tools=[GREP], execute=Tool(), tool_choice=forced)
    assert choices(server) == [forced, "absent"]
    assert (result.answer, result.ended, result.code) == ("done", "answered", None)


@pytest.mark.parametrize(("asked", "sent"), [("auto", "auto"), ("none", "none"), (None, "absent"), (omit, "absent")])
def test_c1_a_free_choice_stays(drive: Ways, serve: Serve, asked: Any, sent: Any) -> None:
    server = serve([Calls(grep(1)), Text("done")])
    with Policy().session("c1") as session:
        drive(server, session, tools=[GREP], execute=Tool(), tool_choice=asked)
    assert choices(server) == [sent, sent]


def test_c1_a_second_loop_of_a_session_may_force_again(either: Ways, serve: Serve) -> None:
    server = serve([Calls(grep(1)), Text("done")] * 2)
    with Policy().session("c1") as session:
        for _ in range(2):
            either(server, session, tools=[GREP], execute=Tool(), tool_choice="required")
    assert choices(server) == ["required", "absent"] * 2


def test_c2_a_strategy_decides_turn_by_turn_below_the_none_of_an_exhausted_session(drive: Ways, serve: Serve) -> None:
    asked: list[tuple[int, int]] = []

    def strategy(call_count: int, turn_count: int) -> Any:
        asked.append((call_count, turn_count))
        return NAMED if turn_count < 2 else "required"

    server = serve(obeying(lambda _body, n: Calls(grep(n), grep(n + 10)), "done"))
    with Policy(guards=[Budget(max_turns=3)]).session("c2") as session:
        drive(server, session, tools=[GREP], execute=Tool(), tool_choice="auto", strategy=strategy)
    assert choices(server) == [NAMED, NAMED, "required", "none"]
    assert asked[:3] == [(0, 0), (2, 1), (4, 2)]


# D1: the loop


def test_d1_results_go_back_with_their_ids_until_the_model_answers(drive: Ways, serve: Serve) -> None:
    server = serve([Calls(grep(1, "a"), grep(2, "b"), text="Let me look."), Text("Two hits, in 1.c and 2.c.")])
    tool = Tool()
    messages = [user()]
    seen: list[str] = []
    with Policy().session("d1") as session:
        result = drive(server, session, messages=messages, tools=[GREP], execute=tool, on_text=seen.append)

    assert result.answer == "Two hits, in 1.c and 2.c."
    assert (result.ended, result.requests, result.iterations, result.finish_reason) == ("answered", 2, 1, "stop")
    assert [m.get("tool_call_id") for m in result.messages] == [None, None, "a", "b", None]
    assert result.messages[1]["content"] == "Let me look."
    assert messages is result.messages
    assert "".join(seen) == "Let me look.Two hits, in 1.c and 2.c."
    assert tool.ran == [{"pattern": "error", "path": f"{n}.c"} for n in (1, 2)]


def test_d1_after_twenty_iterations_the_final_answer_is_forced(either: Ways, serve: Serve) -> None:
    server = serve(obeying(greps, "that is all"))
    tool = Tool()
    with Policy().session("d1") as session:
        result = either(server, session, tools=[GREP], execute=tool)
    assert (len(tool.ran), result.ended, result.code, result.answer) == (20, "forced", LIMIT_CODE, "that is all")
    assert choices(server) == ["absent"] * 20 + ["none"]


def test_d1_on_request_the_limit_raises_and_the_conversation_is_kept(either: Ways, serve: Serve) -> None:
    server = serve(greps)
    messages = [user()]
    with (
        Policy().session("d1") as session,
        pytest.raises(LoopLimitExceeded, match=r"^max tool iterations \(2\) exceeded$"),
    ):
        either(
            server,
            session,
            messages=messages,
            tools=[GREP],
            execute=Tool(),
            max_tool_iterations=2,
            on_limit="raise",
        )
    assert [m["role"] for m in messages] == ["user", *["assistant", "tool"] * 2]


def test_d1_a_loop_without_tools_asks_once(either: Ways, serve: Serve) -> None:
    server = serve([Text("hello")])
    with Policy().session("d1") as session:
        assert either(server, session, tool_choice="auto", temperature=0.5).answer == "hello"
    assert "tools" not in server.requests[0]
    assert "tool_choice" not in server.requests[0]
    assert server.requests[0]["temperature"] == 0.5


# A model that does not answer


def test_a_model_that_ignores_none_has_nothing_run_and_ends_in_a_digest(drive: Ways, serve: Serve) -> None:
    server = serve(greps)
    tool = Tool()
    seen: list[str] = []
    with Policy(guards=[Budget(max_turns=2)]).session("stuck") as session:
        result = drive(server, session, tools=[GREP], execute=tool, on_text=seen.append)
        assert result.answer == session.digest() == "".join(seen)

    assert (len(tool.ran), result.ended, result.code, result.requests) == (2, "digest", "budget.max_turns", 4)
    assert choices(server) == ["absent", "absent", "none", "none"]
    refused = results(result.messages)[2:]
    assert [(e["status"], e["code"]) for e in refused] == [("limit_reached", "budget.max_turns")] * 2
    assert result.messages[-1] == {"role": "assistant", "content": result.answer}
    assert server.requests[-1]["messages"] == result.messages[:-3]


def test_a_model_that_ignores_none_once_still_gets_to_answer(either: Ways, serve: Serve) -> None:
    server = serve([Calls(grep(1)), Calls(grep(2)), Text("sorry, here it is")])
    tool = Tool()
    with Policy(guards=[Budget(max_calls=1)]).session("stuck") as session:
        result = either(server, session, tools=[GREP], execute=tool)
    assert (result.ended, result.answer, len(tool.ran)) == ("forced", "sorry, here it is", 1)


def test_beyond_the_loop_s_own_limit_the_model_reads_why_nothing_was_run(either: Ways, serve: Serve) -> None:
    server = serve(greps)
    tool = Tool()
    with Policy().session("stuck") as session:
        result = either(server, session, tools=[GREP], execute=tool, max_tool_iterations=3)
        assert session.progress["calls_used"] == 3
    assert (result.ended, result.code, len(tool.ran)) == ("digest", LIMIT_CODE, 3)
    hint = f"No more turns with tool calls (`{LIMIT_CODE}`). Write the final answer from what you have."
    # The last that ran says so already.
    told = [each for each in results(result.messages)[:4] if each["status"] == "success"]
    assert [each.get("limit_message") for each in told] == [None, None, FORCED]
    assert (told[-1]["code"], told[-1]["next_action_hint"], told[-1]["limit_reached"]) == (LIMIT_CODE, hint, True)
    assert results(result.messages)[-1] == {
        "status": "limit_reached",
        "code": LIMIT_CODE,
        "retryable": False,
        "next_action_hint": hint,
        "limit_reached": True,
        "limit_message": FORCED,
    }


@pytest.mark.parametrize("nothing", [Text(""), Text(" \n"), Text("", finish_reason="content_filter")])
def test_a_model_that_answers_nothing_is_asked_once_more_without_tools(
    drive: Ways, serve: Serve, nothing: Reply
) -> None:
    server = serve([Calls(grep(1)), nothing, Text("done")])
    with Policy().session("silent") as session:
        result = drive(server, session, tools=[GREP], execute=Tool())
    assert (result.answer, result.ended, result.code) == ("done", "forced", SILENT_CODE)
    assert choices(server) == ["absent", "absent", "none"]
    assert [m["role"] for m in result.messages] == ["user", "assistant", "tool", "assistant"]


def test_a_model_that_never_answers_ends_in_a_digest(either: Ways, serve: Serve) -> None:
    server = serve(always(Text("")))
    with Policy().session("silent") as session:
        result = either(server, session, tools=[GREP], execute=Tool())
        assert result.answer == session.digest()
    assert (result.ended, result.requests) == ("digest", 2)
    assert result.messages == [user(), {"role": "assistant", "content": result.answer}]


def test_a_text_cut_short_is_an_answer_that_says_so(either: Ways, serve: Serve) -> None:
    server = serve([Text("I found thr", finish_reason="length")])
    with Policy().session("cut") as session:
        result = either(server, session)
    assert (result.answer, result.ended, result.finish_reason) == ("I found thr", "answered", "length")


def test_a_refusal_is_an_answer(drive: Ways, serve: Serve) -> None:
    server = serve([Text(refusal="I cannot help with that"), Text("ok")])
    with Policy().session("refusal") as session:
        first = drive(server, session)
        assert first.answer == "I cannot help with that"
        assert drive(server, session, messages=[*first.messages, user("well")]).answer == "ok"


# Calls


@pytest.mark.parametrize(("guards", "status"), [([Validation()], "validation_error"), ([], "error")])
@pytest.mark.parametrize(
    ("arguments", "finish"),
    [
        ('{"pattern": "er', "length"),
        ('{"pattern": "er', "tool_calls"),
        ("", "length"),
        ("error in main.c", "tool_calls"),
        ("[1]", "tool_calls"),
    ],
)
def test_broken_arguments_are_never_run(
    serve: Serve, arguments: str, finish: str, guards: list[Any], status: str
) -> None:
    reply = Calls(grep(1), call("grep", arguments), finish_reason=finish)
    server = serve([reply, Text("done")])
    tool = Tool()
    tools = [{"type": "function", "function": {"name": "grep"}}] if status == "error" else [GREP]
    with Policy(guards=guards).session("broken") as session:
        result = WAYS[1](server, session, tools=tools, execute=tool)
    assert tool.ran == [{"pattern": "error", "path": "1.c"}]
    assert [e["status"] for e in results(result.messages)] == ["success", status]
    assert server.requests[1]["messages"][1]["tool_calls"][1]["function"]["arguments"] == arguments


def test_a7_arguments_that_do_not_fit_the_listed_schema_are_refused_and_can_be_corrected(
    either: Ways, serve: Serve
) -> None:
    server = serve([Calls(call("grep", {"pattern": 7})), Calls(grep(1)), Text("done")])
    tool = Tool()
    with Policy(guards=[Validation()]).session("a7") as session:
        result = either(server, session, tools=[GREP], execute=tool)
    refused, ran = results(result.messages)
    assert {e["field"] for e in refused["errors"]} == {"pattern", "path"}
    assert refused["retryable_after_correction"] is True
    assert ran["status"] == "success"
    assert len(tool.ran) == 1


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


def test_five_denials_of_one_turn_do_not_end_a_session(either: Ways, serve: Serve) -> None:
    again = Calls(*(grep(0) for _ in range(5)))
    server = serve([Calls(grep(0)), again, again, Text("done")])
    tool = Tool()
    with Policy(guards=[Duplicates(window=5), Denials(max_turns_in_a_row=3)]).session("five") as session:
        result = either(server, session, tools=[GREP], execute=tool)
    assert (result.ended, len(tool.ran)) == ("answered", 1)


def test_a6_a_repeated_call_is_blocked_and_given_the_earlier_result(either: Ways, serve: Serve) -> None:
    server = serve([Calls(grep(1)), Calls(grep(1)), Text("done")])
    tool = Tool()
    with Policy(guards=[Duplicates(window=5)]).session("a6") as session:
        result = either(server, session, tools=[GREP], execute=tool)
    blocked = results(result.messages)[1]
    assert (blocked["status"], blocked["previous_result"]) == ("duplicate_call_blocked", {"output": "hit 1"})
    assert len(tool.ran) == 1


def test_the_denial_cap_ends_a_model_that_repeats_a_refused_call(either: Ways, serve: Serve) -> None:
    server = serve(obeying(always(Calls(grep(0))), "I give up"))
    tool = Tool()
    with Policy(guards=[Duplicates(window=5), Denials(max_turns_in_a_row=3)]).session("stuck") as session:
        result = either(server, session, tools=[GREP], execute=tool)
    assert (result.ended, result.requests, len(tool.ran)) == ("forced", 6, 1)


@pytest.mark.parametrize("parallel", [1, 4])
def test_ids_that_a_server_reuses_are_no_obstacle(either: Ways, serve: Serve, parallel: int) -> None:
    turn = Calls(grep(1, "call_0"), grep(2, "call_0"))
    server = serve([Calls(grep(0, "call_0")), turn, Calls(grep(0, "call_0")), Text("done")])
    tool = Tool()
    with Policy(guards=[Budget(max_calls=10)]).session("ids") as session:
        result = either(server, session, tools=[GREP], execute=tool, parallel=parallel)
    assert sorted(a["path"] for a in tool.ran) == ["0.c", "0.c", "1.c", "2.c"]
    assert [e["status"] for e in results(result.messages)] == ["success"] * 4


def test_threads_run_the_calls_of_one_turn_together_in_the_caller_s_context(serve: Serve) -> None:
    together = threading.Barrier(4, timeout=5)

    def execute(tool: str, arguments: Any) -> Any:
        together.wait()
        return arguments["path"]

    server = serve([Calls(*(grep(n) for n in range(4))), Text("done")])
    with Policy().session("threads") as session:
        result = WAYS[0](server, session, tools=[GREP], execute=execute, parallel=4)
    assert [e["result"] for e in results(result.messages)] == ["0.c", "1.c", "2.c", "3.c"]


@pytest.mark.parametrize(("parallel", "most"), [(None, 6), (2, 2)])
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


async def asearch(city: str) -> str:
    """
    Search, asynchronously.
    """
    await asyncio.sleep(0)
    return city


def test_functions_are_listed_checked_and_run(drive: Ways, serve: Serve) -> None:
    server = serve(
        [Calls(call("search_hotels", {"city": "Kyoto", "guests": "3"})), Calls(call("search_hotels", {})), Text("done")]
    )
    with Policy(guards=[Validation()]).session("functions") as session:
        result = drive(server, session, tools=[search_hotels])

    [listed] = server.requests[0]["tools"]
    assert listed["type"] == "function"
    assert listed["function"]["name"] == "search_hotels"
    assert listed["function"]["description"].startswith("Search hotels.")
    assert listed["function"]["parameters"]["required"] == ["city"]
    found, refused = results(result.messages)
    assert found["results"] == ["Kyoto for 4"]
    assert (refused["status"], refused["errors"][0]["field"]) == ("validation_error", "city")


def test_functions_and_listed_tools_stand_side_by_side(either: Ways, serve: Serve) -> None:
    server = serve([Calls(grep(1), call("search_hotels", {"city": "Nara"}), call("fly", {})), Text("done")])
    tool = Tool()
    with Policy().session("mixed") as session:
        result = either(server, session, tools=[GREP, search_hotels], execute=tool)
    assert len(tool.ran) == 1
    assert results(result.messages)[1]["results"] == ["Nara for 3"]


@pytest.mark.parametrize("guards", [[], [ToolFilter()], [ToolFilter(unknown="allow")]])
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


def test_a_tool_that_nobody_offered_is_charged_nothing(either: Ways, serve: Serve) -> None:
    server = serve([Calls(call("fly", {})), Text("done")])
    with Policy(guards=[ToolFilter()]).session("made-up") as session:
        either(server, session, tools=[search_hotels])
        assert session.progress["calls_used"] == 0


def test_each_loop_of_a_session_checks_its_own_tools(either: Ways, serve: Serve) -> None:
    def first() -> Any:
        def look(query: str) -> Any:
            return ["first", query]

        return look

    def look(pattern: str, n: int = 1) -> Any:
        return ["second", pattern, n]

    server = serve([Calls(call("look", {"query": "x"})), Text("a"), Calls(call("look", {"pattern": "x"})), Text("b")])
    with Policy(guards=[Validation()]).session("two") as session:
        [one] = results(either(server, session, tools=[first()]).messages)
        [two] = results(either(server, session, tools=[look]).messages)
    assert (one["results"], two["results"]) == (["first", "x"], ["second", "x", 1])


def test_the_policy_s_parameters_stand_above_those_of_what_is_offered(either: Ways, serve: Serve) -> None:
    def pay(amount: int) -> int:
        return amount

    small = {"type": "object", "properties": {"amount": {"type": "integer", "maximum": 10}}}
    server = serve([Calls(call("pay", {"amount": 50}), call("pay", {"amount": 5})), Text("done")])
    with Policy(guards=[Validation()], tools=[Declared(name="pay", parameters=small)]).session("x") as session:
        refused, paid = results(either(server, session, tools=[pay]).messages)
    assert (refused["status"], paid["result"]) == ("validation_error", 5)


def test_a_declared_tool_is_listed_and_its_declarations_hold(either: Ways, serve: Serve) -> None:
    server = serve([Calls(call("search_hotels", {"city": "Kyoto"}), call("search_hotels", {})), Text("done")])
    tool = Tool()
    policy = Policy(guards=[Validation(), Budget(max_cost_usd=1)], prices={"m": {"input_mtok": 0}})
    with policy.session("declared") as session:
        declared = Declared.of(search_hotels, cost_usd=0.25)
        found, refused = results(either(server, session, model="m", tools=[declared], execute=tool).messages)
        assert session.cost_usd == 0.25
        with pytest.raises(TypeError, match="`execute` is needed to run `search_hotels`"):
            either(server, session, tools=[declared])
        with pytest.raises(PolicyError, match="cost_usd"):
            either(server, session, tools=[Declared(name="x", cost_usd="much")], execute=tool)  # type: ignore[arg-type]
    assert server.requests[0]["tools"] == [declared.openai()]
    assert (found["status"], refused["status"], tool.ran) == (
        "success",
        "validation_error",
        [{"city": "Kyoto", "guests": 2}],
    )


class Finder:
    def __call__(self, city: str) -> str:
        """
        Find a city.
        """
        return city


class AsyncFinder:
    async def __call__(self, city: str) -> str:
        return city


def test_partials_and_callable_objects_are_tools(either: Ways, serve: Serve) -> None:
    server = serve([Calls(call("search_hotels", {"city": "Kobe"}), call("Finder", {"city": "Nara"})), Text("done")])
    with Policy().session("callables") as session:
        said = results(either(server, session, tools=[functools.partial(search_hotels, guests=3), Finder()]).messages)
    assert [e.get("results", e.get("result")) for e in said] == [["Kobe for 4"], "Nara"]
    assert [t["function"]["description"] for t in server.requests[0]["tools"]] == ["Search hotels.", "Find a city."]


def test_a_loop_says_what_it_cannot_offer(serve: Serve) -> None:
    with Policy().session("x") as session:
        for tools, said in (
            ([lambda city: city], "`<lambda>` is no name of a tool"),
            ([search_hotels, search_hotels], "two tools are named `search_hotels`"),
            ([GREP, GREP], "two tools are named `grep`"),
            ([AsyncFinder()], "`AsyncFinder` is asynchronous: use `arun`"),
        ):
            with pytest.raises(TypeError, match=re.escape(said)):
                WAYS[0](serve([]), session, tools=tools, execute=Tool())


def test_asynchronous_functions_run_in_the_asynchronous_loop(serve: Serve) -> None:
    server = serve([Calls(call("asearch", {"city": "Kobe"})), Text("done")])
    with Policy().session("functions") as session:
        [said] = results(WAYS[3](server, session, tools=[asearch]).messages)
        assert said["result"] == "Kobe"
        with pytest.raises(TypeError, match="`asearch` is asynchronous: use `arun`"):
            WAYS[0](server, session, tools=[asearch])


def test_a_listed_tool_needs_an_executor(either: Ways, serve: Serve) -> None:
    with Policy().session("x") as session, pytest.raises(TypeError, match="`execute` is needed to run `grep`"):
        either(serve([]), session, tools=[GREP])


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


def test_on_text_may_be_asynchronous(serve: Serve) -> None:
    seen: list[str] = []

    async def on_text(text: str) -> None:
        await asyncio.sleep(0)
        seen.append(text)

    with Policy().session("text") as session:
        WAYS[3](serve([Text("one two three four")]), session, on_text=on_text)
    assert len(seen) > 1
    assert "".join(seen) == "one two three four"


# Usage


PRICES = {MODEL: {"input_mtok": 1.0, "output_mtok": 10.0}}


def test_usage_is_charged_from_the_response_and_from_the_stream(drive: Ways, serve: Serve) -> None:
    server = serve([Calls(grep(1), usage=Usage(1000, 50)), Text("done", usage=Usage(2000, 100))])
    with Policy(prices=PRICES).session("usage") as session:
        drive(server, session, tools=[GREP], execute=Tool())
        assert session.cost_usd == pytest.approx((3000 + 10 * 150) / 1e6)
        assert session.unpriced == 0
    wants = {"include_usage": True} if drive.stream else None
    assert [body.get("stream_options") for body in server.requests] == [wants, wants]


def test_a_server_that_sends_no_usage_is_fine(drive: Ways, serve: Serve) -> None:
    server = serve([Calls(grep(1), usage=False), Text("done", usage=False)])
    with Policy(prices=PRICES, guards=[Budget(max_turns=5)]).session("usage") as session:
        assert drive(server, session, tools=[GREP], execute=Tool()).ended == "answered"
        assert session.cost_usd == 0


def test_stream_options_of_the_caller_stand(serve: Serve) -> None:
    server = serve([Text("done")])
    with Policy(prices=PRICES).session("usage") as session:
        WAYS[1](server, session, stream_options={"include_usage": False})
        assert session.cost_usd == 0
    assert server.requests[0]["stream_options"] == {"include_usage": False}


def test_a4_a_response_that_spends_the_budget_has_none_of_its_calls_run(drive: Ways, serve: Serve) -> None:
    model = obeying(lambda _body, n: Calls(grep(n), grep(n + 10), usage=Usage(100_000, 10)), "out of money")
    server = serve(model)
    tool = Tool()
    with Policy(prices=PRICES, guards=[Budget(max_cost_usd=0.25)]).session("cost") as session:
        result = drive(server, session, tools=[GREP], execute=tool)
    assert (result.ended, result.code, result.requests) == ("forced", "budget.max_cost_usd", 4)
    assert len(tool.ran) == 4
    assert [e["status"] for e in results(result.messages)[4:]] == ["limit_reached"] * 2


def test_a_model_without_a_price_is_asked_once_for_calls_and_once_for_the_answer(drive: Ways, serve: Serve) -> None:
    asks = obeying(lambda _body, n: Calls(grep(n), usage=Usage(5_000_000, 10)), "no price")
    for on_unpriced, ended, requests in (("deny", "budget.unpriced", 2), ("warn", LIMIT_CODE, 21)):
        settings: Any = {"max_cost_usd": 0.25, "on_unpriced": on_unpriced}
        with Policy(guards=[Budget(**settings)]).session(f"unpriced {on_unpriced}") as session:
            result = drive(serve(asks), session, model="m", tools=[GREP], execute=Tool())
        assert (result.ended, result.code, result.requests) == ("forced", ended, requests)


def test_a_server_that_sends_no_usage_is_asked_once_for_calls_and_once_for_the_answer(
    drive: Ways, serve: Serve
) -> None:
    asks = obeying(lambda _body, n: Calls(grep(n), usage=False), "no usage")
    with Policy(guards=[Budget(max_cost_usd=0.25)]).session("usage") as session:
        result = drive(serve(asks), session, model="gpt-5-mini", tools=[GREP], execute=Tool())
        assert (result.ended, result.code, result.requests) == ("forced", "budget.unpriced", 2)
        assert session.unpriced == 1


def test_a_server_that_sends_no_usage_and_is_free_is_asked_on(drive: Ways, serve: Serve) -> None:
    server = serve([Calls(grep(1), usage=False), Text("done", usage=False)])
    with Policy(guards=[Budget(max_cost_usd=0.25)], prices={"m": {"input_mtok": 0}}).session("free") as session:
        assert drive(server, session, model="m", tools=[GREP], execute=Tool()).ended == "answered"
        assert not session.exhausted


# Errors


def test_an_error_of_the_api_leaves_session_and_conversation_fit_to_go_on(drive: Ways, serve: Serve) -> None:
    server = serve([Calls(grep(1)), Fail(429, {"Retry-After": "1"}), Calls(grep(2)), Text("done")])
    tool = Tool()
    messages = [user()]
    with Policy(guards=[Budget(max_calls=5)]).session("429") as session:
        with pytest.raises(RateLimitError):
            drive(server, session, messages=messages, tools=[GREP], execute=tool)
        assert [m["role"] for m in messages] == ["user", "assistant", "tool"]

        result = drive(server, session, messages=messages, tools=[GREP], execute=tool)
        assert session.progress["calls_used"] == 2
    assert result.answer == "done"
    assert len(tool.ran) == 2


@pytest.mark.parametrize("way", [WAYS[1], WAYS[3]], ids=str)
def test_a_stream_that_breaks_adds_nothing_to_the_conversation(serve: Serve, way: Ways) -> None:
    broken = BrokenStream(Calls(grep(1)), after=3)
    server = serve([broken, broken, Calls(grep(1)), Text("done")])
    tool = Tool()
    messages = [user()]
    with Policy().session("broken") as session:
        with pytest.raises(APIConnectionError):
            way(server, session, messages=messages, tools=[GREP], execute=tool)
        assert (messages, tool.ran) == ([user()], [])
        assert way(server, session, messages=messages, tools=[GREP], execute=tool).answer == "done"


class Stop(BaseException):
    """
    What a tool does not survive.
    """


@pytest.mark.parametrize(("way", "parallel"), [(WAYS[0], 1), (WAYS[1], 1), (WAYS[0], 3), (WAYS[3], 1)], ids=str)
def test_an_interrupted_turn_still_answers_every_call(serve: Serve, way: Ways, parallel: int) -> None:
    server = serve([Calls(grep(1), grep(2), grep(3)), Text("done")])
    messages = [user()]

    def execute(tool: str, arguments: Any) -> Any:
        if arguments["path"] == "2.c":
            raise Stop
        return arguments["path"]

    options: dict[str, Any] = {"tools": [GREP], "execute": execute, "parallel": parallel}
    with Policy().session("interrupted") as session:
        with pytest.raises(Stop):
            way(server, session, messages=messages, **options)
        assert [e["status"] for e in results(messages)][:2] == ["success", "error"]
        assert results(messages)[1]["error_type"] == "cancelled"
        assert way(server, session, messages=[*messages, user("go on")], **options).answer == "done"


def test_a_cancelled_loop_still_answers_every_call(serve: Serve) -> None:
    server = serve([Calls(grep(1), grep(2))])
    messages = [user()]

    async def main() -> None:
        async def execute(tool: str, arguments: Any) -> Any:
            if arguments["path"] == "2.c":
                task.cancel()
                await asyncio.Event().wait()
            return arguments["path"]

        with Policy().session("cancelled") as session:
            async with AsyncOpenAI(base_url=server.base_url, api_key="-") as client:
                task = asyncio.create_task(
                    arun(client, session, model=MODEL, messages=messages, tools=[GREP], execute=execute)
                )
                await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert [e.get("error_type") for e in results(messages)] == [None, "cancelled"]


def test_a_tool_that_fails_is_data_and_the_loop_goes_on(either: Ways, serve: Serve) -> None:
    def execute(tool: str, arguments: Any) -> Any:
        raise FileNotFoundError("no such file")

    server = serve([Calls(grep(1)), Text("done")])
    with Policy().session("d4") as session:
        result = either(server, session, tools=[GREP], execute=execute)
    [said] = results(result.messages)
    assert (said["status"], said["error_type"], result.answer) == ("error", "not_found", "done")


# D11: the log


def test_d11_the_log_tells_the_loop(drive: Ways, serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    def execute(tool: str, arguments: Any) -> Any:
        if arguments["path"] == "2.c":
            raise TimeoutError("too slow")
        return "ok"

    caplog.set_level(logging.INFO, logger="guardrails")
    server = serve([Calls(grep(1)), Calls(grep(2)), Text("done", usage=False)])
    with Policy(prices=PRICES).session("log") as session:
        drive(server, session, tools=[GREP], execute=execute)

    said = [(r.message, vars(r)) for r in caplog.records if r.name == "guardrails"]
    assert [message for message, _ in said] == [
        "executing tool calls",
        "executing tool",
        "executing tool calls",
        "executing tool",
        "tool execution failed",
        "tool loop complete, returning text response",
    ]
    assert [(f["iteration"], f["count"]) for m, f in said if m == "executing tool calls"] == [(1, 1), (2, 1)]
    assert [f["tool"] for m, f in said if m == "executing tool"] == ["grep", "grep"]
    assert [(f["tool"], "too slow" in f["error"]) for m, f in said if m == "tool execution failed"] == [("grep", True)]
    assert said[-1][1]["iterations"] == 2


def test_d11_a_digest_is_a_warning(either: Ways, serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    with Policy().session("log") as session:
        either(serve(always(Text("", usage=False))), session)
    assert [r.message for r in caplog.records] == ["tool loop ended without an answer, returning digest"]


# All four ways are one


def test_all_ways_of_driving_come_to_the_same(serve: Serve) -> None:
    def model(body: Any, n: int) -> Reply:
        return Calls(grep(n % 3), grep(7), call("fly", '{"to": '), text="hm")

    outcomes = []
    for way in WAYS:
        server = serve(model)
        guards = [Validation(), Budget(max_calls=6), Duplicates(window=5), Denials()]
        with Policy(guards=guards).session("same") as session:
            result = way(server, session, tools=[GREP], execute=Tool())
        outcomes.append((result.messages, result.ended, result.code, result.requests, choices(server)))
    assert outcomes[1:] == outcomes[:-1]


def test_d9_control_characters_of_tools_and_models_do_not_enter_the_conversation() -> None:
    script: list[Reply] = [Calls(call("show", {})), Text("bell\x07 and nul\x00, a tab\t stays")]
    with ScriptedOpenAI(script) as server:
        session = Policy([Budget(max_calls=5)], envelope="merged").session("s")
        messages: list[Any] = [{"role": "user", "content": "go"}]
        tools = [{"type": "function", "function": {"name": "show", "parameters": {"type": "object", "properties": {}}}}]
        with OpenAI(base_url=server.base_url, api_key="none") as client:
            result = run(
                client,
                session,
                model="m",
                messages=messages,
                tools=tools,
                execute=lambda *_: "esc\x1b[31m del\x7f\r\nline",
            )
    assert messages[2]["content"] == "esc[31m del\r\nline"
    assert result.answer == messages[3]["content"] == "bell and nul, a tab\t stays"
