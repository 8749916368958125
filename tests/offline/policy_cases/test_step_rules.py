"""
What the keys of a step mean together.
"""

from guardrails import PolicyError
from guardrails.offline.policy_cases import read_cases
from tests.tables import table


HEAD = "version: 1\ncases:\n- name: a case\n  steps:\n"


def mistakes(steps: str) -> list[str]:
    try:
        read_cases(HEAD + steps, "f")
    except PolicyError as error:
        return [mistake.partition("\n")[0] for mistake in error.mistakes]
    return []


@table(
    "step, mistake",
    [
        (
            "at: 5s",
            "f:5:5: missing key `call` or `settle` or `turn` or `charge` or `request` or `wait` or `extend` or `approve` or `refuse` or `exhausted`",
        ),
        ("call: a, turn: 1", "f:5:15: unknown key `turn`"),
        ("call: a, cod: x", "f:5:15: unknown key `cod`, did you mean `code`?"),
        ("wait: 5s, result: 1", "f:5:16: unknown key `result`, known here: `at`, `wait`"),
        ("repeat: 2", "f:5:5: missing key `steps`"),
        ("call: a, result: 1, error: timeout", "f:5:5: cases.0.steps.0: a call ends in one way: `result` or `error`"),
        ("call: a, pending: true, lost: true", "f:5:5: cases.0.steps.0: a call ends in one way: `pending` or `lost`"),
        ("call: a, expect: deny", "f:5:5: cases.0.steps.0: missing key `code`: which guard is to deny, and why"),
        (
            "call: a, code: x.y",
            "f:5:5: cases.0.steps.0: `code` needs `expect: deny`, `pending` or `nudge`; of an observed one, write `observed`",
        ),
        (
            "call: a, pending: true, takes: 5s",
            "f:5:5: cases.0.steps.0: `takes` of a pending call is not known: write it at its `settle`",
        ),
        (
            "call: a, lost: true, status: error",
            "f:5:5: cases.0.steps.0: `status` of a lost call is not known: it has no end",
        ),
        (
            "call: a, envelope: {statos: error}",
            "f:5:5: cases.0.steps.0: unknown key `statos` of `envelope`, did you mean `status`?",
        ),
        ("call: a, at: +5", "f:5:19: at: `+5` is read as a number: write `+5s`"),
    ],
)
def test_keys_that_do_not_belong_together_are_told(step: str, mistake: str) -> None:
    assert mistakes(f"  - {{{step}}}\n") == [mistake]


@table(
    "step",
    [
        "call: a, pending: true, expect: deny, code: x.y, status: denied, envelope: {code: x.y}",
        "call: a, result: null, expect: deny, code: x.y, observed: a.b",
        "call: a, at: 5, error: {type: timeout}, takes: 5s",
        "exhausted: null, at: +5s",
    ],
)
def test_keys_that_belong_together_are_no_mistake(step: str) -> None:
    assert mistakes(f"  - {{{step}}}\n") == []


def test_an_unknown_field_of_an_envelope_that_is_near_none_is_told_all_there_are() -> None:
    [mistake] = mistakes("  - {call: a, envelope: {zzz: 1}}\n")
    assert "unknown key `zzz` of `envelope`, known here: `status`, `code`, `query_summary`, " in mistake


@table("inner", ["{repeat: %d, steps: [{call: a}]}", "{request: %d}"])
@table("times, fits", [(1_000, True), (1_001, False)])
def test_a_case_has_a_bounded_number_of_steps_with_its_repetitions(inner: str, times: int, fits: bool) -> None:
    steps = f"  - repeat: 100\n    steps:\n    - {inner % times}\n"
    told = [] if fits else ["f:3:3: steps: more than 100000 steps, repetitions counted"]
    assert mistakes(steps) == told
