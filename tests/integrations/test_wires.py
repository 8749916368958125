"""
What the agent loop does over both wires, sync and async, streamed or not.
"""

import json
import logging
import threading

from typing import Any

import pytest

from guardrails import Budget, Duplicates, Policy, Registry, Tool, ToolFilter
from guardrails.core.values.errors import LoopLimitExceeded
from guardrails.integrations.openai.loop import LIMIT_CODE
from guardrails.testing.scripted_openai import Calls, Reply, Text, Usage, call, obeying
from tests.tables import table


pytestmark = pytest.mark.system


SCHEMA = {"type": "object", "properties": {"pattern": {"type": "string"}, "path": {"type": "string"}}}
LIMIT = "Tool call limit reached (3). Stopping tool loop."


def grep(n: int, id_: str | None = None) -> Any:
    return call("grep", {"pattern": "error", "path": f"{n}.c"}, id=id_)


def greps(body: Any, n: int) -> Reply:
    return Calls(grep(n))


def search(pattern: str, path: str = ".") -> Any:
    """
    Search files.

    Args:
        pattern: what to look for
        path: where
    """
    return {"output": f"hit in {path}", "count": 1}


def registry() -> Registry:
    made = Registry()
    made.register(search, name="grep")
    return made


def choices(server: Any) -> list[Any]:
    return [body.get("tool_choice", "absent") for body in server.requests]


def test_b1_b2_b3_the_limit_is_in_the_last_result_and_the_next_request_has_tools_switched_off(
    way: Any, serve: Any
) -> None:
    server = serve(obeying(greps, "I stopped after 3 calls."))
    seen: list[str] = []
    with Policy([Budget(max_turns=3)], envelope="merged").session("b") as session:
        result = way(server, session, tools=[search_as("grep")], tool_choice="auto", on_text=seen.append)
    contents = way.results(result.messages)
    assert [sorted(content) for content in contents[:2]] == [["count", "output"]] * 2
    assert contents[2] == {"output": "hit in 2.c", "count": 1, "limit_reached": True, "limit_message": LIMIT}
    assert choices(server) == ["auto", "auto", "auto", "none"]
    assert all(body["tools"] == server.requests[0]["tools"] for body in server.requests)
    assert all(body.get("stream", False) is way.stream for body in server.requests)
    assert way.sent(server.requests[-1]) == result.messages[:-1]
    assert "".join(seen) == result.answer == "I stopped after 3 calls."
    assert (result.ended, result.code, result.requests, result.iterations) == ("forced", "budget.max_turns", 4, 3)


def search_as(name: str) -> Any:
    def named(pattern: str, path: str = ".") -> Any:
        return search(pattern, path)

    named.__name__ = name
    return named


@table("forced", ["required", "named", "allowed"])
def test_c1_a_forced_choice_is_sent_once_in_the_wire_s_form_and_its_key_absent_afterwards(
    way: Any, serve: Any, forced: str
) -> None:
    server = serve([Calls(grep(1)), Text("done")])
    one: Any = way.named("grep")
    allowed = {"mode": "required", "tools": [one]}
    given: Any = {
        "required": "required",
        "named": one,
        "allowed": {"type": "allowed_tools", **({"allowed_tools": allowed} if way.chat else allowed)},
    }[forced]
    with Policy().session("c1") as session:
        way(server, session, tools=registry(), tool_choice=given)
    assert choices(server) == [given, "absent"]


def test_c2_a_strategy_decides_turn_by_turn_below_the_none_of_an_exhausted_session(way: Any, serve: Any) -> None:
    asked: list[tuple[int, int]] = []

    def strategy(call_count: int, turn_count: int) -> Any:
        asked.append((call_count, turn_count))
        return way.named("grep") if turn_count < 2 else "required"

    server = serve(obeying(lambda _body, n: Calls(grep(n), grep(n + 10)), "done"))
    with Policy([Budget(max_turns=3)]).session("c2") as session:
        way(server, session, tools=registry(), tool_choice="auto", strategy=strategy)
    assert choices(server) == [way.named("grep"), way.named("grep"), "required", "none"]
    assert asked[:3] == [(0, 0), (2, 1), (4, 2)]


def test_d1_parallel_calls_go_back_with_their_ids_and_text_is_joined(way: Any, serve: Any) -> None:
    server = serve([Calls(grep(1, "a"), grep(2, "b"), text="Let me look."), Text("Two hits, in 1.c and 2.c.")])
    messages = [way.user()]
    seen: list[str] = []
    with Policy().session("d1") as session:
        result = way(server, session, messages=messages, tools=registry(), on_text=seen.append)
    assert (result.answer, result.ended, result.finish_reason) == ("Two hits, in 1.c and 2.c.", "answered", "stop")
    assert way.ids(result.messages) == (["a", "b"], ["a", "b"])
    assert messages is result.messages
    assert way.sent(server.requests[1]) == messages[:-1]
    assert "".join(seen) == "Let me look.Two hits, in 1.c and 2.c."


def test_d1_after_twenty_iterations_the_final_answer_is_forced(some: Any, serve: Any) -> None:
    server = serve(obeying(greps, "that is all"))
    with Policy().session("d1") as session:
        result = some(server, session, tools=registry())
    assert (result.iterations, result.ended, result.code, result.answer) == (20, "forced", LIMIT_CODE, "that is all")
    assert choices(server) == ["absent"] * 20 + ["none"]


def test_d1_on_request_the_limit_raises(way: Any, serve: Any) -> None:
    messages = [way.user()]
    with (
        Policy().session("d1") as session,
        pytest.raises(LoopLimitExceeded, match=r"^max tool iterations \(2\) exceeded$"),
    ):
        way(
            serve(greps),
            session,
            messages=messages,
            tools=registry(),
            max_tool_iterations=2,
            on_limit="raise",
        )
    assert len(way.outputs(messages)) == 2


def test_a_model_that_ignores_none_has_nothing_run_and_ends_in_a_digest(way: Any, serve: Any) -> None:
    server = serve(greps)
    with Policy([Budget(max_turns=2)]).session("stuck") as session:
        result = way(server, session, tools=registry())
        assert result.answer == session.digest()
    assert choices(server) == ["absent", "absent", "none", "none"]
    assert [e["status"] for e in way.results(result.messages)] == ["success"] * 2 + ["limit_reached"] * 2
    assert (result.ended, result.messages[-1]) == ("digest", {"role": "assistant", "content": result.answer})


def test_d2_the_registry_s_tools_are_listed_sorted_in_the_wire_s_form(way: Any, serve: Any) -> None:
    made = registry()
    made.add(Tool(name="fs__read", parameters=SCHEMA), lambda tool, arguments: tool)
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

    script = [
        Calls(call("learn", {"name": "dance"}), call("dance", {})),
        Calls(call("dance", {}), call("forget", {"name": "dance"})),
        Calls(call("dance", {})),
        Text("done"),
    ]
    server = serve(script)
    with Policy(guards).session("d2") as session:
        result = way(server, session, tools=made, parallel=1)
    listed = [[tool.get("name") or tool["function"]["name"] for tool in body["tools"]] for body in server.requests]
    assert listed == [["forget", "learn"], ["dance", "forget", "learn"], ["forget", "learn"], ["forget", "learn"]]
    said = way.results(result.messages)
    assert [e.get("result", e.get("error_type")) for e in said] == [
        "learned",
        "tool_missing",
        "I am dance",
        "True",
        "tool_missing",
    ]


def test_a6_a_repeated_call_is_blocked_and_given_the_earlier_result(some: Any, serve: Any) -> None:
    server = serve([Calls(grep(1)), Calls(grep(1)), Text("done")])
    with Policy([Duplicates(window=5)]).session("a6") as session:
        blocked = some.results(some(server, session, tools=registry()).messages)[1]
    assert (blocked["status"], blocked["previous_result"]["output"]) == ("duplicate_call_blocked", "hit in 1.c")


def test_usage_is_charged_from_the_response_and_from_the_stream(way: Any, serve: Any) -> None:
    server = serve([Calls(grep(1), usage=Usage(1000, 50, cached=500)), Text("done", usage=Usage(2000, 100))])
    prices = {"m": {"input_mtok": 1.0, "output_mtok": 10.0, "cache_read_mtok": 0.1}}
    with Policy(prices=prices).session("usage") as session:
        way(server, session, tools=registry())
        assert session.ledger.cost_usd == pytest.approx((2500 + 0.1 * 500 + 10 * 150) / 1e6)
        assert session.ledger.unpriced == 0


def test_d12_a_call_beyond_its_timeout_is_an_error_and_the_loop_goes_on(way: Any, serve: Any) -> None:
    made, released = Registry(), threading.Event()

    @made.register(timeout=0.05)
    def hang() -> bool:
        return released.wait(30)

    server = serve([Calls(call("hang", {})), Text("it takes too long")])
    with Policy().session("d12") as session:
        result = way(server, session, tools=made)
    released.set()
    [said] = way.results(result.messages)
    assert (said["status"], said["error_type"], result.answer) == ("error", "timeout", "it takes too long")


def test_d11_the_log_tells_the_loop(way: Any, serve: Any, caplog: pytest.LogCaptureFixture) -> None:
    def look(path: str) -> str:
        if path == "2.c":
            raise FileNotFoundError("no such file")
        return "ok"

    caplog.set_level(logging.INFO, logger="guardrails")
    script: list[Reply] = [Calls(*(call("look", {"path": f"{n}.c"}) for n in (k, k + 5))) for k in (1, 2)]
    with Policy(prices={"m": {"input_mtok": 1.0}}).session("log") as session:
        way(serve([*script, Text("done")]), session, tools=[look], parallel=1)
    said = [(r.message, vars(r)) for r in caplog.records if r.name == "guardrails"]
    assert [message for message, _ in said] == [
        "executing tool calls",
        "executing tool",
        "executing tool",
        "executing tool calls",
        "executing tool",
        "tool execution failed",
        "executing tool",
        "tool loop complete, returning text response",
    ]
    assert [(f["iteration"], f["count"]) for m, f in said if m == "executing tool calls"] == [(1, 2), (2, 2)]
    assert {f["tool"] for m, f in said if m == "executing tool"} == {"look"}
    assert [(f["tool"], f["error"]) for m, f in said if m == "tool execution failed"] == [("look", "no such file")]
    assert said[-1][1]["iterations"] == 2
    assert {f["session"] for _, f in said} == {"log"}


def test_d9_neither_what_goes_out_nor_arguments_have_control_characters(way: Any, serve: Any) -> None:
    odd = "a\x00b\x1b[31m\x7fc\n\r\t\u0085\xe9"
    clean = "ab[31mc\n\r\t\u0085\xe9"
    got: list[str] = []

    def look(path: str) -> Any:
        got.append(path)
        return {"text": path, "list": [path]}

    messages = [{"role": "system", "content": odd}, {"role": "user", "content": odd}]
    server = serve([Calls(call("look", {"path": odd})), Text(odd)])
    with Policy().session("d9") as session:
        told = {} if way.chat else {"instructions": odd}
        result = way(server, session, tools=[look], messages=messages, **told)
    assert got == [clean]
    first, last = server.requests
    assert first.get("instructions", clean) == clean
    assert [one["content"] for one in way.sent(first)] == [clean, clean]
    [read] = way.results(way.sent(last))
    assert read["result"] == {"text": clean, "list": [clean]}
    [asked] = [one for one in result.messages if one.get("tool_calls") or one.get("type") == "function_call"]
    arguments = asked["tool_calls"][0]["function"]["arguments"] if way.chat else asked["arguments"]
    assert json.loads(arguments) == {"path": clean}
    assert result.answer == clean
    assert messages[0]["content"] == odd
