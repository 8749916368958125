"""
Equal results speak for a while: who looks again at once is stopped, who looks again later is not (MISSION A6, A12).
"""

from collections.abc import Sequence
from itertools import count
from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.loops import stories, table
from guardrails import Duplicates, Loops, Policy, Rule, Tool
from guardrails.core.guards.evidence import BURST_MS, SHARE
from guardrails.core.state import LEAP_MS
from guardrails.sinks import MemorySink
from tests.replaying import replay


DAY = 86_400.0
READ = [Tool(name="look", read_only=True)]
DEFAULT = Policy.load("default").chain
NAMES = count()
WAYS: dict[str, Policy] = {
    "default": Policy(
        [guard for guard in DEFAULT.guards if guard.name in ("duplicates", "loops", "retryable")],
        rules=DEFAULT.rules,
        tools=READ,
        by_name=True,
    ),
    "duplicates": Policy([Duplicates(rule="evidence", window=20)], tools=READ),
    "undeclared": Policy([Duplicates(rule="evidence", window=20), Loops()]),
}


def shows(value: Any) -> Any:
    return lambda _tool, _arguments: value


def refused(policy: Policy, looks: Sequence[tuple[float, Any]], **asked: Any) -> list[bool]:
    """
    Of each look, (seconds since the one before, what it shows), whether it was refused.
    """
    now, heard = [1_800_000_000.0], []
    one = policy.session(f"s{next(NAMES)}", clock=lambda: now[0], **asked)
    for pause, shown in looks:
        now[0] += pause
        decision = one.decide("look", {"at": "x"})
        heard.append(not decision.allowed)
        if decision.allowed:
            one.complete(decision, shown)
    return heard


# Twins: only the times differ


@pytest.mark.parametrize("name", stories.TIMED_LOOPS)
def test_who_looks_again_at_once_is_told_and_refused_unless_it_works_or_asks_for_others(name: str) -> None:
    told = name.startswith(("synchronised", "orders"))
    assert table.said(Policy.load("default"), "s", stories.TIMED_LOOPS[name]) == (True, not told)


@pytest.mark.parametrize("policy", ["default", "observe"])
@pytest.mark.parametrize("name", stories.TIMED_HONEST)
def test_who_looks_again_later_is_not(name: str, policy: str) -> None:
    assert not table.said(Policy.load(policy), "s", stories.TIMED_HONEST[name])[1]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("third", "stopped"),
    [(0.1, True), (5, True), (30, True), (60.1, False), (300, False), (DAY, False), (30 * DAY, False)],
)
def test_the_third_look_is_refused_only_while_the_first_two_speak(way: str, third: float, stopped: bool) -> None:
    assert refused(WAYS[way], [(0, "same"), (min(max(third, 61), 120), "same"), (third, "same")])[2] is stopped


@pytest.mark.parametrize("pace", [0.1, 1, 5, 10, 20, 30, 60])
@pytest.mark.parametrize("way", ["default", "duplicates", "undeclared"])
def test_an_agent_that_is_stuck_is_stopped_at_its_third_look(way: str, pace: float) -> None:
    assert refused(WAYS[way], [(pace, "same")] * 3) == [False, False, True]


# What was seen to change by itself


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("first", "stopped"), [(108, True), (107, False), ([], False), (FileNotFoundError("no such file: x"), True)]
)
def test_a_source_that_moved_goes_on_to_move(way: str, first: Any, stopped: bool) -> None:
    looks = [(5, first), (5, 108), (5, 108), (5, 108), (5, 108)]
    assert any(refused(WAYS[way], looks)[2:]) is stopped


def test_a_clock_in_the_result_is_no_move() -> None:
    looks = [(5, {"now": f"2026-11-22T10:00:{n:02d}Z", "sky": "grey"}) for n in range(10, 50, 5)]
    assert any(refused(WAYS["default"], looks))


def test_a_failure_that_passes_is_no_move() -> None:
    assert refused(WAYS["default"], [(5, TimeoutError("timed out")), *[(5, "same")] * 3])[3]


def test_what_own_work_has_changed_is_no_source_that_moves(clock: Any) -> None:
    one = WAYS["default"].session(f"s{next(NAMES)}", clock=clock)
    for tool, shown in (("look", "a"), ("edit", "ok"), ("look", "b"), ("look", "b")):
        clock.advance(5)
        assert one.call(tool, {"at": "x"}, shows(shown)).ok
    clock.advance(5)
    assert not one.decide("look", {"at": "x"}).allowed


def test_a_source_that_moved_is_remembered_beyond_the_window(clock: Any) -> None:
    one = WAYS["default"].session(f"s{next(NAMES)}", clock=clock)
    story = [("look", {"at": "x"}, "a"), ("look", {"at": "x"}, "b")]
    story += [("look", {"at": f"y{n}"}, f"{n}") for n in range(40)] + [("look", {"at": "x"}, "b")] * 5
    for tool, arguments, shown in story:
        clock.advance(5)
        assert one.call(tool, arguments, shows(shown)).ok


def test_a_stable_tool_is_stable_until_it_was_seen_to_move(clock: Any) -> None:
    tools = [Tool(name="look", repeats="evidence")]
    policy = Policy([Duplicates(rule="evidence")], tools=tools)
    assert refused(policy, [(0, "same"), (30 * DAY, "same")]) == [False, True]
    one = policy.session("t", clock=clock)
    # The window forgets the first; what is shown next is another thing.
    for at in ("x", *"abcdef", "x"):
        clock.advance(5)
        one.complete(one.decide("look", {"at": at}), {"at": at, "n": clock.now})
    clock.advance(5)
    assert one.decide("look", {"at": "x"}).allowed


# As it is asked for


def test_a_second_look_at_once_is_refused_where_that_is_asked_for() -> None:
    policy = Policy([Loops(identical={"deny": 1})], tools=READ)
    assert refused(policy, [(0, 1), (60, 1)]) == [False, True]
    assert refused(policy, [(0, 1), (61, 1), (61, 1)]) == [False, False, False]


def test_whoever_says_that_nothing_else_changes_is_believed() -> None:
    sure = Policy([Duplicates(rule="evidence", settled_for=None), Loops(settled_for=None)])
    assert refused(sure, [(0, 1), *[(DAY, 2)] * 3])[3]


def test_whatever_is_always_a_duplicate_stays_one() -> None:
    assert refused(Policy([Duplicates()]), [(0, 1), (DAY, 2), (DAY, 2)]) == [False, True, True]


def test_how_long_results_speak_is_set_for_single_tools() -> None:
    rules = [Rule(match="look", guards={"duplicates": {"settled_for": 600.0}})]
    policy = Policy([Duplicates(rule="evidence")], rules=rules)
    assert refused(policy, [(300, "same")] * 3)[2]


# Clocks


def test_a_clock_that_goes_back_makes_no_look_late() -> None:
    assert refused(WAYS["default"], [(5, "same"), (5, "same"), (-3_600, "same")])[2]


# Laws

PAUSES = st.sampled_from([0.0, 0.1, 1, 5, 29, 30, 31, 59, 60, 61, 90, 300, 3_600, DAY, LEAP_MS / 2_000])
LOOKS = st.lists(st.tuples(PAUSES, st.sampled_from(["a", "a", "a", "b"])), max_size=14)


@given(st.sampled_from([*WAYS]), LOOKS)
def test_a_look_later_than_its_stretch_is_never_refused(way: str, looks: list[tuple[float, str]]) -> None:
    since: list[float] = []
    for (pause, _), stopped in zip(looks, refused(WAYS[way], looks), strict=True):
        since = [seconds + pause for seconds in since]
        if stopped:
            apart = since[-2] - since[-1]
            assert apart <= 120 + 1e-6
            assert since[-1] <= min(60, max(BURST_MS / 1_000, SHARE * apart)) + 1e-6
        else:
            since = [*since, 0.0]


@given(st.sampled_from([*WAYS]), LOOKS)
def test_a_source_that_moved_by_itself_is_never_refused(way: str, looks: list[tuple[float, str]]) -> None:
    looks = [(max(pause, 0.1), shown) for pause, shown in looks]
    assert not any(refused(WAYS[way], [(1, "c"), (1, "d"), *looks])[2:])


@given(LOOKS)
def test_records_decide_every_look_again(looks: list[tuple[float, str]]) -> None:
    sink = MemorySink()
    before = refused(WAYS["default"], looks, records=sink)
    again = [bool(replayed.made["denials"]) for replayed in replay(WAYS["default"].chain, sink.records)]
    assert again == before
