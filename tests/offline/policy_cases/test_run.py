"""
Living through a case.
"""

from typing import Any

from guardrails import Budget, Duplicates, Nudge, Policy
from guardrails.core.guards.base import Guard, guard
from guardrails.offline.policy_cases import Case, Result, read_cases, run_case
from guardrails.offline.policy_cases.run import differing, filled
from tests.tables import table


def case(steps: str, tools: str = "[]") -> Case:
    return read_cases(f"version: 1\ncases:\n- name: a case\n  tools: {tools}\n  steps:\n{steps}").cases[0]


def run(policy: Policy, steps: str, tools: str = "[]") -> Result:
    return run_case(policy, case(steps, tools))


def told(policy: Policy, steps: str, tools: str = "[]") -> list[str]:
    return [f"{failure.line}: {failure}" for failure in run(policy, steps, tools).failures]


@guard
class Watch(Guard):
    """
    Nudges every call of `search`, fails on `broken`.
    """

    def check(self, call: Any, state: Any, mine: Any, facts: Any) -> Nudge | None:
        if call.tool == "broken":
            raise RuntimeError("no luck")
        return Nudge(code="watch.search", hint="Be brief.") if call.tool == "search" else None


NOTHING = Policy([])
EVERY = Policy([Budget(max_calls=2), Duplicates(window=5)])
WATCHED = Policy([Watch()])


@table(
    "policy, step, expected",
    [
        (NOTHING, "call: a", None),
        (NOTHING, "call: a, expect: deny, code: x.y", "expected deny x.y; decided allow"),
        (WATCHED, "call: search, expect: nudge, code: watch.search, envelope: {next_action_hint: Be brief.}", None),
        (WATCHED, "call: search", "expected allow; decided nudge watch.search"),
        (WATCHED, "call: search, expect: nudge, code: x.y", "expected nudge x.y; decided nudge watch.search"),
        (WATCHED, "call: broken, expect: deny, code: call.error", None),
        (
            WATCHED,
            "call: broken",
            "expected allow; decided deny call.error, guard `watch` failed (RuntimeError: no luck)",
        ),
        (Policy([Watch()], on_error="allow"), "call: broken", None),
        (Policy([Budget(max_calls=0)]), "call: a", "expected allow; decided deny budget.max_calls"),
        (
            Policy([Budget(max_calls=0), Duplicates()], mode="observe"),
            "call: a",
            "expected observed nothing; decided allow, observed budget.max_calls",
        ),
        (Policy([Budget(max_calls=0)], mode="observe"), "call: a, observed: budget.max_calls", None),
        (Policy([Watch()], mode="observe"), "call: search, observed: watch.search", None),
        (
            NOTHING,
            "call: a, observed: [x.y, a.b]",
            "expected observed a.b + x.y; decided allow",
        ),
        (NOTHING, "call: a, status: error", "expected status error; decided status success"),
        (NOTHING, "call: a, result: [1], envelope: {results: [1.0]}", None),
        (
            NOTHING,
            "call: a, result: [1], envelope: {results: [true], retryable: null, code: x.y}",
            'expected envelope.results.0 true, envelope.code "x.y"; decided envelope.results.0 1, envelope.code absent',
        ),
        (NOTHING, "call: a, error: timeout, status: error, envelope: {error_type: timeout}", None),
        (
            NOTHING,
            "call: a, error: {type: rate_limit, message: slow, http_status: 429}, envelope: {error_message: slow, http_status: 429}",
            None,
        ),
    ],
)
def test_a_step_is_held_to_what_it_expects(policy: Policy, step: str, expected: str | None) -> None:
    tool = step.split(",", maxsplit=1)[0].removeprefix("call: ")
    assert told(policy, f"  - {{{step}}}") == ([] if expected is None else [f"6: call `{tool}`: {expected}"])


def test_all_denials_are_told_the_one_that_is_read_first() -> None:
    steps = "  - {call: a}\n  - {call: b}\n  - {call: a, expect: deny, code: duplicates.window}"
    [failure] = run(EVERY, steps).failures
    assert failure.decided == "deny budget.max_calls + duplicates.window"


def test_a_failure_is_told_once_with_how_many_followed() -> None:
    result = run(NOTHING, "  - repeat: 30\n    steps:\n    - {call: a, status: error}")
    assert str(result) == (
        "<text>:8: a case: call `a` (repetition 1): expected status error; decided status success (and 29 more)"
    )
    assert (len(result.failures), result.failed_steps, result.steps) == (20, 30, 30)
    assert run(NOTHING, "  - {call: a}").passed


def test_time_moves_only_when_told() -> None:
    policy = Policy([Budget(max_elapsed=10)])
    steps = """\
  - {call: a, envelope: {progress: {seconds_left: null}}}
  - {call: b, at: +7s, envelope: {progress: {seconds_left: null}}}
  - {wait: 1s}
  - {call: c, takes: 1s, envelope: {progress: {seconds_left: 1}}}
  - {call: d, at: +999ms}
  - {call: e, at: +1ms, expect: deny, code: budget.max_elapsed}
"""
    assert told(policy, steps) == []


def test_a_call_that_takes_its_tools_timeout_fails_at_that_moment() -> None:
    tools = "[{name: a, timeout: 5s}]"
    steps = """\
  - {call: a, takes: 4999ms}
  - {call: a, takes: 1h, envelope: {error_type: timeout, error_message: no result within 5 s}}
  - {call: a, at: +5s, status: success}
"""
    assert told(NOTHING, steps, tools) == []


def test_a_pending_call_holds_its_place_until_it_is_settled() -> None:
    steps = """\
  - {call: a, id: one, pending: true}
  - {call: a, expect: deny, code: call.in_flight}
  - {settle: one, at: +1s, result: [7], status: success, envelope: {results: [7], progress: {calls_used: 1}}}
  - {call: a, expect: deny, code: duplicates.window, envelope: {previous_result: [7]}}
"""
    assert told(EVERY, steps) == []


def test_a_settled_call_is_held_to_its_envelope_and_an_unknown_one_is_told() -> None:
    steps = """\
  - {call: a, id: one, pending: true, expect: deny, code: x.y}
  - {settle: one, status: error}
  - {settle: one}
"""
    assert told(EVERY, steps) == [
        "6: call `a`: expected deny x.y; decided allow",
        "7: settle `one`: expected status error; decided status success",
        "8: settle `one`: expected a pending call; decided no call of that id is pending",
    ]


def test_an_admission_that_nobody_settles_expires() -> None:
    steps = """\
  - {call: a, id: one, pending: true}
  - {call: a, at: +10m, expect: allow}
  - {settle: one, result: late}
"""
    assert told(EVERY, steps) == []


def test_a_lost_call_is_over_with_the_next_one_and_no_repeat() -> None:
    steps = "  - {call: a, lost: true}\n  - {call: a}\n  - {call: b, expect: deny, code: budget.max_calls}"
    assert told(EVERY, steps) == []


def test_turns_charges_and_requests_are_lived_through() -> None:
    policy = Policy([Budget(max_turns=3, max_cost_usd=1, max_tokens=100)])
    steps = """\
  - {turn: 2}
  - {call: a, envelope: {limit_reached: null, progress: {turns_left: 2}}}
  - {call: b, cost_usd: 0.25, tokens: 5, envelope: {progress: {turns_left: 2, cost_left_usd: null}}}
  - {charge: {tokens: 20, cost_usd: 0.1}}
  - {repeat: 5, steps: [{charge: {tokens: 5, cost_usd: 0.1, begins_turn: false}}]}
  - {call: a, envelope: {progress: {turns_left: 1, cost_left_usd: 0.15, tokens_left: null}}}
  - {charge: {tokens: 10, cost_usd: 0, begins_turn: false}}
  - {call: b, envelope: {progress: {turns_left: 1, cost_left_usd: 0.15}}}
  - {exhausted: null}
  - {charge: {tokens: 40, cost_usd: 0, calls: 1}}
  - {exhausted: budget.max_tokens}
  - {extend: {max_tokens: 1}}
  - {call: c}
  - {exhausted: budget.max_turns}
"""
    assert told(policy, steps) == []


def test_a_session_that_is_exhausted_otherwise_or_cannot_be_extended_is_told() -> None:
    assert told(EVERY, "  - {exhausted: budget.max_calls}\n  - {extend: {max_tokens: 5}}") == [
        "6: session: expected exhausted by budget.max_calls; decided by nothing",
        "7: extend: expected to be possible; decided the policy sets no limit `max_tokens` that could be raised",
    ]


@table(
    "value, shown",
    [
        ("$n", 7),
        ("page $n of $n", "page 7 of 7"),
        ("$$n", "$n"),
        ("$name $nn", "$name $nn"),
        ({"a": ["$n", 1, None]}, {"a": [7, 1, None]}),
        ({"$n": True, "k$n": 2.5}, {"7": True, "k7": 2.5}),
    ],
)
def test_the_number_of_the_repetition_is_filled_in(value: Any, shown: Any) -> None:
    assert filled(value, 7) == shown


@table(
    "wanted, got, paths",
    [
        ({"a": 1}, {"a": 1, "b": 2}, []),
        ({"a": None}, {}, []),
        ({"a": None}, {"a": 0}, ["x.a"]),
        ({"a": {"b": {"c": 1}}}, {"a": {"b": {"c": 2}}}, ["x.a.b.c"]),
        ({"a": 1}, [1], ["x"]),
        ([1, 2], [1], ["x"]),
        ([{"a": 1}], [{"a": 1, "b": 2}], []),
        (1, True, ["x"]),
        (True, True, []),
        (1, 1.0, []),
        ("1", 1, ["x"]),
    ],
)
def test_an_envelope_is_compared_by_what_is_named(wanted: Any, got: Any, paths: list[str]) -> None:
    assert [path for path, _, _ in differing(wanted, got, "x")] == paths
