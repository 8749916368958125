"""
The laws of the simulated worlds: what each of them says of its calls is what its calls come to.
"""

import itertools
import math

from collections import Counter
from collections.abc import Iterable

import pytest

from benchmarks.learning.worlds.agent import session, stream
from benchmarks.learning.worlds.answers import FORMS
from benchmarks.learning.worlds.base import DAY_S, Call, Chance, Live, Thing
from benchmarks.learning.worlds.buckets import Buckets
from benchmarks.learning.worlds.hours import CLOSES, NIGHT, OPENS, Hours, is_open, worked_off
from benchmarks.learning.worlds.judge import OTHERS, WITH_FEW, Data, Sizes, left_out, mean
from benchmarks.learning.worlds.labels import relabelled, sound
from benchmarks.learning.worlds.queues import Queues, outages
from benchmarks.learning.worlds.replicas import Replicas
from benchmarks.learning.worlds.rows import NAMES, WORLDS, retried, rows
from benchmarks.learning.worlds.seen import DECLARATIONS, FALSE, WHOLE, seen
from benchmarks.learning.worlds.upstream import Upstream, key_of
from guardrails.policy.feature_file import shipped_spec


CLASSES = {form.flaw for form in FORMS}
every_world = pytest.mark.parametrize("name", WORLDS)


def calls_of(name: str, sessions: int = 150) -> list[Call]:
    made = itertools.islice(stream(WORLDS[name](7), range(3, 9)), sessions)
    return [call for calls in made for call in calls]


def off(pairs: Iterable[tuple[float, bool]]) -> float:
    """
    By how many standard deviations outcomes are off their chances.
    """
    rows_ = list(pairs)
    deviation = math.sqrt(sum(p * (1 - p) for p, _ in rows_)) + 1
    return abs(sum(p for p, _ in rows_) - sum(worked for _, worked in rows_)) / deviation


@every_world
def test_a_session_is_the_same_each_time(name: str) -> None:
    def told(seed: int) -> list[tuple[object, ...]]:
        return [call[:-1] for call in session(WORLDS[name](seed), 5, 2)]

    assert told(3) == told(3)
    assert told(3) != told(4)


@every_world
def test_calls_come_to_what_their_chances_say_in_each_part_of_the_range_and_of_each_tool(name: str) -> None:
    groups: dict[object, list[Call]] = {}
    for call in calls_of(name):
        groups.setdefault(int(call.chance.told * 10), []).append(call)
        groups.setdefault(call.tool.name, []).append(call)
    for group, calls in groups.items():
        assert off((call.chance.told, call.error is None) for call in calls) < 4, group
        assert off((call.chance.sound, call.error is None and not call.flaw) for call in calls) < 4, group


@every_world
def test_a_chance_that_is_asked_for_later_is_that_of_the_call_which_is_made_then(name: str) -> None:
    world = WORLDS[name](7)
    for number in range(20):
        live = Live(world, number)
        at = 3 * DAY_S + number * 3_000.0
        for tool in world.tools:
            thing = live.thing(tool, at)
            first = live.call(tool, thing, at)
            again = live.call(tool, thing, first.end + 30)
            assert first.later(first.end + 30) == again.chance


@every_world
def test_asking_for_chances_changes_nothing(name: str) -> None:
    world = WORLDS[name](7)
    for call in session(world, 11, 4):
        before = call.later(call.end + 5)
        assert all(isinstance(call.later(call.end + wait), Chance) for wait in (0, 60, 3_600))
        assert call.later(call.end + 5) == before


@every_world
def test_each_world_has_failures_that_pass_failures_that_stay_and_flaws(name: str) -> None:
    spec = shipped_spec()
    made = [one for number in range(60) for one in retried(spec, session(WORLDS[name](7), number, 5))]
    calls = calls_of(name)
    assert 0.05 < sum(one.failure.worked for one in made) / len(made) < 0.6
    assert 0.1 < sum(call.error is not None for call in calls) / len(calls) < 0.6
    assert Counter(call.flaw for call in calls if call.flaw)
    assert all(not call.flaw for call in calls if call.error)


def test_no_two_worlds_share_the_name_of_a_tool() -> None:
    names = [tool.name for world in WORLDS.values() for tool in world.tools]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", NAMES)
def test_rows_have_the_limit_for_each_wait_only_where_it_is_asked_for(name: str) -> None:
    spec = shipped_spec()
    assert [len(one.after) for one in rows(name, spec, range(2), 3)] == [0, 0, 0]
    for one in rows(name, spec, range(2), 20, limit=True):
        assert len(one.after) == len(spec.delays_ms)
        assert 0 <= one.chance.sound <= one.chance.told <= 1


def test_a_bucket_gives_what_it_holds_and_fills_at_its_rate() -> None:
    world = Buckets(1)
    tool = next(tool for tool in Buckets.tools if tool.name == "geocode")
    memory = None
    for _ in range(3):
        assert not world.odds(tool, Thing(1, "", (0.0,)), 0.0, memory).errors
        memory = world.learned(tool, Thing(1), 0.0, memory, None)
    limited = world.odds(tool, Thing(1, "", (0.0,)), 0.0, memory)
    assert limited.errors == (("rate_limit", 1.0),)
    assert limited.header == tool.refill
    assert not world.odds(tool, Thing(1, "", (0.0,)), tool.refill, memory).errors
    assert world.tokens(tool, 1e6, memory) == tool.capacity


def test_a_strict_bucket_counts_refused_calls_too() -> None:
    world = Buckets(1)
    tool = next(tool for tool in Buckets.tools if tool.strict)
    memory = None
    for error in (None, None, "rate_limit", "rate_limit"):
        memory = world.learned(tool, Thing(1), 10.0, memory, error)
    assert world.tokens(tool, 10.0 + 0.9 * tool.refill, memory) < 1
    refused = world.learned(tool, Thing(1), 10.0 + 0.9 * tool.refill, memory, "rate_limit")
    assert world.tokens(tool, 10.0 + 1.1 * tool.refill, refused) < 1


def test_a_window_by_the_clock_is_whole_again_at_its_end_however_long_one_has_waited() -> None:
    world = Buckets(1)
    for tool in (tool for tool in Buckets.tools if tool.window):
        starts = [number * tool.window for number in range(300)]
        assert not any(world.odds(tool, Thing(1, "", (0.0,)), start, None).errors for start in starts)
        ends = [bool(world.odds(tool, Thing(1, "", (0.0,)), start + 0.95 * tool.window, None).errors) for start in starts]  # fmt: skip
        assert abs(sum(ends) / len(ends) - tool.busy) < 0.1


def test_an_outage_that_has_lasted_is_expected_to_last_longer() -> None:
    made = [outages(seed, tool) for seed in range(3) for tool in Queues.tools if tool.tail < 1.3]
    lengths = [end - start for down in made for start, end in zip(down.starts, down.ends, strict=True)]
    left = [
        sum(length - age for length in lengths if length > age) / sum(length > age for length in lengths)
        for age in (0, 30, 120, 480)
    ]
    assert left == sorted(left)
    assert left[-1] > 3 * left[0]


def test_calls_get_through_one_by_one_while_the_backlog_of_an_outage_is_worked_off() -> None:
    world, tool = Queues(1), Queues.tools[0]
    down = outages(1, tool)
    start, end, drained = down.starts[0], down.ends[0], down.drained[0]
    chances = [world.chance(tool, Thing(1), start + share * (drained - start), None).told for share in (0.0, 0.1)]
    backlog = [world.chance(tool, Thing(1), end + share * (drained - end), None).told for share in (0.1, 0.5, 0.9)]
    assert chances == pytest.approx([0, 0])
    assert backlog == sorted(backlog)
    assert backlog[0] < 0.2
    assert backlog[-1] > 0.6


def test_what_was_written_reaches_one_replica_after_another_and_all_in_the_end() -> None:
    world = Replicas(1)
    tool = next(tool for tool in Replicas.tools if tool.name == "get_order")
    thing = Thing(1, "", (100.0, 0.0, 5.0, 10.0, 20.0))
    seen = [world.chance(tool, thing, at, None).told for at in (101.0, 106.0, 111.0, 121.0)]
    assert seen == pytest.approx([0, (1 - tool.flaky) / 3, 2 * (1 - tool.flaky) / 3, 1 - tool.flaky])


def test_where_nothing_is_missed_an_older_answer_looks_like_success() -> None:
    world = Replicas(1)
    tool = next(tool for tool in Replicas.tools if tool.name == "get_profile")
    early = world.chance(tool, Thing(1, "", (100.0, 0.0, 5.0, 10.0, 20.0)), 101.0, None)
    assert early.told == pytest.approx(1 - tool.flaky)
    assert early.sound == pytest.approx(0)


def test_people_work_in_business_hours_of_weekdays_only() -> None:
    thursday, saturday, monday = 0.0, 2 * DAY_S, 4 * DAY_S
    assert is_open(thursday + OPENS)
    assert not is_open(thursday + CLOSES)
    assert not is_open(saturday + OPENS)
    assert worked_off(thursday + OPENS, 60) == thursday + OPENS + 60
    assert worked_off(thursday, 60) == thursday + OPENS + 60
    friday = thursday + DAY_S
    assert worked_off(friday + CLOSES - 30, 60) == monday + OPENS + 30
    assert worked_off(saturday + 5, 0) == monday + OPENS


def test_maintenance_comes_each_night_and_names_its_end() -> None:
    world, tool = Hours(1), Hours.tools[0]
    for day in range(5):
        odds = world.odds(tool, Thing(1, "", (0.0, 0.0)), day * DAY_S + NIGHT[0] + 100, None)
        assert odds.errors == (("unavailable", 1.0),)
        assert odds.header == NIGHT[1] - NIGHT[0] - 100


def test_the_same_argument_fails_whoever_calls_and_another_one_works() -> None:
    world = Upstream(1)
    tool = next(tool for tool in Upstream.tools if tool.name == "history")
    kinds = {number: key_of(1, tool, number).kind for number in range(400)}
    poisoned = [number for number, kind in kinds.items() if kind == "poisoned"]
    assert abs(len(poisoned) / 400 - tool.poisoned) < 0.06
    for number, kind in list(kinds.items())[:100]:
        later = [world.chance(tool, Thing(1, "", (float(number),)), day * DAY_S, None).told for day in range(9)]
        assert (max(later) == 0) == (kind == "poisoned") or kind == "cold"


def test_a_cold_key_is_there_once_its_fill_is_done_and_not_before() -> None:
    world = Upstream(1)
    tool = next(tool for tool in Upstream.tools if tool.name == "report")
    number = next(number for number in range(400) if key_of(1, tool, number).kind == "cold")
    thing, fill = Thing(1, "", (float(number),)), key_of(1, tool, number).seconds
    memory = world.learned(tool, thing, 1_000.0, None, "timeout")
    assert [
        world.chance(tool, thing, 1_000.0 + after, memory).told > 0 for after in (0, fill - 1, fill + 1, 5_000)
    ] == [False, False, True, False]


@pytest.mark.slow
def test_a_little_of_a_world_of_its_own_is_worth_more_than_much_of_others() -> None:
    found = left_out(Data(Sizes(1_200, 1_000), names=("buckets", "replicas", "hours")), trees=False)
    others, few = mean(found, OTHERS), mean(found, WITH_FEW)
    assert others.skill + 0.1 < few.skill < 1
    assert others.value + 5 < few.value < 100
    assert few.ece < others.ece


def test_no_honest_answer_is_called_a_failure_whatever_is_declared() -> None:
    for declared in DECLARATIONS.values():
        assert not any(counts[FALSE] for counts in seen(declared).values())


def test_more_of_each_class_is_seen_the_more_is_declared() -> None:
    by_class = [seen(declared) for declared in DECLARATIONS.values()]
    for flaw in by_class[0]:
        missed = [counts[flaw][WHOLE] for counts in by_class]
        assert missed == sorted(missed, reverse=True), flaw
    assert by_class[-1]["schema"][WHOLE] == 0


def test_what_nothing_in_a_result_tells_apart_is_never_seen() -> None:
    same = [form for form in FORMS if form.answer == form.honest]
    assert {form.flaw for form in same} == {"no_op", "empty"}


def test_every_class_of_the_worlds_has_forms() -> None:
    met = {call.flaw for name in WORLDS for call in calls_of(name) if call.flaw}
    assert met <= {form.flaw for form in FORMS}
    assert len(met) >= 6


def test_labels_are_as_wrong_as_the_faults_that_are_not_caught() -> None:
    spec = shipped_spec()
    made = rows("queues", spec, range(3), 400, limit=True)
    flawed = sum(bool(one.flaw) for one in made)
    told, true = (sum(row.worked for row in relabelled(made, dict.fromkeys(CLASSES, share))) for share in (0.0, 1.0))
    assert flawed > 0
    assert told - true == flawed
    assert [one.failure.worked for one in sound(made)] == [one.sound for one in made]
