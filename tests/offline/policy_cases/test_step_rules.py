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
            "at: +5s",
            "f:5:5: missing key `call` or `settle` or `turn` or `charge` or `request` or `wait` or `extend` or `approve` or `refuse` or `exhausted` or `repeat`",
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
            "call: a, at: +5",
            "f:5:19: cases.0.steps.0.at: not a time after the step before: write +500ms, +30s or +15m, got `5`",
        ),
    ],
)
def test_keys_that_do_not_belong_together_are_told(step: str, mistake: str) -> None:
    assert mistakes(f"  - {{{step}}}\n") == [mistake]


@table(
    "step",
    [
        "call: a, pending: true, expect: deny, code: x.y, status: denied, envelope: {code: x.y}",
        "call: a, result: null, expect: deny, code: x.y, observed: a.b",
        "call: a, at: +5s, error: {type: timeout}, takes: 5s",
        "exhausted: null, at: +5s",
    ],
)
def test_keys_that_belong_together_are_no_mistake(step: str) -> None:
    assert mistakes(f"  - {{{step}}}\n") == []
