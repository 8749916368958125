"""
When a result is evidence against the next look: not after work, not for long, not of what moves (MISSION A6, A12).
"""

from collections.abc import Sequence
from itertools import count
from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.loops import stories
from benchmarks.loops import table as timed
from guardrails import Duplicates, Loops, Policy, Tool
from guardrails.core.chain import Rule
from guardrails.core.guards.evidence import BURST_MS, SHARE
from guardrails.core.state import LEAP_MS
from tests.core.guards.calls import gives
from tests.core.guards.worlds import harm
from tests.core.result.carriers import block
from tests.tables import table


Call = tuple[str, dict[str, Any], Any]

DAY = 86_400.0
NUMBERS = count()
READ: Call = ("read_file", {"path": "x"}, "old")
EDIT: Call = ("edit_file", {"path": "x"}, "ok")
SHOW: Call = ("exec_shell", {"command": "pytest"}, "1 failed")
PATCH: Call = ("exec_shell", {"command": "patch -p1"}, "")
CART: Call = ("get_cart", {}, {"items": []})
LIST: Call = ("ls", {"path": "."}, "a.py")
NEUTRAL: Call = ("alpha", {"of": 1}, "v1")
OTHER: Call = ("beta", {"of": 1}, "page B")
HALF: Call = ("exec_shell", {"command": "mkdir out && cp gone out"}, FileNotFoundError("no such file: gone"))
STORIES: tuple[tuple[Call, Call], ...] = (
    (READ, EDIT), (SHOW, PATCH), (CART, ("add_item", {"id": 7}, "ok")), (NEUTRAL, OTHER),
    # Work that failed half-way, timed out, or was refused its arguments.
    (("exec_shell", {"command": "ls"}, "a"), HALF), (READ, ("edit_file", {"path": "x"}, TimeoutError("timed out"))),
    (READ, ("edit_file", {"path": "x"}, ValueError("old text not found"))),
)  # fmt: skip
WINDOW = Duplicates(rule="evidence", window=20)
EVIDENCE = Duplicates(rule="evidence")


def fresh(policy: Policy, clock: Any) -> Any:
    return policy.session(f"s{next(NUMBERS)}", clock=clock)


def said(session: Any, *calls: Call) -> list[str | None]:
    """
    The code of each refusal, None for a call that ran; each call in a turn of its own.
    """
    codes = []
    for tool, arguments, value in calls:
        session.begin_turn()
        decision = session.decide(tool, arguments)
        codes.append(decision.code)
        if decision.allowed:
            session.complete(decision, value)
    return codes


# Work


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


@table("policy", POLICIES)
@table(("look", "work"), STORIES)
def test_work_frees_the_look(policy: Policy, look: Call, work: Call, clock: Any) -> None:
    one = fresh(policy, clock)
    for _ in range(2):
        said(one, look)
        clock.advance(61)
    assert said(one, work, look)[1] is None


@table("between", [(), ("list_files", {}, "x"), ("edit", {}, RuntimeError("Unknown tool: edit"))])
def test_a_look_elsewhere_or_a_tool_that_is_not_there_is_no_work(between: Any, clock: Any) -> None:
    for look, _ in STORIES:
        code = said(fresh(POLICIES[0], clock), look, look, *([between] if between else []), look)[-1]
        assert code in ("duplicates.evidence", "loops.same_error")


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


WORKING: list[tuple[Call, ...]] = [
    (READ, EDIT), (NEUTRAL, OTHER), (SHOW, ("edit_file", {"path": "x"}, "It has 3 lines.")),
    (("edit_file", {"path": "x"}, KeyError("k")), ("press", {"key": 1}, RuntimeError("it is stuck"))),
    (("build", {}, RuntimeError("exit code 2")), ("test", {}, RuntimeError("exit code 1"))),
]  # fmt: skip
IDLE: list[tuple[Call, ...]] = [
    (READ, LIST), (READ, ("search", {"q": "x"}, ["y"]), CART),
    (("read_file", {"path": "y"}, FileNotFoundError("y")), ("search", {"q": "y"}, LookupError("no index"))),
]  # fmt: skip


@table(("lap", "refused"), [*((lap, False) for lap in WORKING), *((lap, True) for lap in IDLE)])
def test_a_cycle_without_work_is_refused_at_its_third_lap(lap: tuple[Call, ...], refused: bool, clock: Any) -> None:
    one = fresh(Policy([Loops(unrepaired={"deny": None})], by_name=True), clock)
    laps = 3 if refused else 9
    ends = ["loops.cycle" if refused else None] * len(lap)
    assert said(one, *lap * laps) == [None] * (laps - 1) * len(lap) + ends


@table("place", [0, 1])
def test_a_cycle_with_one_new_answer_in_three_laps_is_none(place: int, clock: Any) -> None:
    laps = [[SHOW, PATCH] for _ in range(8)]
    for n in range(0, 8, 2):
        tool, arguments, value = laps[n][place]
        laps[n][place] = (tool, arguments, f"{value} {n}")
    assert set(said(fresh(POLICIES[2], clock), *(call for lap in laps for call in lap))) == {None}


@given(st.integers(0, 2**32))
def test_in_no_world_a_look_is_refused_after_its_object_has_changed(seed: int) -> None:
    assert harm(range(seed, seed + 1)).keys() <= {"looks", "refused"}


@pytest.mark.system
def test_in_many_worlds_no_look_is_refused_after_its_object_has_changed(long: bool) -> None:
    found = harm(range(3_000 if long else 300))
    assert found.keys() <= {"looks", "refused"}
    # A rule that never refuses would pass as well.
    assert found["refused"] > found["looks"] / 10


# Time: only the pauses differ


LOOK = [Tool(name="look", read_only=True)]
DEFAULT = Policy.load("default").chain
WAYS: dict[str, Policy] = {
    "default": Policy(
        [guard for guard in DEFAULT.guards if guard.name in ("duplicates", "loops", "retryable")],
        rules=DEFAULT.rules,
        tools=LOOK,
        by_name=True,
    ),
    "duplicates": Policy([WINDOW], tools=LOOK),
    "undeclared": Policy([WINDOW, Loops()]),
}


def looked(policy: Policy, looks: Sequence[tuple[float, Any]]) -> str:
    """
    Of each look, (seconds since the one before, what it shows): `.` if it ran, `R` if it was refused.
    """
    now, seen = [1_800_000_000.0], ""
    one = fresh(policy, lambda: now[0])
    for pause, shown in looks:
        now[0] += pause
        decision = one.decide("look", {"at": "x"})
        seen += "." if decision.allowed else "R"
        if decision.allowed:
            one.complete(decision, shown)
    return seen


@table("name", stories.TIMED_LOOPS)
def test_who_looks_again_at_once_is_told_and_refused_unless_it_works_or_asks_for_others(name: str) -> None:
    told = name.startswith(("synchronised", "orders"))
    assert timed.said(Policy.load("default"), "s", stories.TIMED_LOOPS[name]) == (True, not told)


@table("policy", ["default", "observe"])
@table("name", stories.TIMED_HONEST)
def test_who_looks_again_later_is_not(name: str, policy: str) -> None:
    assert not timed.said(Policy.load(policy), "s", stories.TIMED_HONEST[name])[1]


@table("way", WAYS)
@table(("looks", "seen"), [
    *(([(pause, "same") for pause in (0, min(max(third, 61), 120), third)], "..R" if third <= 30 else "...")
      for third in (0.1, 5, 30, 60.1, 300, DAY, 30 * DAY)),
    # An agent that is stuck is stopped at its third look, whatever its pace.
    *(([(pace, "same")] * 3, "..R") for pace in (0.1, 1, 5, 10, 20, 30, 60)),
    # What was seen to change by itself goes on to do so.
    *(([(5, first), *[(5, 108)] * 4], seen) for first, seen in ((108, "..RRR"), (107, "....."), ([], "....."))),
])  # fmt: skip
def test_the_third_look_is_refused_only_while_the_first_two_speak(way: str, looks: Any, seen: str) -> None:
    assert looked(WAYS[way], looks) == seen


@table("looks", [
    [(5, {"now": f"2026-11-22T10:00:{n:02d}Z", "sky": "grey"}) for n in range(10, 50, 5)],
    *([(5, error), *[(5, "same")] * 3] for error in (TimeoutError("timed out"), FileNotFoundError("no such file"))),
])  # fmt: skip
def test_a_clock_in_the_result_or_a_failure_that_passes_is_no_move(looks: Any) -> None:
    assert "R" in looked(WAYS["default"], looks)


@table(("calls", "seen"), [
    # What own work has changed is no source that moves.
    ([("look", "a"), ("edit", "ok"), ("look", "b"), ("look", "b"), ("look", "b")], "....R"),
    # A source that moved is remembered beyond the window.
    ([("look", "a"), ("look", "b"), *((f"look {n}", f"{n}") for n in range(40)), *[("look", "b")] * 5], "." * 47),
])  # fmt: skip
def test_what_changed_by_itself_moves_and_what_own_work_changed_does_not(calls: Any, seen: str, clock: Any) -> None:
    one, ran = fresh(WAYS["default"], clock), ""
    for what, shown in calls:
        clock.advance(5)
        tool, _, at = what.partition(" ")
        ran += ".R"[one.call(tool, {"at": at or "x"}, gives(shown)).code is not None]
    assert ran == seen


LONGER = [Rule(match="look", guards={"duplicates": {"settled_for": 600.0}})]


@table(("policy", "looks", "seen"), [
    (Policy([Loops(identical={"deny": 1})], tools=LOOK), [(0, 1), (60, 1)], ".R"),
    (Policy([Loops(identical={"deny": 1})], tools=LOOK), [(0, 1), (61, 1), (61, 1)], "..."),
    # Whoever says that nothing else changes is believed.
    (Policy([Duplicates(rule="evidence", settled_for=None), Loops(settled_for=None)]), [(0, 1), *[(DAY, 2)] * 3], "...R"),
    (Policy([Duplicates()]), [(0, 1), (DAY, 2), (DAY, 2)], ".RR"),
    (Policy([EVIDENCE], rules=LONGER), [(300, "same")] * 3, "..R"),
    # A clock that goes back makes no look late.
    (WAYS["default"], [(5, "same"), (5, "same"), (-3_600, "same")], "..R"),
    (Policy([EVIDENCE], tools=[Tool(name="look", repeats="evidence")]), [(0, "same"), (30 * DAY, "same")], ".R"),
])  # fmt: skip
def test_how_long_results_speak_is_set(policy: Policy, looks: Any, seen: str) -> None:
    assert looked(policy, looks) == seen


PAUSES = st.sampled_from([0.0, 0.1, 1, 5, 29, 30, 31, 59, 60, 61, 90, 300, 3_600, DAY, LEAP_MS / 2_000])
LOOKS = st.lists(st.tuples(PAUSES, st.sampled_from(["a", "a", "a", "b"])), max_size=14)


@given(st.sampled_from([*WAYS]), LOOKS)
def test_a_look_later_than_its_stretch_is_never_refused_nor_one_at_what_moved(way: str, looks: Any) -> None:
    since: list[float] = []
    for (pause, _), seen in zip(looks, looked(WAYS[way], looks), strict=True):
        since = [seconds + pause for seconds in since]
        if seen == "R":
            apart = since[-2] - since[-1]
            assert apart <= 120 + 1e-6
            assert since[-1] <= min(60, max(BURST_MS / 1_000, SHARE * apart)) + 1e-6
        else:
            since = [*since, 0.0]
    moved = [(1, "c"), (1, "d"), *((max(pause, 0.1), shown) for pause, shown in looks)]
    assert "R" not in looked(WAYS[way], moved)[2:]


# Declarations


@table(("values", "tool", "ran"), [
    (["ok", "ok"], Tool(name="pay", repeats="evidence"), ".R"), (["ok", "ok"], Tool(name="pay"), ".."),
    (["running"] * 4, Tool(name="get_job", repeats="evidence"), "...."),
    # What a user's message frees.
    (["a", "a", None, "a", "a", "a"], Tool(name="get_a"), "....R"), (["a", "a", "a"], Tool(name="get_a"), "..R"),
    # An empty text is no evidence unless it was asked for.
    *(([value] * 5, Tool(name=name), ".....") for name, value in (
        ("computer", ""), ("xdotool", {"content": [block("")]}), ("bash", {"output": ""}), ("run_sql", ""),
    )),
    ([""] * 5, Tool(name="get_note"), "..RRR"),
    (["a menu with three entries, the second is chosen"] * 5, Tool(name="computer"), "..RRR"),
])  # fmt: skip
def test_what_is_evidence_is_declared_or_said_by_the_user(values: list[Any], tool: Tool, ran: str, clock: Any) -> None:
    session, seen = Policy.load("default").session(f"s{next(NUMBERS)}", clock=clock, tools=[tool]), ""
    for value in values:
        if value is None:
            session.ledger.go_on()
            continue
        seen += "." if session.call(tool.name, {"q": "z"}, gives(value)).ok else "R"
        clock.advance(10)
    assert seen == ran
