"""
When a cost limit ends a session, and when it only refuses what is too dear.
"""

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from guardrails import Budget, MemorySink, Policy, Success, Tool
from tests.replaying import replay
from tests.tables import table


CODE = "budget.max_cost_usd"
DEAR = Tool(name="dear", cost_usd=0.6)
CHEAP = Tool(name="cheap", cost_usd=0.1)


def ok(*_: Any) -> str:
    return "ok"


def make(clock: Any, *tools: Tool, reserve: float = 0.0, **settings: Any) -> Any:
    guard = Budget(max_cost_usd=1.0, final_answer_reserve_usd=reserve)
    return Policy([guard], tools=tools, **settings).session("s", clock=clock)


def turns(session: Any, cost: float, tool: str = "dear", most: int = 21) -> int:
    """
    Model requests of a loop whose model asks for *tool* each time, until the session is exhausted.
    """
    for n in range(most):
        session.request()
        if session.exhausted:
            return n
        session.charge(model="m", cost_usd=cost, calls=1)
        session.call(tool, {"n": n}, ok)
    return most


def test_a5_a_session_ends_once_no_tool_fits(clock: Any) -> None:
    session = make(clock, DEAR)
    session.charge(model="m", cost_usd=0.25, calls=1)
    assert session.call("dear", {}, ok).limit_message is None
    assert session.exhausted == CODE
    assert session.ledger.limit_message == (
        "$0.15 of the cost limit ($1.00) is left, less than a tool or a usual model turn costs. Stopping tool loop."
    )
    assert session.tool_choice("auto") == "none"
    session.begin_turn(1)
    assert session.call("dear", {"n": 1}, ok).code == CODE


@table(
    ("tools", "turn", "spent", "goes_on"),
    [
        # A cheaper tool, a free one, one that nobody listed fits, and so does a turn.
        ((DEAR, CHEAP), 0.25, 0.4, True),
        ((DEAR, Tool(name="free")), 0.25, 0.5, True),
        ((), 0.25, 0.5, True),
        ((), None, 0.9, True),
        # No tool fits, however cheap the turns are.
        ((DEAR,), 0.05, 0.6, False),
        ((DEAR,), 0.0, 0.6, False),
        ((DEAR,), None, 0.9, False),
        ((DEAR, CHEAP), 0.02, 0.9, False),
        # No usual turn fits, even if a tool does.
        ((DEAR, CHEAP), 0.25, 0.6, False),
        ((DEAR, Tool(name="free")), 0.25, 0.6, False),
        ((), 0.25, 0.6, False),
    ],
)
def test_a5_money_nearly_spent_ends_the_tools(
    tools: tuple[Tool, ...], turn: float | None, spent: float, goes_on: bool, clock: Any
) -> None:
    session = make(clock, *tools)
    if turn is not None:
        session.charge(model="m", cost_usd=turn, calls=1)
    session.call("dear", {}, lambda *_: Success("ok", cost_usd=spent))
    assert (session.exhausted is None) is goes_on
    assert session.tool_choice("auto") == ("auto" if goes_on else "none")


def test_the_calls_of_a_response_run_although_no_other_response_fits(clock: Any) -> None:
    session = make(clock, Tool(name="free"))
    session.charge(model="m", cost_usd=0.6, calls=2)
    assert session.exhausted
    assert [session.call("free", {"n": n}, ok).ok for n in range(2)] == [True, True]
    session.request()
    assert session.exhausted == CODE


def test_a_usual_turn_is_the_average_one(clock: Any) -> None:
    session = make(clock)
    for cost in (0.05, 0.4, 0.15):
        session.charge(model="m", cost_usd=cost)
    assert not session.exhausted
    session.charge(model="m", cost_usd=0.25)
    assert session.exhausted == CODE


def test_what_is_held_back_for_the_final_answer_is_not_left(clock: Any) -> None:
    session, other = make(clock, DEAR, reserve=0.1), make(clock, DEAR)
    for each in (session, other):
        each.charge(model="m", cost_usd=0.05)
        each.call("dear", {}, lambda *_: Success("ok", cost_usd=0.3))
    assert (session.exhausted, other.exhausted) == (CODE, None)


def test_the_requests_after_the_money_is_as_good_as_spent_are_none(clock: Any) -> None:
    # 0.3 a turn: after 0.3 + 0.6 a tenth is left.
    assert turns(make(clock, DEAR), 0.3) == 1
    assert turns(make(clock, DEAR), 0.01) == 1


def test_a_hold_that_may_be_given_back_exhausts_nothing(clock: Any) -> None:
    session = make(clock, DEAR, CHEAP)
    session.charge(model="m", cost_usd=0.2, calls=3)
    held = [
        session.decide("dear", {}, id="a"),
        session.decide("cheap", {}, id="b"),
        session.decide("cheap", {}, id="c"),
    ]
    assert all(decision.allowed for decision in held)
    refused = session.call("cheap", {"n": 1}, ok)
    assert (refused.code, refused.limit_message) == (CODE, "This call is estimated at $0.10, $0.00 is left.")
    assert not session.exhausted
    for decision in held:
        session.complete(decision, Success("ok", cost_usd=0))
    assert not session.exhausted
    assert session.call("dear", {"n": 2}, ok).ok


def test_what_is_free_runs_beside_what_holds_all_the_money(clock: Any) -> None:
    session = make(clock, Tool(name="all", cost_usd=1.0), Tool(name="free"))
    held = session.decide("all", {}, id="a")
    assert session.call("free", {}, ok).ok
    assert session.call("all", {"n": 1}, ok).code == CODE
    session.complete(held, "ok")
    assert session.call("free", {"n": 1}, ok).code == CODE


def test_what_a_child_holds_exhausts_nothing_and_what_it_used_does(clock: Any) -> None:
    parent = make(clock, DEAR)
    parent.charge(model="m", cost_usd=0.3, calls=1)
    with parent.child("c") as child:
        assert not parent.exhausted
        assert child.call("dear", {}, ok).ok
        assert child.exhausted == CODE
        assert not parent.exhausted
    assert parent.exhausted == CODE


def test_more_money_lets_it_go_on(clock: Any) -> None:
    session = make(clock, DEAR)
    session.charge(model="m", cost_usd=0.3, calls=1)
    session.call("dear", {}, ok)
    session.request()
    session.extend()
    assert session.exhausted
    session.extend(max_cost_usd=0.5)
    assert session.call("dear", {"n": 1}, ok).ok


events = st.lists(
    st.one_of(
        st.tuples(st.just("charge"), st.sampled_from([0.0, 0.02, 0.2, 0.3])),
        st.tuples(st.just("call"), st.sampled_from(["dear", "cheap", "other"])),
        st.tuples(st.just("extend"), st.sampled_from([0.1, 0.5])),
    ),
    max_size=15,
)


@example(story=[("call", "dear"), ("charge", 0.3), ("call", "dear")], tools=[DEAR])
@given(story=events, tools=st.lists(st.sampled_from([DEAR, CHEAP]), unique_by=lambda tool: tool.name))
def test_a_replay_decides_alike_whatever_code_had_declared(story: list[Any], tools: list[Tool]) -> None:
    policy, sink = Policy([Budget(max_cost_usd=1.0)]), MemorySink()
    session = policy.session("s", tools=tools, records=sink, clock=lambda: 1_800_000_000.0)
    codes: list[str | None] = []
    for n, (event, value) in enumerate(story):
        if event == "charge":
            session.request()
            session.charge(model="m", cost_usd=value)
        elif event == "extend":
            session.extend(max_cost_usd=value)
        else:
            codes.append(session.call(value, {"n": n}, ok).code)
    session.close()
    again = list(replay(policy.chain, sink.records))
    assert all(one.same for one in again)
    assert [one.made["code"] for one in again] == codes
