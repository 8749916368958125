"""
Which settings the figures of one tool support, and which they do not.
"""

from typing import Any

from guardrails import Duplicates, Loops, Policy, Retryable, Tool
from guardrails.offline.report.suggestions import SESSIONS, suggestion
from guardrails.offline.report.tally import Odds, Tally
from tests.tables import table


EVIDENCE = Duplicates(rule="evidence", window=20)
ALWAYS = Duplicates(window=5)


def settings(tally: Tally, *guards: Any, **declared: Any) -> dict[str, Any]:
    """
    What is suggested for *tally* under a policy of *guards* that declares the tool so, repeats in enough sessions given.
    """
    vars(tally)["repeat_sessions"] = tally.repeat_sessions or SESSIONS
    policy = Policy(list(guards), tools=[Tool(name=tally.tool, **declared)])
    made = suggestion(tally, policy.chain.plan(tally.tool))
    if made is None:
        return {}
    assert list(made.evidence) == list(made.settings)
    assert all(made.evidence.values())
    return made.settings


def test_without_figures_nothing_is_suggested() -> None:
    assert settings(Tally("a"), EVIDENCE, Loops(), Retryable()) == {}
    assert settings(Tally("a"), ALWAYS) == {}


@table("name", ["", "x" * 201, "a\nb", "a\x00", "\u202ea", "\u2028"])
def test_a_name_that_no_file_should_hold_gets_no_rule(name: str) -> None:
    tally = Tally(name, polls=Odds(20, 20), poll_sessions=20)
    plan = Policy([]).chain.plan("any")
    assert suggestion(tally, plan) is None


def test_a_tool_that_polls_gets_no_rule_against_repeats() -> None:
    tally = Tally("job", polls=Odds(20, 20), poll_sessions=20, always={1: Odds(200, 200)}, stable=Odds(200, 200))
    assert settings(tally, EVIDENCE, read_only=True) == {"repeats": "allow"}


@table(
    "always, expected",
    [
        ({1: Odds(35, 35)}, {"rule": "always", "window": 1}),
        ({1: Odds(34, 34)}, None),
        ({1: Odds(30, 30), 4: Odds(10, 10)}, {"rule": "always", "window": 4}),
        ({1: Odds(100, 100), 9: Odds(10, 2)}, {"rule": "always", "window": 1}),
        ({1: Odds(100, 80)}, None),
        ({1: Odds(100, 90), 2: Odds(5, 5)}, None),
    ],
)
def test_any_repeat_is_refused_as_far_back_as_hardly_one_brought_something(
    always: dict[int, Odds], expected: dict[str, Any] | None
) -> None:
    assert settings(Tally("a", always=always), EVIDENCE).get("duplicates") == expected


@table(
    "always, expected",
    [
        ({1: Odds(50, 50)}, None),
        ({2: Odds(20, 10)}, {"rule": "evidence", "window": 20}),
        ({2: Odds(2, 0)}, None),
        ({1: Odds(60, 60), 9: Odds(40, 40)}, {"rule": "always", "window": 9}),
    ],
)
def test_a_rule_that_refuses_any_repeat_is_widened_or_gives_way(
    always: dict[int, Odds], expected: dict[str, Any] | None
) -> None:
    assert settings(Tally("a", always=always), ALWAYS).get("duplicates") == expected


@table("sessions, expected", [(1, set()), (2, set()), (3, {"duplicates", "retryable"})])
def test_repeats_of_few_sessions_support_nothing(sessions: int, expected: set[str]) -> None:
    tally = Tally("a", always={1: Odds(90, 90)}, by_attempt={1: Odds(90, 0)}, repeat_sessions=sessions)
    assert set(settings(tally, EVIDENCE, Retryable())) == expected


@table(
    "own, read_only, expected",
    [
        (Odds(35, 35), True, True),
        (Odds(35, 35), None, False),
        (Odds(34, 34), True, False),
        (Odds(200, 199), True, False),
    ],
)
def test_a_tool_that_changes_nothing_is_stable_where_its_repeats_say_so(
    own: Odds, read_only: bool | None, expected: bool
) -> None:
    found = settings(Tally("a", stable=own), EVIDENCE, read_only=read_only)
    assert found == ({"repeats": "evidence"} if expected else {})
    assert settings(Tally("a", stable=own), ALWAYS, read_only=read_only) == {}


def test_what_is_declared_as_steady_needs_no_rule() -> None:
    tally = Tally("a", stable=Odds(40, 40), always={1: Odds(50, 50)})
    assert settings(tally, EVIDENCE, read_only=True) == {"repeats": "evidence"}


def durations(*told: tuple[int, float]) -> list[int]:
    return [round(ms) for times, ms in told for _ in range(times)]


FAST, HANGS = durations((200, 500.0)), durations((10, 600_000.0))


@table(
    "name, declared", [("ask_user", {}), ("request_approval", {}), ("a", {"repeats": "allow"}), ("a", {"timeout": 5.0})]
)
def test_no_timeout_is_suggested_for_what_waits_for_a_person_or_has_one(name: str, declared: dict[str, Any]) -> None:
    assert settings(Tally(name, worked_ms=FAST, failed_ms=HANGS), **declared) == {}


def test_durations_of_other_transcripts_never_make_a_timeout() -> None:
    assert settings(Tally("a", ms=durations((5_000, 500.0), (10, 600_000.0)))) == {}
