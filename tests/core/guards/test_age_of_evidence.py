"""
Equal results speak for a while: who looks again at once is stopped, who looks again later is not (MISSION A6, A12).
"""

from collections.abc import Sequence
from itertools import count
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.loops import stories
from benchmarks.loops import table as timed
from guardrails import Duplicates, Loops, Policy, Rule, Tool
from guardrails.core.guards.evidence import BURST_MS, SHARE
from guardrails.core.state import LEAP_MS
from tests.core.guards.calls import gives
from tests.tables import table


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


@table("name", stories.TIMED_LOOPS)
def test_who_looks_again_at_once_is_told_and_refused_unless_it_works_or_asks_for_others(name: str) -> None:
    told = name.startswith(("synchronised", "orders"))
    assert timed.said(Policy.load("default"), "s", stories.TIMED_LOOPS[name]) == (True, not told)


@table("policy", ["default", "observe"])
@table("name", stories.TIMED_HONEST)
def test_who_looks_again_later_is_not(name: str, policy: str) -> None:
    assert not timed.said(Policy.load(policy), "s", stories.TIMED_HONEST[name])[1]


@table("way", WAYS)
@table(("paces", "stopped"), [
    *(((0, min(max(third, 61), 120), third), third <= 30) for third in (0.1, 5, 30, 60.1, 300, DAY, 30 * DAY)),
    # An agent that is stuck is stopped at its third look, whatever its pace.
    *(([pace] * 3, True) for pace in (0.1, 1, 5, 10, 20, 30, 60)),
])  # fmt: skip
def test_the_third_look_is_refused_only_while_the_first_two_speak(way: str, paces: Any, stopped: bool) -> None:
    assert refused(WAYS[way], [(pace, "same") for pace in paces]) == [False, False, stopped]


# What was seen to change by itself


@table("way", WAYS)
@table(("first", "stopped"), [(108, True), (107, False), ([], False), (FileNotFoundError("no such file: x"), True)])
def test_a_source_that_moved_goes_on_to_move(way: str, first: Any, stopped: bool) -> None:
    assert any(refused(WAYS[way], [(5, first), *[(5, 108)] * 4])[2:]) is stopped


@table("looks", [
    [(5, {"now": f"2026-11-22T10:00:{n:02d}Z", "sky": "grey"}) for n in range(10, 50, 5)],
    [(5, TimeoutError("timed out")), *[(5, "same")] * 3],
])  # fmt: skip
def test_a_clock_in_the_result_or_a_failure_that_passes_is_no_move(looks: Any) -> None:
    assert any(refused(WAYS["default"], looks))


def test_what_own_work_has_changed_is_no_source_that_moves(clock: Any) -> None:
    one = WAYS["default"].session(f"s{next(NAMES)}", clock=clock)
    for tool, shown in (("look", "a"), ("edit", "ok"), ("look", "b"), ("look", "b")):
        clock.advance(5)
        assert one.call(tool, {"at": "x"}, gives(shown)).ok
    clock.advance(5)
    assert not one.decide("look", {"at": "x"}).allowed


def test_a_source_that_moved_is_remembered_beyond_the_window(clock: Any) -> None:
    one = WAYS["default"].session(f"s{next(NAMES)}", clock=clock)
    story = [("look", {"at": "x"}, "a"), ("look", {"at": "x"}, "b")]
    story += [("look", {"at": f"y{n}"}, f"{n}") for n in range(40)] + [("look", {"at": "x"}, "b")] * 5
    for tool, arguments, shown in story:
        clock.advance(5)
        assert one.call(tool, arguments, gives(shown)).ok


def test_a_stable_tool_is_stable_until_it_was_seen_to_move(clock: Any) -> None:
    tools = [Tool(name="look", repeats="evidence")]
    one = Policy([Duplicates(rule="evidence")], tools=tools).session("t", clock=clock)
    # The window forgets the first; what is shown next is another thing.
    for at in ("x", *"abcdef", "x"):
        clock.advance(5)
        one.complete(one.decide("look", {"at": at}), {"at": at, "n": clock.now})
    clock.advance(5)
    assert one.decide("look", {"at": "x"}).allowed


# As it is asked for

EVIDENCE = Duplicates(rule="evidence")
SURE = [Duplicates(rule="evidence", settled_for=None), Loops(settled_for=None)]
LONGER = [Rule(match="look", guards={"duplicates": {"settled_for": 600.0}})]


@table(("policy", "looks", "heard"), [
    (Policy([Loops(identical={"deny": 1})], tools=READ), [(0, 1), (60, 1)], ".R"),
    (Policy([Loops(identical={"deny": 1})], tools=READ), [(0, 1), (61, 1), (61, 1)], "..."),
    # Whoever says that nothing else changes is believed.
    (Policy(SURE), [(0, 1), *[(DAY, 2)] * 3], "...R"),
    (Policy([Duplicates()]), [(0, 1), (DAY, 2), (DAY, 2)], ".RR"),
    (Policy([EVIDENCE], rules=LONGER), [(300, "same")] * 3, "..R"),
    # A clock that goes back makes no look late.
    (WAYS["default"], [(5, "same"), (5, "same"), (-3_600, "same")], "..R"),
    (Policy([EVIDENCE], tools=[Tool(name="look", repeats="evidence")]), [(0, "same"), (30 * DAY, "same")], ".R"),
])  # fmt: skip
def test_how_long_results_speak_is_set(policy: Policy, looks: Any, heard: str) -> None:
    assert "".join(".R"[no] for no in refused(policy, looks)) == heard


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
