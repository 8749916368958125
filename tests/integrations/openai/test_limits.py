"""
The limits of a session in the agent loop: told in the last result, raised by one call, held while requests are under way.
"""

from typing import Any

import pytest

from openai import APIStatusError

from guardrails import Budget, Policy, Tool
from guardrails.core.guards.budget import held
from guardrails.testing.scripted_openai import Calls, Fail, Reply, Text, Usage, call, obeying
from tests.integrations.conftest import WAYS
from tests.tables import table


pytestmark = pytest.mark.system


def search(n: int) -> str:
    return f"hit {n}"


def loop(server: Any, session: Any, messages: Any = "go", **options: Any) -> Any:
    return WAYS[0](server, session, messages=messages, tools=[search], **options)


def stuck(_: Any, n: int) -> Reply:
    return Calls(call("search", {"n": n}), call("search", {"n": -n - 1}))


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
    server = serve(obeying(lambda _, n: Calls(call("search", {"n": n}), usage=Usage(10, 0)), "done"))
    tools = [Tool(name="search", cost_usd=cost_usd)]
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
