"""
Same calls are counted no further than the grades of `loops` ask, and of a tool that is declared to be asked again nothing is noted.
"""

from functools import partial
from typing import Any

from guardrails import Loops, Policy, Tool
from tests.tables import table


ROWS = {"rows": [{"id": 1, "name": "Ann"}, {"id": 2, "name": "Bob"}]}


@table(
    ("tool", "hint"),
    [
        (Tool(name="find", repeats="allow"), "The last 3 times, this exact find call gave the same answer."),
        (Tool(name="work", read_only=False), "The last 2 times, this exact work call ended the same."),
    ],
)
def test_a_call_that_is_the_same_again_is_told_how_often_as_far_as_it_matters(
    tool: Tool, hint: str, clock: Any
) -> None:
    with Policy([Loops()], tools=[tool]).session("s", clock=clock) as session:
        for _ in range(7):
            clock.advance(5)
            envelope = session.call(tool.name, {"n": 1}, lambda name, arguments: ROWS)
    assert envelope.ok
    assert (envelope.next_action_hint or "").startswith(hint)


def _page(n: int, tool: str, arguments: Any) -> dict[str, Any]:
    return {**ROWS, "page": n, "name": f"Ann {n}"}


def test_answers_that_change_are_noted_but_where_that_is_declared(clock: Any) -> None:
    noted = []
    for repeats in (None, "allow"):
        with Policy([Loops()], tools=[Tool(name="find", repeats=repeats)]).session("s", clock=clock) as session:
            for n in range(3):
                clock.advance(5)
                session.call("find", {"n": 1}, partial(_page, n))
            noted.append(bool(session.ledger.read(lambda state, now: state.own.get("evidence"))))
    assert noted == [True, False]
