"""
The agent loop over both wires, sync and async, streamed or not: its limits, its choices, its tools, its conversation.
"""

import asyncio
import json

from collections import Counter
from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st
from openai import omit

from guardrails import Budget, MemorySink, Policy, Registry, Tool, ToolFilter
from guardrails.core.chain import Rule
from guardrails.integrations.openai.wires import PUT_BACK, ChatCompletions, RequestedCall, Responses, compacted, mend
from guardrails.session.final_answer import SILENT_CODE
from guardrails.testing.scripted_openai import Calls, Reply, Text, Usage, call, obeying
from tests.openai_api import problems
from tests.tables import table

from .conftest import WAYS, Search, answered, calls, envelopes, results, search, user


pytestmark = pytest.mark.system


LIMIT = "Tool call limit reached (3). Stopping tool loop."


def searches(body: Any, n: int) -> Reply:
    return Calls(search(f"{n}.c", f"c{n}"))


def choices(server: Any) -> list[Any]:
    return [body.get("tool_choice", "absent") for body in server.requests]


# B: the limit


def test_b1_b2_b3_a5_the_limit_is_in_the_last_result_and_the_next_request_has_tools_switched_off(
    way: Any, serve: Any
) -> None:
    server, seen = serve(obeying(searches, "I stopped after 3 calls.")), list[str]()
    hit = '{"output": "hit", "count": 1}'
    session = Policy([Budget(max_turns=3)], envelope="merged").session("b")
    result = way(server, session, tools=Search(hit).tools, tool_choice="auto", on_text=seen.append)
    # The text of each result is kept to the letter, and the limit stands at its end.
    limit = f'{hit[:-1]}, "limit_reached": true, "limit_message": "{LIMIT}"}}'
    assert results(result.messages) == [("c0", hit), ("c1", hit), ("c2", limit)]
    assert choices(server) == ["auto", "auto", "auto", "none"]
    assert all(body["tools"] == server.requests[0]["tools"] for body in server.requests)
    assert all(body.get("stream", False) is way.stream for body in server.requests)
    assert [len(way.sent(body)) for body in server.requests] == [1, 3, 5, 7]
    assert way.sent(server.requests[-1]) == result.messages[:-1]
    if way.chat:
        function = {"name": "search", "arguments": '{"path": "0.c"}'}
        assert result.messages[:3] == [
            user(),
            {"role": "assistant", "tool_calls": [{"id": "c0", "type": "function", "function": function}]},
            {"role": "tool", "tool_call_id": "c0", "content": hit},
        ]
    assert "".join(seen) == result.answer == "I stopped after 3 calls."
    assert (result.ended, result.code, result.requests, result.iterations) == ("forced", "budget.max_turns", 4, 3)


def test_a_model_that_ignores_none_has_nothing_run_and_ends_in_a_digest(way: Any, serve: Any) -> None:
    server, session = serve(searches), Policy([Budget(max_turns=2)]).session("stuck")
    result = way(server, session, tools=Search().tools)
    assert choices(server) == ["absent", "absent", "none", "none"]
    assert [e["status"] for e in envelopes(result.messages)] == ["success"] * 2 + ["limit_reached"] * 2
    assert (result.ended, result.answer) == ("digest", session.digest())
    assert result.messages[-1] == {"role": "assistant", "content": result.answer}


@table("nothing", [Text(""), Text(" \n"), Text("", finish_reason="content_filter")])
def test_a_model_that_answers_nothing_is_asked_once_more_without_tools(way: Any, serve: Any, nothing: Reply) -> None:
    server = serve([Calls(search("a")), nothing, Text("done")])
    result = way(server, tools=Search().tools)
    assert (result.answer, result.ended, result.code) == ("done", "forced", SILENT_CODE)
    assert choices(server) == ["absent", "absent", "none"]


def test_usage_is_charged_from_the_response_and_from_the_stream(way: Any, serve: Any) -> None:
    prices = {"m": {"input_mtok": 1.0, "output_mtok": 10.0, "cache_read_mtok": 0.1}}
    session = Policy(prices=prices).session("usage")
    used = Usage(1000, 50, cached=500), Usage(2000, 100)
    way(serve([Calls(search("a"), usage=used[0]), Text("done", usage=used[1])]), session, tools=Search().tools)
    assert session.ledger.cost_usd == pytest.approx((2500 + 0.1 * 500 + 10 * 150) / 1e6)
    assert session.ledger.unpriced == 0


# C: the tool choice


@table("choice", ["required", "named", "allowed", "auto", "none", None, omit])
def test_c1_a_forced_choice_is_sent_once_in_the_wire_s_form_and_a_free_one_stays(
    way: Any, serve: Any, choice: Any
) -> None:
    named = {"type": "function", **({"function": {"name": "search"}} if way.chat else {"name": "search"})}
    allowed = {"mode": "required", "tools": [named]}
    forced: dict[Any, Any] = {
        "required": "required",
        "named": named,
        "allowed": {"type": "allowed_tools", **({"allowed_tools": allowed} if way.chat else allowed)},
    }
    server, given = serve([Calls(search("a")), Text("done")]), forced.get(choice, choice)
    way(server, tools=Search().tools, tool_choice=given)
    sent = "absent" if choice in (None, omit) else given
    assert choices(server) == [sent, "absent" if choice in forced else sent]


# D1: the loop


def test_d1_parallel_calls_go_back_with_their_ids_denied_ones_too_and_text_is_joined(way: Any, serve: Any) -> None:
    five = Calls(*(search(f"{n}.c", f"c{n}") for n in range(5)), text="Let me look.")
    server, messages, seen, tool = serve([five, Text("Three hits.")]), [user()], list[str](), Search()
    session = Policy([Budget(max_calls=3)]).session("five")
    result = way(server, session, messages=messages, tools=tool.tools, on_text=seen.append)
    assert (result.answer, result.finish_reason, "".join(seen)) == ("Three hits.", "stop", "Let me look.Three hits.")
    assert calls(messages) == answered(messages) == [f"c{n}" for n in range(5)]
    told = envelopes(messages)
    assert [e.get("status") for e in told] == ["success"] * 3 + ["limit_reached"] * 2
    assert [e.get("limit_message") for e in told] == [None, None, LIMIT, LIMIT, LIMIT]
    assert messages is result.messages
    assert way.sent(server.requests[1]) == messages[:-1]
    assert (len(tool.ran), result.ended, result.code) == (3, "forced", "budget.max_calls")


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
    result = WAYS[2](server, tools=[look], parallel=parallel)
    assert [e["result"] for e in envelopes(result.messages)] == list(range(6))
    assert peak == most


def test_a_reply_is_kept_where_its_listener_fails(way: Any, serve: Any) -> None:
    def listen(text: str) -> None:
        raise ValueError("listener")

    async def alisten(text: str) -> None:
        listen(text)

    server, messages, tool = serve([Calls(search("a", "a"), text="Let me look."), Text("done")]), [user()], Search()
    for on_text in (listen, alisten if way.asynchronous else listen):
        with pytest.raises(ValueError, match="listener"):
            way(server, messages=messages, tools=tool.tools, on_text=on_text)
    assert envelopes(messages)[0]["error_type"] == "cancelled"
    assert "done" in json.dumps(messages[-1])
    assert tool.ran == []


class Stop(BaseException):
    """
    What a tool does not survive.
    """


def test_an_interrupted_turn_still_answers_every_call(way: Any, serve: Any) -> None:
    def look(n: int) -> int:
        if n == 2:
            raise Stop
        return n

    messages, session = [user()], Policy().session("interrupted")
    server = serve([Calls(*(call("look", {"n": n}) for n in (1, 2, 3))), Text("done")])
    with pytest.raises(Stop):
        way(server, session, messages=messages, tools=[look], parallel=1)
    assert [e.get("error_type") for e in envelopes(messages)][:2] == [None, "cancelled"]
    assert way(server, session, messages=[*messages, user("go on")], tools=[look]).answer == "done"


def test_a_loop_cancelled_in_mid_turn_has_recorded_every_call_that_began(way: Any, serve: Any) -> None:
    if not way.asynchronous:
        return
    messages, records, began = [user()], MemorySink(), list[str]()
    session = Policy([Budget(max_calls=9)]).session("cancelled", records=records)

    async def search_(path: str) -> str:
        began.append(path)
        for task in asyncio.all_tasks() if len(began) == 3 else ():
            task.cancel()
        if path != "a":
            await asyncio.Event().wait()
        return path

    tools = Registry()
    tools.register(search_, name="search")
    with pytest.raises(asyncio.CancelledError):
        way(serve([Calls(*(search(p, p) for p in "abc"))]), session, messages=messages, tools=tools)
    assert session.ledger.progress["calls_used"] == 3
    assert calls(messages) == answered(messages) == ["a", "b", "c"]
    assert [e.get("error_type") for e in envelopes(messages)] == [None, "cancelled", "cancelled"]
    events = Counter(record["event"] for record in records.records)
    assert events["call"] == events["settle"] == 3


# D2: the tools


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
    result = way(server, Policy(guards).session("d2"), tools=made, parallel=1)
    listed = [[tool.get("name") or tool["function"]["name"] for tool in body["tools"]] for body in server.requests]
    assert listed == [["forget", "learn"], ["dance", "forget", "learn"], ["forget", "learn"], ["forget", "learn"]]
    said = [e.get("result", e.get("error_type")) for e in envelopes(result.messages)]
    assert said == ["learned", "tool_missing", "I am dance", "True", "tool_missing"]


# Limits


def look(n: int) -> str:
    return f"hit {n}"


def loop(server: Any, session: Any, messages: Any = "go", **options: Any) -> Any:
    return WAYS[0](server, session, messages=messages, tools=[look], **options)


def stuck(_: Any, n: int) -> Reply:
    return Calls(call("look", {"n": n}), call("look", {"n": -n - 1}))


def limits(result: Any) -> list[Any]:
    return [each.get("limit_message") for each in envelopes(result.messages)]


def test_the_last_result_tells_the_limit_of_a_loop_which_is_raised_also_while_it_runs(serve: Any) -> None:
    result = loop(serve(obeying(stuck, "done")), Policy().session("s"), max_tool_iterations=2)
    assert limits(result) == [None, None, None, "Tool call limit reached (2). Stopping tool loop."]
    assert (result.ended, result.code, result.iterations) == ("forced", "loop.max_tool_iterations", 2)
    session = Policy().session("t")

    def raised(request: Any, n: int) -> Reply:
        if n == 1:
            session.extend(max_tool_iterations=1)
        return stuck(request, n)

    result = loop(serve(obeying(raised, "done")), session, max_tool_iterations=2)
    assert (result.iterations, limits(result)[-1]) == (3, "Tool call limit reached (3). Stopping tool loop.")
    session.extend(max_tool_iterations=2)
    more = [*result.messages, user("go on")]
    assert loop(serve(obeying(stuck, "done")), session, more, max_tool_iterations=2).iterations == 5


# No tool fits after the first call; or no usual turn does: 0.3 for each.
@table(("cost_usd", "price", "requests"), [(0.6, 1.0, 2), (0.0, 30_000.0, 4)])
@table("how", ["tools", "rules"])
def test_a5_money_nearly_spent_ends_the_tools_in_the_loop(
    serve: Any, how: str, cost_usd: float, price: float, requests: int
) -> None:
    server = serve(obeying(lambda _, n: Calls(call("look", {"n": n}), usage=Usage(10, 0)), "done"))
    own: Any = {"tools": [Tool(name="look", cost_usd=cost_usd)]}
    if how == "rules":
        own = {"rules": [Rule(match="look", declared={"cost_usd": cost_usd})]}
    session = Policy([Budget(max_cost_usd=1)], prices={"m": {"input_mtok": price}}, **own).session("s")
    result = loop(server, session)
    assert (result.ended, result.code, bool(session.exhausted)) == ("forced", "budget.max_cost_usd", True)
    assert choices(server) == ["absent"] * (requests - 1) + ["none"]


@table(("go_on", "ran"), [({}, 0), ({"max_turns": 3}, 3)])
def test_a_further_message_of_the_user_opens_what_the_policy_says(serve: Any, go_on: Any, ran: int) -> None:
    server, session = serve(obeying(stuck, "done")), Policy([Budget(max_turns=1, go_on=go_on)]).session("s")
    result = loop(server, session)
    assert (result.iterations, result.code) == (1, "budget.max_turns")
    # Nobody has said anything since the answer.
    assert loop(server, session, list(result.messages)).iterations == 0
    assert loop(server, session, [*result.messages, user("go on")]).iterations == ran


# Conversations


FILES = ["a.c", "b.c", "c.c", "d.c"]


def forgetful(body: Any, n: int) -> Reply:
    """
    A model that searches each file whose search its context does not show, and then answers.
    """
    todo = [path for path in FILES if f"nothing in {path}" not in json.dumps(body)]
    return Calls(search(todo[0])) if todo else Text("nothing anywhere")


def test_a8_the_digest_keeps_a_model_with_a_cut_history_from_repeating(way: Any, serve: Any) -> None:
    messages, server, tool = [{"role": "system", "content": "be brief"}, user()], serve(forgetful), Search()
    result = way(server, messages=messages, tools=tool.tools, compact=lambda messages: messages[-2:])
    assert (tool.ran, result.answer, result.ended) == (FILES, "nothing anywhere", "answered")
    assert [len(way.sent(body)) for body in server.requests] == [2, 3, 3, 3, 3]
    said = [str(item.get("content", "")) for item in way.sent(server.requests[-1])]
    [digest] = [text for text in said if text.startswith(PUT_BACK)]
    assert "4 tool calls were made" in digest
    # The whole conversation is kept, without digests.
    assert PUT_BACK not in json.dumps(messages)
    assert len(results(messages)) == 4


# Calls and their results stay together


WIRES: list[Any] = [ChatCompletions, Responses]


def turn(wire: Any, *ids: str) -> list[Any]:
    function = {"name": "look", "arguments": "{}"}
    if wire is Responses:
        said: list[Any] = [{"type": "function_call", "call_id": id_, **function} for id_ in ids]
    else:
        said = [{"role": "assistant", "tool_calls": [{"id": i, "type": "function", "function": function} for i in ids]}]
    return [*said, *(wire.result(RequestedCall(id_, "look", "{}"), "ok") for id_ in ids)]


@table("wire", WIRES)
def test_a_call_that_a_killed_process_left_is_answered_as_broken_off(wire: Any) -> None:
    said = [user(), *turn(wire, "a", "b")]
    messages = said[:-1]
    mend(wire, messages)
    assert messages[:-1] == said[:-1]
    assert answered(messages) == ["a", "b"]
    assert envelopes(messages[-1:])[0]["error_type"] == "cancelled"
    again = list(messages)
    mend(wire, again)
    assert again == messages


@table("wire", WIRES)
@given(data=st.data())
def test_whatever_a_compaction_keeps_the_api_takes(wire: Any, data: st.DataObject) -> None:
    messages: list[Any] = [{"role": "system", "content": "be brief"}, user()]
    for ids in data.draw(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=3), max_size=4)):
        messages += [*turn(wire, *ids), user("on")]
    kept = [message for message in messages if data.draw(st.booleans())]
    sent = compacted(wire, messages, kept, lambda: "the digest")
    for valid in (messages, sent) if sent else (messages,):
        assert not problems([{"model": "m", "input" if wire is Responses else "messages": valid}])
    if len(kept) < len(messages):
        [at] = [i for i, m in enumerate(sent) if m.get("content") == PUT_BACK + "the digest"]
        assert at == (1 if sent[0].get("role") == "system" else 0)
