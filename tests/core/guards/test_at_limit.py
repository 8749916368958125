"""
A used-up limit that a person is asked about, or that lets a few calls of some tools through.
"""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Budget, Policy, Tool
from guardrails.sinks import MemorySink
from tests.core.guards.calls import ok
from tests.replaying import replay
from tests.tables import table


LIMITS: dict[str, Any] = {"max_calls": 2, "max_turns": 50}
WRITES: Any = {"allow": ["write_*"], "calls": 2}


def session(clock: Any, at_limit: Any, **options: Any) -> Any:
    limits = {**LIMITS, **options.pop("limits", {})}
    return Policy([Budget(at_limit=at_limit, **limits)]).session("s", clock=clock, **options)


def codes(made: Any, *tools: str) -> list[str | None]:
    return [made.call(tool, {"n": made.ledger.progress["calls_used"], "k": k}, ok).code for k, tool in enumerate(tools)]


def test_the_next_call_waits_for_a_person_whose_yes_gives_as_much_again(clock: Any) -> None:
    made = session(clock, "ask")
    assert codes(made, "t", "t", "t") == [None, None, "approve.pending"]
    # Until there is an answer the model is to write its final answer.
    assert (made.exhausted, made.tool_choice("auto")) == ("budget.max_calls", "none")
    assert made.call("t", {"n": "another"}, ok).code == "budget.max_calls"
    (waits,) = made.pending()
    assert waits.reason == "Tool call limit reached (2). Yes gives as much again"
    made.approve(waits)
    assert (made.exhausted, made.tool_choice("auto")) == (None, "auto")
    assert made.call("t", waits.arguments, ok).ok
    assert codes(made, "t", "t") == [None, "approve.pending"]


@table("answer, ran", [(True, 6), ("enough", 2), (None, 2)])
def test_an_approver_is_asked_and_its_no_is_the_end(clock: Any, answer: Any, ran: int) -> None:
    asked: list[Any] = []

    def approver(call: Any) -> Any:
        asked.append(call.reason)
        return answer

    made = session(clock, "ask", approver=approver)
    assert [made.call("t", {"n": n}, ok).ok for n in range(6)].count(True) == ran
    assert len(asked) == (2 if answer is True else 1)
    assert made.exhausted == (None if answer is True else "budget.max_calls")
    made.extend(max_calls=5)
    assert made.call("t", {"n": "extended"}, ok).ok


def test_money_that_nobody_is_asked_about_ends_the_session_one_response_later(clock: Any) -> None:
    made = session(clock, "ask", limits={"max_cost_usd": 1})
    found = []
    for _ in range(3):
        made.charge(model="m", usage={"prompt_tokens": 1}, cost_usd=0.6)
        found.append(made.exhausted)
    assert found == [None, None, "budget.max_cost_usd"]


def test_a_few_calls_of_some_tools_run_beyond_a_limit_and_then_the_session_ends(clock: Any) -> None:
    made = session(clock, WRITES)
    first = [made.call("t", {"n": n}, ok) for n in range(2)]
    hint = "Only `write_*` may still be called (2 calls); then write the final answer."
    assert (first[1].next_action_hint, first[1].limit_reached, made.exhausted) == (hint, None, None)
    forced = {"type": "function", "function": {"name": "t"}}
    assert [made.tool_choice(one) for one in ("auto", forced)] == ["auto", forced]
    assert codes(made, "write_file") == [None]
    last = made.call("write_file", {"n": "last"}, ok)
    assert (last.ok, last.limit_reached, made.exhausted, made.tool_choice("auto")) == (
        *(True, True),
        *("budget.max_calls", "none"),
    )
    assert codes(made, "write_file") == ["budget.max_calls"]


@given(st.lists(st.sampled_from(["t", "write_file", "charge"]), max_size=20), st.sampled_from(["ask", WRITES]))
def test_no_more_is_beyond_a_limit_than_it_says_and_a_replay_decides_the_same(story: list[str], at_limit: Any) -> None:
    records, ran = MemorySink(), list[str]()
    policy = Policy([Budget(max_calls=3, at_limit=at_limit)], tools=[Tool(name="t")])
    made = policy.session("s", clock=lambda: 1.8e9, records=records)

    def run(tool: str, arguments: Any) -> str:
        ran.append(tool)
        return "ok"

    for number, name in enumerate(story):
        if name == "charge":
            made.charge(model="m", usage={"prompt_tokens": 1}, cost_usd=0)
        else:
            made.call(name, {"n": number}, run)
    assert len(ran) <= 3 + 2 * (at_limit == WRITES)
    assert set(ran[3:]) <= {"write_file"}
    assert [one.decided for one in replay(policy.chain, records.records) if not one.same] == []


@table(
    "at_limit, ran",
    [("ask", [4, 4, 4]), ({"allow": ["t"], "calls": 1}, [3, 3, 3])],
)
def test_what_goes_beyond_a_limit_is_for_its_period_alone(clock: Any, at_limit: Any, ran: list[int]) -> None:
    # A person says yes once a day.
    answers, days = [True, False, False] * 3, list[int]()
    made = session(clock, at_limit, limits={"per": "day"}, approver=lambda _: answers.pop(0))
    for _ in ran:
        days.append(codes(made, *"tttttttt").count(None))
        answers = [True, False, False]
        clock.advance(86_400)
    assert days == ran
