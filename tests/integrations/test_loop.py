"""
The agent loop over both wires, sync and async, streamed or not: its limits, its choices, its tools, its conversation.
"""

import asyncio
import json

from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st
from openai import APIStatusError, omit

from guardrails import Budget, Policy, Registry, Tool, ToolFilter
from guardrails.core.guards.budget import held
from guardrails.integrations.openai.wires import PUT_BACK, ChatCompletions, RequestedCall, Responses, compacted, mend
from guardrails.session.final_answer import SILENT_CODE
from guardrails.testing.scripted_openai import Calls, Fail, Reply, Text, Usage, call, obeying
from tests.integrations.conftest import WAYS
from tests.openai_api import problems
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
    with Policy(guards).session("d2") as session:
        result = way(server, session, tools=made, parallel=1)
    listed = [[tool.get("name") or tool["function"]["name"] for tool in body["tools"]] for body in server.requests]
    assert listed == [["forget", "learn"], ["dance", "forget", "learn"], ["forget", "learn"], ["forget", "learn"]]
    said = [e.get("result", e.get("error_type")) for e in way.results(result.messages)]
    assert said == ["learned", "tool_missing", "I am dance", "True", "tool_missing"]


# Limits


def look(n: int) -> str:
    return f"hit {n}"


def loop(server: Any, session: Any, messages: Any = "go", **options: Any) -> Any:
    return WAYS[0](server, session, messages=messages, tools=[look], **options)


def stuck(_: Any, n: int) -> Reply:
    return Calls(call("look", {"n": n}), call("look", {"n": -n - 1}))


def told(result: Any) -> list[Any]:
    return [each.get("limit_message") for each in WAYS[0].results(result.messages)]


def more(result: Any) -> list[Any]:
    """
    The conversation with a further message of the user.
    """
    return [*result.messages, WAYS[0].user("go on")]


def test_the_last_result_tells_the_limit_of_a_loop_which_is_raised_also_while_it_runs(serve: Any) -> None:
    with Policy().session("s") as session:
        result = loop(serve(obeying(stuck, "done")), session, max_tool_iterations=2)
        assert told(result) == [None, None, None, "Tool call limit reached (2). Stopping tool loop."]
        assert (result.ended, result.code, result.iterations) == ("forced", "loop.max_tool_iterations", 2)

    def raised(request: Any, n: int) -> Reply:
        if n == 1:
            session.extend(max_tool_iterations=1)
        return stuck(request, n)

    with Policy().session("t") as session:
        result = loop(serve(obeying(raised, "done")), session, max_tool_iterations=2)
        assert (result.iterations, told(result)[-1]) == (3, "Tool call limit reached (3). Stopping tool loop.")
        session.extend(max_tool_iterations=2)
        assert loop(serve(obeying(stuck, "done")), session, more(result), max_tool_iterations=2).iterations == 5


# No tool fits after the first call; or no usual turn does: 0.3 for each.
@table(("cost_usd", "price", "requests"), [(0.6, 1.0, 2), (0.0, 30_000.0, 4)])
def test_a5_money_nearly_spent_ends_the_tools_in_the_loop(
    serve: Any, cost_usd: float, price: float, requests: int
) -> None:
    server = serve(obeying(lambda _, n: Calls(call("look", {"n": n}), usage=Usage(10, 0)), "done"))
    tools = [Tool(name="look", cost_usd=cost_usd)]
    policy = Policy([Budget(max_cost_usd=1)], tools=tools, prices={"m": {"input_mtok": price}})
    with policy.session("s") as session:
        result = loop(server, session)
        assert (result.ended, result.code, bool(session.exhausted)) == ("forced", "budget.max_cost_usd", True)
    assert [body.get("tool_choice") for body in server.requests] == [None] * (requests - 1) + ["none"]


@table(("go_on", "ran"), [({}, 0), ({"max_turns": 3}, 3)])
def test_a_further_message_of_the_user_opens_what_the_policy_says(serve: Any, go_on: Any, ran: int) -> None:
    with Policy([Budget(max_turns=1, go_on=go_on)]).session("s") as session:
        result = loop(serve(obeying(stuck, "done")), session)
        assert (result.iterations, result.code) == (1, "budget.max_turns")
        # Nobody has said anything since the answer.
        assert loop(serve(obeying(stuck, "done")), session, list(result.messages)).iterations == 0
        assert loop(serve(obeying(stuck, "done")), session, more(result)).iterations == ran


def test_a_request_that_fails_holds_nothing_afterwards(serve: Any) -> None:
    with Policy([Budget(max_tokens=100_000)]).session("s") as session:
        loop(serve([Text("done")]), session)
        with pytest.raises(APIStatusError):
            loop(serve([Fail(500)]), session)
        assert session.ledger.read(lambda state, _: held(state)) == (0, 0)


# Conversations

FILES = ["a.c", "b.c", "c.c", "d.c"]


def forgetful(body: Any, n: int) -> Reply:
    """
    A model that searches each file whose search its context does not show, and then answers.
    """
    shown = json.dumps(body.get("messages") or body["input"])
    todo = [path for path in FILES if f"nothing in {path}" not in shown]
    return Calls(call("search", {"path": todo[0]})) if todo else Text("nothing anywhere")


def last_two(messages: list[Any]) -> list[Any]:
    return messages[-2:]


def test_a8_the_digest_keeps_a_model_with_a_cut_history_from_repeating(way: Any, serve: Any) -> None:
    ran: list[str] = []

    def look(path: str) -> str:
        ran.append(path)
        return f"nothing in {path}"

    look.__name__ = "search"
    messages = [{"role": "system", "content": "be brief"}, way.user()]
    server = serve(forgetful)
    with Policy().session("cut") as session:
        result = way(server, session, messages=messages, tools=[look], compact=last_two)
    assert (ran, result.answer, result.ended) == (FILES, "nothing anywhere", "answered")
    assert [len(way.sent(body)) for body in server.requests] == [2, 3, 3, 3, 3]
    digests = [
        item["content"] for item in way.sent(server.requests[-1]) if str(item.get("content", "")).startswith(PUT_BACK)
    ]
    assert len(digests) == 1
    assert "4 tool calls were made" in digests[0]
    # The whole conversation is kept, without digests.
    assert PUT_BACK not in json.dumps(messages)
    assert len(way.outputs(messages)) == 4


# Calls and their results stay together

WIRES: list[Any] = [ChatCompletions, Responses]


def turn(wire: Any, *ids: str) -> list[Any]:
    calls = [RequestedCall(id_, "look", "{}") for id_ in ids]
    if wire is Responses:
        said: list[Any] = [{"type": "function_call", "call_id": i, "name": "look", "arguments": "{}"} for i in ids]
    else:
        made = [{"id": i, "type": "function", "function": {"name": "look", "arguments": "{}"}} for i in ids]
        said = [{"role": "assistant", "tool_calls": made}]
    return [*said, *(wire.result(requested, "ok") for requested in calls)]


@table("wire", WIRES)
def test_a_call_that_a_killed_process_left_is_answered_as_broken_off(wire: Any) -> None:
    said = [{"role": "user", "content": "go"}, *turn(wire, "a", "b")]
    messages = [*said[:-1]]
    mend(wire, messages)
    assert messages[:-1] == said[:-1]
    mended = messages[-1]
    assert wire.answers(mended) == "b"
    assert json.loads(mended.get("content") or mended["output"])["error_type"] == "cancelled"
    again = list(messages)
    mend(wire, again)
    assert again == messages


def valid(wire: Any, messages: list[Any]) -> bool:
    """
    Whether the API would take them, as the rules of our tests judge it.
    """
    return not problems([{"model": "m", "input" if wire is Responses else "messages": messages}])


@table("wire", WIRES)
@given(data=st.data())
def test_whatever_a_compaction_keeps_the_api_takes(wire: Any, data: st.DataObject) -> None:
    messages: list[Any] = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "go"}]
    for ids in data.draw(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=3), max_size=4)):
        messages += turn(wire, *ids)
        messages.append({"role": "user", "content": "on"})
    assert valid(wire, messages)
    kept = [message for message in messages if data.draw(st.booleans())]
    sent = compacted(wire, messages, kept, lambda: "the digest")
    if sent:
        assert valid(wire, sent)
    if len(kept) < len(messages):
        [at] = [i for i, m in enumerate(sent) if m.get("content") == PUT_BACK + "the digest"]
        assert at == (1 if sent[0].get("role") == "system" else 0)
