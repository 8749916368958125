"""
What the agent loop does over both wires, sync and async, streamed or not.
"""

import asyncio
import json
import logging
import threading

from typing import Any

import pytest

from openai import omit

from guardrails import Budget, Duplicates, Policy, Registry, Tool, ToolFilter
from guardrails.core.values.errors import LoopLimitExceeded
from guardrails.integrations.openai.loop import LIMIT_CODE
from guardrails.session.final_answer import SILENT_CODE
from guardrails.testing.scripted_openai import Calls, Reply, Text, Usage, call, obeying
from tests.integrations.conftest import WAYS
from tests.tables import table


pytestmark = pytest.mark.system


LIMIT = "Tool call limit reached (3). Stopping tool loop."
SOURCES = {f"{n}.c": f'{{"output": "hit in {n}.c", "count": 1}}' for n in range(20)}
PRICES = {"m": {"input_mtok": 1.0, "output_mtok": 10.0, "cache_read_mtok": 0.1}}


def grep(n: int, id_: str | None = None) -> Any:
    return call("grep", {"path": f"{n}.c"}, id=id_)


def greps(body: Any, n: int) -> Reply:
    return Calls(grep(n, f"c{n}"))


class Grep:
    """
    A registry with the tool `grep`, and where it looked.
    """

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.tools = Registry()
        self.tools.register(self.search, name="grep")

    def search(self, path: str) -> str:
        """
        Search a file.
        """
        self.ran.append(path)
        return SOURCES[path]


def choices(server: Any) -> list[Any]:
    return [body.get("tool_choice", "absent") for body in server.requests]


# B: the limit


def test_b1_b2_b3_a5_the_limit_is_in_the_last_result_and_the_next_request_has_tools_switched_off(
    way: Any, serve: Any
) -> None:
    server, seen = serve(obeying(greps, "I stopped after 3 calls.")), list[str]()
    with Policy([Budget(max_turns=3)], envelope="merged").session("b") as session:
        result = way(server, session, tools=Grep().tools, tool_choice="auto", on_text=seen.append)
    # The text of each result is kept to the letter, and the limit stands at its end.
    contents = list(SOURCES.values())[:3]
    contents[2] = contents[2][:-1] + f', "limit_reached": true, "limit_message": "{LIMIT}"}}'
    assert way.outputs(result.messages) == contents
    assert choices(server) == ["auto", "auto", "auto", "none"]
    assert all(body["tools"] == server.requests[0]["tools"] for body in server.requests)
    assert all(body.get("stream", False) is way.stream for body in server.requests)
    assert [len(way.sent(body)) for body in server.requests] == [1, 3, 5, 7]
    assert way.sent(server.requests[-1]) == result.messages[:-1]
    if way.chat:
        function = {"name": "grep", "arguments": '{"path": "0.c"}'}
        assert result.messages[:3] == [
            way.user(),
            {"role": "assistant", "tool_calls": [{"id": "c0", "type": "function", "function": function}]},
            {"role": "tool", "tool_call_id": "c0", "content": contents[0]},
        ]
    assert "".join(seen) == result.answer == "I stopped after 3 calls."
    assert (result.ended, result.code, result.requests, result.iterations) == ("forced", "budget.max_turns", 4, 3)


def test_a_model_that_ignores_none_has_nothing_run_and_ends_in_a_digest(way: Any, serve: Any) -> None:
    server = serve(greps)
    with Policy([Budget(max_turns=2)]).session("stuck") as session:
        result = way(server, session, tools=Grep().tools)
        assert result.answer == session.digest()
    assert choices(server) == ["absent", "absent", "none", "none"]
    assert [e["status"] for e in way.results(result.messages)] == ["success"] * 2 + ["limit_reached"] * 2
    assert (result.ended, result.messages[-1]) == ("digest", {"role": "assistant", "content": result.answer})


@table("nothing", [Text(""), Text(" \n"), Text("", finish_reason="content_filter")])
def test_a_model_that_answers_nothing_is_asked_once_more_without_tools(way: Any, serve: Any, nothing: Reply) -> None:
    server = serve([Calls(grep(1)), nothing, Text("done")])
    with Policy().session("silent") as session:
        result = way(server, session, tools=Grep().tools)
    assert (result.answer, result.ended, result.code) == ("done", "forced", SILENT_CODE)
    assert choices(server) == ["absent", "absent", "none"]


def test_a4_a_response_that_spends_the_budget_has_none_of_its_calls_run(way: Any, serve: Any) -> None:
    tool = Grep()

    def spends(_body: Any, n: int) -> Calls:
        return Calls(grep(n), grep(n + 10), usage=Usage(10_000 if len(tool.ran) < 4 else 300_000, 10))

    with Policy([Budget(max_cost_usd=0.25)], prices=PRICES).session("cost") as session:
        result = way(serve(obeying(spends, "out of money")), session, tools=tool.tools)
    assert (result.ended, result.code, result.requests) == ("forced", "budget.max_cost_usd", 4)
    assert len(tool.ran) == 4
    assert [e["status"] for e in way.results(result.messages)[4:]] == ["limit_reached"] * 2


def test_usage_is_charged_from_the_response_and_from_the_stream(way: Any, serve: Any) -> None:
    server = serve([Calls(grep(1), usage=Usage(1000, 50, cached=500)), Text("done", usage=Usage(2000, 100))])
    with Policy(prices=PRICES).session("usage") as session:
        way(server, session, tools=Grep().tools)
        assert session.ledger.cost_usd == pytest.approx((2500 + 0.1 * 500 + 10 * 150) / 1e6)
        assert session.ledger.unpriced == 0


# C: the tool choice


@table("choice", ["required", "named", "allowed", "auto", "none", None, omit])
def test_c1_a_forced_choice_is_sent_once_in_the_wire_s_form_and_a_free_one_stays(
    way: Any, serve: Any, choice: Any
) -> None:
    one: Any = way.named("grep")
    allowed = {"mode": "required", "tools": [one]}
    forced: dict[Any, Any] = {
        "required": "required",
        "named": one,
        "allowed": {"type": "allowed_tools", **({"allowed_tools": allowed} if way.chat else allowed)},
    }
    server, given = serve([Calls(grep(1)), Text("done")]), forced.get(choice, choice)
    with Policy().session("c1") as session:
        way(server, session, tools=Grep().tools, tool_choice=given)
    sent = "absent" if choice in (None, omit) else given
    assert choices(server) == [sent, "absent" if choice in forced else sent]


def test_c2_a_strategy_decides_turn_by_turn_below_the_none_of_an_exhausted_session(way: Any, serve: Any) -> None:
    asked: list[tuple[int, int]] = []

    def strategy(call_count: int, turn_count: int) -> Any:
        asked.append((call_count, turn_count))
        return way.named("grep") if turn_count < 2 else "required"

    server = serve(obeying(lambda _body, n: Calls(grep(n), grep(n + 10)), "done"))
    with Policy([Budget(max_turns=3)]).session("c2") as session:
        way(server, session, tools=Grep().tools, tool_choice="auto", strategy=strategy)
    assert choices(server) == [way.named("grep"), way.named("grep"), "required", "none"]
    assert asked[:3] == [(0, 0), (2, 1), (4, 2)]


# D1: the loop


def test_d1_parallel_calls_go_back_with_their_ids_and_text_is_joined(way: Any, serve: Any) -> None:
    server = serve([Calls(grep(1, "a"), grep(2, "b"), text="Let me look."), Text("Two hits, in 1.c and 2.c.")])
    messages, seen = [way.user()], list[str]()
    with Policy().session("d1") as session:
        result = way(server, session, messages=messages, tools=Grep().tools, on_text=seen.append)
    assert (result.answer, result.ended, result.finish_reason) == ("Two hits, in 1.c and 2.c.", "answered", "stop")
    assert way.ids(result.messages) == (["a", "b"], ["a", "b"])
    assert messages is result.messages
    assert way.sent(server.requests[1]) == messages[:-1]
    assert "".join(seen) == "Let me look.Two hits, in 1.c and 2.c."


def test_d1_after_twenty_iterations_the_final_answer_is_forced(some: Any, serve: Any) -> None:
    server = serve(obeying(greps, "that is all"))
    with Policy().session("d1") as session:
        result = some(server, session, tools=Grep().tools)
    assert (result.iterations, result.ended, result.code, result.answer) == (20, "forced", LIMIT_CODE, "that is all")
    assert choices(server) == ["absent"] * 20 + ["none"]


def test_d1_on_request_the_limit_raises(way: Any, serve: Any) -> None:
    messages, server = [way.user()], serve(greps)
    options = {"tools": Grep().tools, "max_tool_iterations": 2, "on_limit": "raise"}
    said = r"^max tool iterations \(2\) exceeded$"
    with Policy().session("d1") as session, pytest.raises(LoopLimitExceeded, match=said):
        way(server, session, messages=messages, **options)
    assert len(way.outputs(messages)) == 2


def test_parallel_calls_each_get_their_result_denied_ones_too(way: Any, serve: Any) -> None:
    server, tool = serve([Calls(*(grep(n, f"c{n}") for n in range(5))), Text("done")]), Grep()
    with Policy([Budget(max_calls=3)]).session("five") as session:
        result = way(server, session, tools=tool.tools)
    assert way.ids(result.messages)[1] == [f"c{n}" for n in range(5)]
    envelopes = way.results(result.messages)
    assert [e.get("status") for e in envelopes] == ["success"] * 3 + ["limit_reached"] * 2
    assert [e.get("limit_message") for e in envelopes] == [None, None, LIMIT, LIMIT, LIMIT]
    assert len(tool.ran) == 3
    assert (result.ended, result.code) == ("forced", "budget.max_calls")


@table(("parallel", "most"), [(None, 6), (2, 2)])
def test_tasks_run_the_calls_of_one_turn_together(serve: Any, parallel: int | None, most: int) -> None:
    now, peak = 0, 0

    async def look(n: int) -> int:
        nonlocal now, peak
        now += 1
        peak = max(peak, now)
        await asyncio.sleep(0)
        now -= 1
        return n

    server = serve([Calls(*(call("look", {"n": n}) for n in range(6))), Text("done")])
    with Policy().session("tasks") as session:
        result = WAYS[2](server, session, tools=[look], parallel=parallel)
    assert [e["result"] for e in WAYS[2].results(result.messages)] == list(range(6))
    assert peak == most


def test_a_reply_is_kept_where_its_listener_fails(way: Any, serve: Any) -> None:
    def listen(text: str) -> None:
        raise ValueError("listener")

    async def alisten(text: str) -> None:
        listen(text)

    server, messages, tool = serve([Calls(grep(1, "a"), text="Let me look."), Text("done")]), [way.user()], Grep()
    with Policy().session("listener") as session:
        for on_text in (listen, alisten if way.asynchronous else listen):
            with pytest.raises(ValueError, match="listener"):
                way(server, session, messages=messages, tools=tool.tools, on_text=on_text)
    assert way.results(messages)[0]["error_type"] == "cancelled"
    assert (messages[-1]["content"], tool.ran) == ("done", []) if way.chat else tool.ran == []


class Stop(BaseException):
    """
    What a tool does not survive.
    """


def test_an_interrupted_turn_still_answers_every_call(some: Any, serve: Any) -> None:
    def look(n: int) -> int:
        if n == 2:
            raise Stop
        return n

    messages = [some.user()]
    server = serve([Calls(*(call("look", {"n": n}) for n in (1, 2, 3))), Text("done")])
    with Policy().session("interrupted") as session:
        with pytest.raises(Stop):
            some(server, session, messages=messages, tools=[look], parallel=1)
        assert [e.get("error_type") for e in some.results(messages)][:2] == [None, "cancelled"]
        assert some(server, session, messages=[*messages, some.user("go on")], tools=[look]).answer == "done"


def test_stream_options_of_the_caller_stand(serve: Any) -> None:
    server = serve([Text("done")])
    with Policy(prices=PRICES).session("usage") as session:
        WAYS[1](server, session, stream_options={"include_usage": False})
        assert session.ledger.cost_usd == 0
    assert server.requests[0]["stream_options"] == {"include_usage": False}


# D2: the tools


def test_d2_the_registry_s_tools_are_listed_sorted_in_the_wire_s_form(way: Any, serve: Any) -> None:
    made = Grep().tools
    made.add(Tool(name="fs__read", parameters={"type": "object"}), lambda tool, arguments: tool)
    server = serve([Text("done")])
    with Policy().session("d2") as session:
        way(server, session, tools=made)
    assert server.requests[0]["tools"] == made.schemas("chat" if way.chat else "responses")
    assert "strict" not in json.dumps(made.schemas("chat"))


@table("guards", [[ToolFilter()], []])
def test_d2_what_is_registered_while_the_loop_runs_is_there_at_the_next_request(
    way: Any, serve: Any, guards: list[Any]
) -> None:
    made = Registry()

    @made.register
    def learn(name: str) -> str:
        made.register(lambda: f"I am {name}", name=name)
        return "learned"

    @made.register
    def forget(name: str) -> str:
        return str(made.remove(name))

    dance, named = call("dance", {}), {"name": "dance"}
    script = [Calls(call("learn", named), dance), Calls(dance, call("forget", named)), Calls(dance), Text("done")]
    server = serve(script)
    with Policy(guards).session("d2") as session:
        result = way(server, session, tools=made, parallel=1)
    listed = [[tool.get("name") or tool["function"]["name"] for tool in body["tools"]] for body in server.requests]
    assert listed == [["forget", "learn"], ["dance", "forget", "learn"], ["forget", "learn"], ["forget", "learn"]]
    said = [e.get("result", e.get("error_type")) for e in way.results(result.messages)]
    assert said == ["learned", "tool_missing", "I am dance", "True", "tool_missing"]


@table("guards", [[], [ToolFilter()], [ToolFilter(unknown="allow")]])
def test_a_tool_that_nobody_offered_is_refused_and_never_run(some: Any, serve: Any, guards: list[Any]) -> None:
    server = serve([Calls(call("greb", {}), call("delete_everything", {"path": "/"})), Text("done")])
    with Policy(guards, tools=[Tool(name="delete_everything")]).session("made-up") as session:
        near, far = some.results(some(server, session, tools=Grep().tools).messages)
        assert session.call("delete_everything", {}, lambda *_: "ran").ok
    assert {(e["status"], e["code"], e["error_type"]) for e in (near, far)} == {
        ("denied", "tool_filter.unknown", "tool_missing")
    }
    assert near["next_action_hint"] == "Did you mean `grep`?"
    assert far["next_action_hint"] == "The tools are: `grep`."


def test_a6_a_repeated_call_is_blocked_and_given_the_earlier_result(some: Any, serve: Any) -> None:
    server = serve([Calls(grep(1)), Calls(grep(1)), Text("done")])
    with Policy([Duplicates(window=5)]).session("a6") as session:
        blocked = some.results(some(server, session, tools=Grep().tools).messages)[1]
    assert (blocked["status"], blocked["previous_result"]) == ("duplicate_call_blocked", SOURCES["1.c"])


def test_d12_a_call_beyond_its_timeout_is_an_error_and_the_loop_goes_on(way: Any, serve: Any) -> None:
    made, released = Registry(), threading.Event()

    @made.register(timeout=0.05)
    def hang() -> bool:
        return released.wait(30)

    with Policy().session("d12") as session:
        result = way(serve([Calls(call("hang", {})), Text("it takes too long")]), session, tools=made)
    released.set()
    [said] = way.results(result.messages)
    assert (said["status"], said["error_type"], result.answer) == ("error", "timeout", "it takes too long")


# D9, D11


def test_d11_the_log_tells_the_loop(some: Any, serve: Any, caplog: pytest.LogCaptureFixture) -> None:
    def look(n: int) -> str:
        if n == 2:
            raise FileNotFoundError("no such file")
        return "ok"

    caplog.set_level(logging.INFO, logger="guardrails")
    script: list[Reply] = [Calls(*(call("look", {"n": n}) for n in turn)) for turn in ((1, 6), (2, 7))]
    with Policy(prices=PRICES).session("log") as session:
        some(serve([*script, Text("done")]), session, tools=[look], parallel=1)
    said = [(r.message, vars(r)) for r in caplog.records if r.name == "guardrails"]
    turn = ["executing tool calls", "executing tool", "executing tool"]
    end = "tool loop complete, returning text response"
    assert [message for message, _ in said] == [*turn, *turn[:2], "tool execution failed", turn[2], end]
    assert [(f["iteration"], f["count"]) for m, f in said if m == "executing tool calls"] == [(1, 2), (2, 2)]
    assert {f["tool"] for m, f in said if m == "executing tool"} == {"look"}
    assert [(f["tool"], f["error"]) for m, f in said if m == "tool execution failed"] == [("look", "no such file")]
    assert said[-1][1]["iterations"] == 2
    assert {f["session"] for _, f in said} == {"log"}


def test_d9_neither_what_goes_out_nor_arguments_have_control_characters(way: Any, serve: Any) -> None:
    odd, clean = "a\x00b\x1b[31m\x7fc\n\r\t\u0085\xe9", "ab[31mc\n\r\t\u0085\xe9"
    got: list[str] = []

    def look(path: str) -> Any:
        got.append(path)
        return {"text": path, "list": [path]}

    messages = [{"role": "system", "content": odd}, {"role": "user", "content": odd}]
    server = serve([Calls(call("look", {"path": odd})), Text(odd)])
    with Policy().session("d9") as session:
        told = {} if way.chat else {"instructions": odd}
        result = way(server, session, tools=[look], messages=messages, **told)
    assert (got, result.answer, messages[0]["content"]) == ([clean], clean, odd)
    first, last = server.requests
    assert first.get("instructions", clean) == clean
    assert [one["content"] for one in way.sent(first)] == [clean, clean]
    [read] = way.results(way.sent(last))
    assert read["result"] == {"text": clean, "list": [clean]}
    [asked] = [one for one in result.messages if one.get("tool_calls") or one.get("type") == "function_call"]
    arguments = asked["tool_calls"][0]["function"]["arguments"] if way.chat else asked["arguments"]
    assert json.loads(arguments) == {"path": clean}
