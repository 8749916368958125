"""
A look after work is never refused on old evidence (MISSION A6, A12).
"""

import json

from itertools import count
from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Duplicates, Loops, Policy, Tool
from tests.core.guards.worlds import harm
from tests.tables import table


Call = tuple[str, dict[str, Any], Any]

READ: Call = ("read_file", {"path": "x"}, "old")
EDIT: Call = ("edit_file", {"path": "x"}, "ok")
SHOW: Call = ("exec_shell", {"command": "pytest"}, "1 failed")
PATCH: Call = ("exec_shell", {"command": "patch -p1"}, "")
CART: Call = ("get_cart", {}, {"items": []})
ADD: Call = ("add_item", {"id": 7}, "ok")
LIST: Call = ("ls", {"path": "."}, "a.py")
MAKE: Call = ("create", {"path": "b.py"}, "ok")
NEUTRAL: Call = ("alpha", {"of": 1}, "v1")
OTHER: Call = ("beta", {"of": 1}, "page B")
HALF: Call = ("exec_shell", {"command": "mkdir out && cp gone out"}, FileNotFoundError("no such file: gone"))
STORIES: dict[str, tuple[Call, Call]] = {
    "file": (READ, EDIT),
    "tests": (("pytest", {}, "1 failed"), EDIT),
    "one shell": (SHOW, PATCH),
    "cart": (CART, ADD),
    "folder": (LIST, MAKE),
    "neutral names": (NEUTRAL, OTHER),
    "work that failed half-way": (("exec_shell", {"command": "ls"}, "a"), HALF),
    "work that timed out": (READ, ("edit_file", {"path": "x"}, TimeoutError("timed out"))),
    "work that was refused its arguments": (READ, ("edit_file", {"path": "x"}, ValueError("old text not found"))),
}


def said(session: Any, *calls: Call) -> list[str | None]:
    """
    The code of each refusal, None for a call that ran; each call in a turn of its own.
    """
    heard = []
    for tool, arguments, value in calls:
        session.begin_turn()
        decision = session.decide(tool, arguments)
        heard.append(decision.code)
        if decision.allowed:
            session.complete(decision, value)
    return heard


WINDOW = Duplicates(rule="evidence", window=20)
POLICIES = (
    Policy.load("default"),
    Policy([WINDOW]),
    Policy([Loops()]),
    Policy(
        [Loops(identical={"deny": 1}, unrepaired={"deny": 1}, settled_for=None)],
        tools=[Tool(name="read_file", read_only=True)],
    ),
    Policy([WINDOW, Loops()], tools=[Tool(name="read_file", repeats="evidence")]),
)


NUMBERS = count()


def fresh(policy: Policy, clock: Any) -> Any:
    return policy.session(f"s{next(NUMBERS)}", clock=clock)


@table("policy", POLICIES)
@table(("look", "work"), STORIES.values())
def test_work_frees_the_look(policy: Policy, look: Call, work: Call, clock: Any) -> None:
    one = fresh(policy, clock)
    for _ in range(2):
        one.begin_turn()
        decision = one.decide(look[0], look[1])
        if decision.allowed:
            one.complete(decision, look[2])
        clock.advance(61)
    assert said(one, work, look)[1] is None


def test_without_work_the_third_look_is_refused(clock: Any) -> None:
    for look, _ in STORIES.values():
        assert said(fresh(POLICIES[0], clock), look, look, look)[-1] is not None


@table("between", [("list_files", {}, "x"), ("edit", {}, RuntimeError("Unknown tool: edit"))])
def test_a_look_elsewhere_or_a_tool_that_is_not_there_is_no_work(between: Call, clock: Any) -> None:
    assert said(fresh(POLICIES[0], clock), READ, READ, between, READ)[-1] == "duplicates.evidence"


@table(("policy", "looks"), [
    (POLICIES[0], 3),
    *((Policy([WINDOW], tools=[Tool(name="read_file", repeats=repeats, read_only=True)]), 2) for repeats in ("evidence", None)),
])  # fmt: skip
def test_work_that_runs_or_ended_after_the_look_began_frees_it(policy: Policy, looks: int, clock: Any) -> None:
    one = fresh(policy, clock)
    running = one.decide("edit_file", {"path": "x"})
    assert said(one, *[READ] * looks) == [None] * looks
    one.complete(running, "ok")
    assert said(one, READ)[0] is None


@table("late", [False, True])
def test_work_that_the_window_has_forgotten_frees_the_look_when_it_ends(late: bool, clock: Any) -> None:
    one = fresh(POLICIES[1], clock)
    running = one.decide("edit_file", {"path": "x"})
    for n in range(60):
        assert one.call("read", {"n": n}, lambda *_: "text").ok
    if late:
        clock.advance(3_600)
        assert said(one, ("read", {"n": -1}, "text")) == [None]
    look: Call = ("read", {"n": 0}, "same")
    assert said(one, look, look)[0] is None
    one.complete(running, "ok")
    assert said(one, look, look, look) == [None, None, "duplicates.evidence"]


# A refusal that stays


def test_a6_a_repeat_that_is_refused_all_the_same_says_that_its_result_is_old(clock: Any) -> None:
    one = Policy([Duplicates(window=5)]).session("s", clock=clock)
    tools = ("read", "read", "edit", "read")
    first, plain, _, old = (json.loads(one.call(tool, {}, lambda *_: "old").to_json()) for tool in tools)
    assert (first["status"], "previous_result_outdated" in plain) == ("success", False)
    assert (old["status"], old["previous_result"]) == ("duplicate_call_blocked", "old")
    assert old["previous_result_outdated"] is True
    assert old["message"] == f"{plain['message']} A call made since may have changed it."


# Cycles


WORKING: list[tuple[Call, ...]] = [
    (READ, EDIT),
    (LIST, MAKE),
    (NEUTRAL, OTHER),
    (SHOW, ("edit_file", {"path": "x"}, "It has 3 lines.")),
    (("edit_file", {"path": "x"}, KeyError("k")), ("press", {"key": 1}, RuntimeError("it is stuck"))),
    (("build", {}, RuntimeError("exit code 2")), ("test", {}, RuntimeError("exit code 1"))),
]
IDLE: list[tuple[Call, ...]] = [
    (READ, LIST),
    (READ, ("search", {"q": "x"}, ["y"]), CART),
    (("read_file", {"path": "y"}, FileNotFoundError("y")), ("search", {"q": "y"}, LookupError("no index"))),
]


@table(("lap", "refused"), [*((lap, False) for lap in WORKING), *((lap, True) for lap in IDLE)])
def test_a_cycle_is_told_only_with_work_in_it_and_refused_at_its_third_lap_else(
    lap: tuple[Call, ...], refused: bool, clock: Any
) -> None:
    one = Policy([Loops(unrepaired={"deny": None})], by_name=True).session("s", clock=clock)
    laps = 3 if refused else 9
    ends = ["loops.cycle" if refused else None] * len(lap)
    assert said(one, *lap * laps) == [None] * (laps - 1) * len(lap) + ends


def test_a_look_is_let_through_however_often_the_work_before_it_did_nothing(clock: Any) -> None:
    pressed = Policy([Loops()]).session("s", clock=clock)
    wait: list[Call] = [("panel", {"of": "lift"}, "closed"), ("press", {"key": 1}, {"pressed": True})]
    assert set(said(pressed, *wait * 12, ("panel", {"of": "lift"}, "open"))) == {None}


@table("place", [0, 1])
def test_a_cycle_with_one_new_answer_in_three_laps_is_none(place: int, clock: Any) -> None:
    one = Policy([Loops()]).session("s", clock=clock)
    laps = [[SHOW, PATCH] for _ in range(8)]
    for n in range(0, 8, 2):
        tool, arguments, value = laps[n][place]
        laps[n][place] = (tool, arguments, f"{value} {n}")
    assert set(said(one, *(call for lap in laps for call in lap))) == {None}


# Random worlds


@given(st.integers(0, 2**32))
def test_in_no_world_a_look_is_refused_after_its_object_has_changed(seed: int) -> None:
    assert harm(range(seed, seed + 1)).keys() <= {"looks", "refused"}


@pytest.mark.system
def test_in_many_worlds_no_look_is_refused_after_its_object_has_changed(long: bool) -> None:
    found = harm(range(3_000 if long else 1_000))
    assert found.keys() <= {"looks", "refused"}
    # A rule that never refuses would pass as well.
    assert found["refused"] > found["looks"] / 10


@given(st.sampled_from([look for look, _ in STORIES.values()]), st.booleans())
def test_a_look_that_is_stuck_is_refused_by_its_fifth_time(call: Call, turns: bool) -> None:
    now = 1_800_000_000.0
    one = Policy.load("default").session("s", clock=lambda: now)
    heard = []
    for _ in range(5):
        now += 10
        if turns:
            one.begin_turn()
        decision = one.decide(call[0], call[1])
        heard.append(decision.allowed)
        if decision.allowed:
            one.complete(decision, call[2])
    assert not heard[4]
