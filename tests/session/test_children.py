"""
Sessions that reserve from another, and what a family of them shares.
"""

from typing import Any, ClassVar

import pytest

from guardrails import (
    Budget,
    Duplicates,
    Envelope,
    Growth,
    Guard,
    MemorySink,
    MemoryStore,
    Policy,
    Rate,
    Session,
    SqliteStore,
    Success,
    guard,
)
from guardrails.core.chain import Rule
from guardrails.errors import SessionError
from tests.core.guards.calls import admitted, make
from tests.session.conftest import ok, replays
from tests.tables import table


def left(*sessions: Any, of: str = "calls_left") -> list[Any]:
    return [session.ledger.progress[of] for session in sessions]


def test_children_that_run_at_once_each_have_a_share_of_what_is_left(clock: Any) -> None:
    parent = make(clock, Budget(max_calls=10, max_tokens=101, max_elapsed=60))
    one, two = (parent.child(name, share=0.5) for name in "ab")
    assert one.ledger.progress == {"calls_used": 0, "calls_left": 5, "tokens_left": 51, "seconds_left": 60}
    assert two.ledger.progress == {"calls_used": 0, "calls_left": 3, "tokens_left": 25, "seconds_left": 60}
    assert parent.call("t", {}, ok).ok
    one.close()
    assert left(parent) == [6]


@table(("part", "said"), [
    *(({"share": share}, "`share` is above 0 and at most 1") for share in (0, -1, 1.5, float("nan"))),
    ({"max_calls": 4}, "asks for max_calls 4, 3 is left"), ({"max_cost_usd": 0.6}, r"asks for max_cost_usd \$0.60, \$0.50 is left"),
])  # fmt: skip
def test_a_part_that_is_none_or_more_than_is_left_is_an_error(part: Any, said: str, clock: Any) -> None:
    parent = make(clock, Budget(max_calls=3, max_cost_usd=0.5), on_error="allow")
    with pytest.raises(SessionError, match=said):
        parent.child("c", **part)
    assert left(parent) == [3]
    assert admitted(parent, 3) == 3
    with pytest.raises(SessionError, match="exhausted"):
        parent.child("c")


@table("limit", ["max_calls", "max_turns"])
def test_nothing_is_spent_twice_by_a_parent_and_its_children(limit: str, clock: Any) -> None:
    whole, part = ({limit: most} for most in (5, 2))
    parent = make(clock, Budget(**whole))  # type: ignore[arg-type]
    one, two = (parent.child(name, **part) for name in "ab")
    ran, refused = [0, 0, 0], set()
    for index, session in enumerate((one, parent, two)):
        for number in range(4):
            session.begin_turn()
            envelope = session.call("t", {"n": number}, ok)
            ran[index] += envelope.ok
            refused.add(envelope.code)
    assert (ran, refused) == ([2, 1, 2], {None, f"budget.{limit}"})
    for child in (one, two):
        child.close()
    assert parent.exhausted == f"budget.{limit}"


def test_sub_agents_beyond_their_number_or_depth_make_no_call(clock: Any) -> None:
    policy, sink = Policy([Budget(max_calls=99, max_children=3, max_depth=2)]), MemorySink()
    parent = policy.session("s", clock=clock, records=sink)
    first = parent.child("a", share=0.5)
    deep = first.child("b", share=0.5).child("c", share=0.5)
    refused = deep.call("t", {}, ok)
    assert (refused.code, deep.exhausted, deep.tool_choice()) == ("budget.max_children", "budget.max_children", "none")
    first.close()
    assert parent.child("d", share=0.1).call("t", {}, ok).ok
    many = parent.child("e", share=0.1)
    assert many.call("t", {}, ok).code == many.exhausted == "budget.max_children"
    assert many.call("t", {}, ok).limit_message == "Sub-agent limit reached (3). Stopping tool loop."
    # One that is taken up again, perhaps in another process, is refused as before.
    assert parent.child("e", share=0.1, again=True).call("t", {"n": 1}, ok).code == "budget.max_children"
    many.close()
    assert parent.call("t", {"n": 2}, ok).ok
    replays(policy, sink)


def test_what_closed_children_used_is_charged_to_their_parent_for_each_limit(clock: Any) -> None:
    parent = make(clock, Budget(max_calls=20, max_turns=20, max_cost_usd=2, max_tokens=1_000))

    def spend(session: Any) -> None:
        for turn, count in enumerate((2, 1)):
            session.begin_turn(count)
            for number in range(count):
                session.call("t", {"n": (turn, number)}, lambda *_: Success("ok", cost_usd=0.1, tokens=20))
        session.charge(model="m", usage={"prompt_tokens": 10}, cost_usd=0)

    def used(session: Any) -> Any:
        return session.ledger.read(lambda state, _: (state.calls, state.turns, state.cost, state.tokens))

    once = (3, 2, 300_000, 70)
    spend(parent)
    for times, name in enumerate("ab", 2):
        with parent.child(name, max_calls=9) as child:
            spend(child)
            assert used(child) == once
            assert left(parent) == [20 - 3 * (times - 1) - 9]
        assert used(parent) == tuple(times * amount for amount in once)
    rest = {"calls_left": 11, "turns_left": 14, "cost_left_usd": 1.1, "tokens_left": 790}
    assert parent.ledger.progress == {"calls_used": 9, **rest}


@table("used", [0, 1])
def test_a_child_that_runs_is_taken_up_as_it_is_and_a_closed_one_runs_nothing_more(used: int, clock: Any) -> None:
    sink = MemorySink()
    parent = Policy([Budget(max_calls=8)]).session("s", clock=clock, records=sink)
    admitted(parent.child("c", max_calls=4), used)
    events = len(sink.records)
    child = parent.child("c", max_calls=4, again=True)
    assert len(sink.records) == events
    assert child.ledger.progress == {"calls_used": used, "calls_left": 4 - used}
    child.close()
    child.close()
    assert child.call("t", {"n": 9}, ok).code == "session.closed"
    with pytest.raises(SessionError, match="closed"):
        child.extend(max_calls=2)
    with pytest.raises(SessionError, match="another name"):
        parent.child("c")
    assert parent.ledger.progress == {"calls_used": used, "calls_left": 8 - used}


def test_a_child_takes_what_it_extends_from_its_parent_and_no_more_than_is_left(clock: Any) -> None:
    parent = make(clock, Budget(max_calls=50))
    child = parent.child("c", max_calls=5)
    child.extend(max_calls=10)
    assert left(child, parent) == [15, 35]
    with pytest.raises(SessionError, match="asks for max_calls 100 more, 35 is left"):
        child.extend(max_calls=100)
    assert admitted(child, 30) == 15
    child.close()
    assert parent.ledger.progress == {"calls_used": 15, "calls_left": 35}


def test_a_per_tool_budget_a_rate_and_a_growth_cap_hold_for_the_whole_family(clock: Any) -> None:
    rule = Rule(match=("pay_*",), declared={}, guards={"budget": {"max_calls": 2}})
    parent, ran = make(clock, Budget(max_calls=50), rules=[rule]), 0
    for n in range(5):
        with parent.child(f"c{n}", max_calls=3) as child, child.child("deeper", max_calls=1) as grandchild:
            ran += sum(one.call("pay_rent", {"n": n, "by": one.id}, ok).ok for one in (child, grandchild))
    assert ran + parent.call("pay_rent", {}, ok).ok == 2
    fast = make(clock, Rate(max_calls_per_second=3), Growth(max_requests_per_second=2))
    children = [fast.child(f"c{n}") for n in range(4)]
    assert sum(child.call("t", {}, ok).ok for child in children) == 3
    for child in children:
        child.request()
    assert fast.exhausted == children[0].exhausted == "growth.max_requests_per_second"


# The work of one of a family, and the looks of the others


def look(session: Session) -> Envelope:
    return session.call("read_note", {"id": 1}, lambda *_: "as it was")


def work(session: Session, text: str = "new") -> Envelope:
    return session.call("store_note", {"id": 1, "text": text}, lambda *_: "stored")


def told(story: str, clock: Any, store: Any) -> str | None:
    """
    The code of the last look. A small letter looks, a large one works: the parent *p*, its children *a* and *b*, and *d*, a child of *a*.
    `A{` begins work and `A}` ends it; `-a` closes a child, and `wait` is an hour.
    """
    family = {"p": Policy.load("default").session("family", clock=clock, store=store)}
    begun, code = {}, None
    for step in story.split():
        name = step.strip("-{}").lower()
        if step == "wait":
            clock.advance(3_600)
            continue
        for one in ("a", "d") if name == "d" else (name,):
            if one not in family:
                family[one] = family["a" if one == "d" else "p"].child(one, share=0.5)
        session = family[name]
        if step.endswith("{"):
            begun[name] = session.decide("store_note", {"id": 1})
        elif step.endswith("}"):
            session.complete(begun.pop(name), "stored")
        elif step.startswith("-"):
            session.close()
        else:
            code = (look if step.islower() else work)(session).code
    return code


FREED = ("p p A -a p", "p p A p", "p p D -d -a p", "a a P a", "a a B a", "A{ p p A} p", "A{ p p p", "B{ a a a")
REFUSED = ("p p a -a p", "p p -a p", "A -a p p p", "P{ a a a", "A{ wait p p p")


@pytest.mark.parametrize("in_a_file", [False, True])
@table(("story", "code"), [
    *((story, None) for story in FREED), *((story, "duplicates.evidence") for story in REFUSED),
])  # fmt: skip
def test_work_alone_frees_the_looks_of_a_family(
    story: str, code: str | None, in_a_file: bool, clock: Any, tmp_path: Any
) -> None:
    if not in_a_file:
        assert told(story, clock, MemoryStore()) == code
        return
    with SqliteStore(tmp_path / f"{story}.db") as store:
        assert told(story, clock, store) == code


@guard
class Latest(Guard):
    """
    Remembers the latest call of a family until a call is over.
    """

    family: ClassVar[bool] = True

    def admit(self, call: Any, *_: Any) -> Any:
        return call.tool

    def settle(self, *_: Any) -> Any:
        return None


def test_what_a_child_forgets_its_family_forgets(clock: Any) -> None:
    parent = Policy([Latest()]).session("family", clock=clock)
    parent.decide("store_note", {})
    assert parent.ledger.read(lambda state, _: state.own) == {"latest": "store_note"}
    look(parent.child("a"))
    assert parent.ledger.read(lambda state, _: state.own) == {}


def test_an_earlier_result_is_told_to_be_old_once_a_child_has_worked(clock: Any) -> None:
    parent = Policy([Duplicates()]).session("family", clock=clock)
    look(parent)
    before = look(parent)
    with parent.child("a") as child:
        work(child)
    assert "previous_result_outdated" not in before.to_json()
    assert '"previous_result_outdated":true' in look(parent).to_json()
