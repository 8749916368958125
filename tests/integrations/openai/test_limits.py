"""
The limits of a session in the agent loop: told in the last result, raised by one call, held while requests are under way.
"""

import json

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from openai import APIStatusError, OpenAI

from guardrails import Budget, Policy, Tool
from guardrails.core.guards.budget import held
from guardrails.core.state import SessionState
from guardrails.integrations.openai import run
from guardrails.testing.scripted_openai import Calls, Fail, Reply, ScriptedOpenAI, Text, Usage, call, obeying
from tests.tables import table


pytestmark = pytest.mark.system


Serve = Callable[..., ScriptedOpenAI]


@pytest.fixture
def serve() -> Iterator[Serve]:
    servers: list[ScriptedOpenAI] = []

    def start(script: Any) -> ScriptedOpenAI:
        servers.append(ScriptedOpenAI(script).__enter__())
        return servers[-1]

    yield start
    for server in servers:
        server.__exit__(None, None, None)


def loop(server: ScriptedOpenAI, session: Any, messages: Any = "go", **options: Any) -> Any:
    def search(n: int) -> str:
        return f"hit {n}"

    with OpenAI(base_url=server.base_url, api_key="-", max_retries=0) as client:
        return run(client, session, model="m", messages=messages, tools=[search], **options)


def stuck(_: Any, n: int) -> Reply:
    return Calls(call("search", {"n": n}), call("search", {"n": -n - 1}))


def told(result: Any) -> list[Any]:
    return [
        json.loads(message["content"]).get("limit_message") for message in result.messages if message["role"] == "tool"
    ]


def test_only_the_last_result_before_the_limit_of_a_loop_tells_it(serve: Serve) -> None:
    with Policy().session("s") as session:
        result = loop(serve(obeying(stuck, "done")), session, max_tool_iterations=2)
    assert told(result) == [None, None, None, "Tool call limit reached (2). Stopping tool loop."]
    assert (result.ended, result.code, result.iterations) == ("forced", "loop.max_tool_iterations", 2)


def test_a_loop_is_raised_by_the_call_that_raises_every_limit_also_while_it_runs(serve: Serve) -> None:
    with Policy().session("s") as session:

        def first(request: Any, n: int) -> Reply:
            if n == 1:
                session.extend(max_tool_iterations=1)
            return stuck(request, n)

        result = loop(serve(obeying(first, "done")), session, max_tool_iterations=2)
        assert (result.iterations, told(result)[-1]) == (3, "Tool call limit reached (3). Stopping tool loop.")
        session.extend(max_tool_iterations=2)
        again = [*result.messages, {"role": "user", "content": "go on"}]
        assert loop(serve(obeying(stuck, "done")), session, again, max_tool_iterations=2).iterations == 5


@table(
    ("cost_usd", "price", "requests"),
    [
        # No tool fits after the first call; then no usual turn does: 0.3 for each.
        (0.6, 1.0, 2),
        (0.0, 30_000.0, 4),
    ],
)
def test_a5_money_nearly_spent_ends_the_tools_in_the_loop(
    serve: Serve, cost_usd: float, price: float, requests: int
) -> None:
    def one(_: Any, n: int) -> Reply:
        return Calls(call("search", {"n": n}), usage=Usage(10, 0))

    server = serve(obeying(one, "done"))
    tools = [Tool(name="search", cost_usd=cost_usd)]
    policy = Policy([Budget(max_cost_usd=1)], tools=tools, prices={"m": {"input_mtok": price}})
    with policy.session("s") as session:
        result = loop(server, session)
        assert (result.ended, result.code) == ("forced", "budget.max_cost_usd")
        assert session.exhausted
    assert [body.get("tool_choice") for body in server.requests] == [None] * (requests - 1) + ["none"]


@table(("go_on", "ran"), [({}, 0), ({"max_turns": 3}, 3)])
def test_a_further_message_of_the_user_opens_what_the_policy_says(serve: Serve, go_on: Any, ran: int) -> None:
    with Policy([Budget(max_turns=1, go_on=go_on)]).session("s") as session:
        result = loop(serve(obeying(stuck, "done")), session)
        assert (result.iterations, result.code) == (1, "budget.max_turns")
        # Nobody has said anything since the answer.
        assert loop(serve(obeying(stuck, "done")), session, list(result.messages)).iterations == 0
        again = [*result.messages, {"role": "user", "content": "go on"}]
        assert loop(serve(obeying(stuck, "done")), session, again).iterations == ran


def test_a_request_that_fails_holds_nothing_afterwards(serve: Serve) -> None:
    policy = Policy([Budget(max_tokens=100_000)])
    with policy.session("s") as session:
        loop(serve([Text("done")]), session)
        with pytest.raises(APIStatusError):
            loop(serve([Fail(500)]), session)
        state: SessionState = session.ledger.read(lambda live, _: live)
    assert held(state) == (0, 0)
