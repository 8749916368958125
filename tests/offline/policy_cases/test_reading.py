"""
Reading files of cases.
"""

from pathlib import Path
from typing import Any

import pytest

from guardrails import PolicyError
from guardrails.offline.policy_cases import find_cases, read_cases
from tests.tables import table


HEAD = "version: 1\ncases:\n- name: a case\n  steps:\n"
MISTAKEN = """\
version: 2
polcy: default
cases:
  - name: a
    steps:
      - {call: search, argument: {q: a}, error: timeot}
      - {call: search, at: soon}
  - name: a
    tools: [{name: x, polling: yes}]
    steps: []
"""


def mistakes(text: str | bytes) -> list[str]:
    with pytest.raises(PolicyError) as raised:
        read_cases(text, "bad.yaml")
    return [mistake.partition("\n")[0] for mistake in raised.value.mistakes]


def steps(text: str) -> Any:
    return read_cases(HEAD + text).cases[0].steps


def test_every_kind_of_step_is_read_with_its_line() -> None:
    read = steps("""\
  - {call: search, arguments: {q: a}, at: +5s, id: one, result: [1], takes: 2s, cost_usd: 0.5, tokens: 7}
  - {call: search, pending: true, id: two, at: +65s}
  - {settle: two, error: {type: rate_limit, message: slow, http_status: 429, retry_after: 1m}}
  - {call: search, error: timeout, status: error, envelope: {retryable: true}}
  - {call: search, lost: true, expect: deny, code: x.y, observed: a.b}
  - {call: search, result_bytes: 1KiB, observed: [a.b, c.d]}
  - {turn: 3}
  - {charge: {tokens: 5, cost_usd: 0.1, calls: 2}, at: +1s}
  - {charge: {begins_turn: false}}
  - {request: 4}
  - {wait: 30s}
  - {extend: {max_elapsed: 1m, max_calls: 5}}
  - {exhausted: null}
  - repeat: 3
    steps:
      - {call: "{}", arguments: text}
""")
    kinds = ["Call", "Call", "Settle", "Call", "Call", "Call", "Turn", "Charge", "Charge"]
    kinds += ["Request", "Wait", "Extend", "Exhausted", "Repeat"]
    assert [(type(step).__name__, step.line) for step in read] == [(kind, at) for at, kind in enumerate(kinds, 5)]
    first = {"call": "search", "arguments": {"q": "a"}, "at": 5_000, "id": "one", "result": [1], "takes": 2_000}
    assert read[0].model_dump(exclude_unset=True) == {**first, "cost_usd": 0.5, "tokens": 7}
    assert read[1].at == 65_000
    assert read[2].settle == "two"
    assert read[2].error.model_dump() == {
        "type": "rate_limit",
        "message": "slow",
        "http_status": 429,
        "retry_after": 60_000,
    }
    assert (read[3].error.type, read[3].status, read[3].envelope) == ("timeout", "error", {"retryable": True})
    assert (read[4].lost, read[4].expect, read[4].code, read[4].observed) == (True, "deny", "x.y", ["a.b"])
    assert (read[5].result_bytes, read[5].observed) == (1_024, ["a.b", "c.d"])
    assert (read[6].turn, read[7].charge.tokens, read[8].charge.begins_turn, read[9].request) == (3, 5, False, 4)
    assert (read[10].wait, read[12].exhausted) == (30_000, None)
    assert read[11].extend.model_dump(exclude_unset=True) == {"max_elapsed": 60.0, "max_calls": 5}
    [inside] = read[13].steps
    assert (read[13].repeat, inside.call, inside.arguments, inside.line) == (3, "{}", "text", 20)


def test_a_file_names_its_policy_and_a_case_its_tools() -> None:
    file = read_cases("""\
version: 1
policy: team
cases:
  - name: one
    tools:
      - {name: pay, idempotent: false, timeout: 30s, ask_user: [iban], annotations: {readOnlyHint: true}}
      - {name: look, parameters: {type: object, required: [q]}}
    steps: [{call: pay}]
  - name: two
    steps: [{call: look}]
""")
    assert (file.file, file.policy, [(case.name, case.line) for case in file.cases]) == (
        "<text>",
        "team",
        [("one", 4), ("two", 9)],
    )
    pay, look = file.cases[0].tools
    assert (pay.idempotent, pay.timeout, pay.ask_user, pay.read_only) == (False, 30.0, ("iban",), True)
    spec = look.arguments()
    assert spec is not None
    assert [problem.field for problem in spec.check({})[1]] == ["q"]


def test_all_mistakes_are_told_at_once_in_order_with_their_places() -> None:
    assert [mistake.split(" (")[0][:70] for mistake in mistakes(MISTAKEN)] == [
        "bad.yaml:1:10: version: not `1`: got `2`",
        "bad.yaml:2:1: unknown key `polcy`, did you mean `policy`?",
        "bad.yaml:6:24: unknown key `argument`, did you mean `arguments`?",
        "bad.yaml:6:49: cases.0.steps.0.error: not one of `auth`, `permission`,",
        "bad.yaml:7:28: cases.0.steps.1.at: not a time after the step before: w",
        "bad.yaml:8:11: name: another case has this name, on line 4",
        "bad.yaml:9:32: cases.1.tools.0.polling: not true or false: write true,",
        "bad.yaml:10:12: cases.1.steps: List must have at least 1 item after va",
    ]


@table(
    "text, mistake",
    [
        ("", "bad.yaml:1:1: the file is empty"),
        ("- a\n", "bad.yaml:1:1: not a map of keys: got a list"),
        ("version: 1\ncases: []\n", "bad.yaml:2:8: cases: List must have at least 1 item after validation, not 0"),
        ("version: 1\n", "bad.yaml:1:1: missing key `cases`"),
        ("version: 1\ncases: {a: 1}\n", "bad.yaml:2:8: cases: not a list: got a map"),
        ("version: 1\ncases:\n- steps: [{call: a}]\n", "bad.yaml:3:3: missing key `name`"),
        (
            HEAD + "  - call\n",
            "bad.yaml:5:5: cases.0.steps.0: not a map of keys: got `call`",
        ),
        (HEAD + "  - {call: a, call: b}\n", "bad.yaml:5:15: key `call` is given twice (first on line 5)"),
        (
            HEAD + "  - {call: a\n",
            "bad.yaml:6:1: not YAML: while parsing a flow mapping, did not find expected ',' or '}'",
        ),
        (b"\xff\xfe", "bad.yaml:1:1: not UTF-8: byte 0xff, save the file as UTF-8"),
        (
            "version: 1\ncases:\n- name: a\n  tools: [{name: t, parameters: {type: objekt}}]\n  steps: [{call: t}]\n",
            (
                "bad.yaml:4:33: parameters: the schema of the arguments is not valid at `type`: "
                "\"objekt\" is not valid under any of the schemas listed in the 'anyOf' keyword"
            ),
        ),
        (
            "version: 1\ncases:\n- name: a\n  tools: [{name: t, parametres: {}}]\n  steps: [{call: t}]\n",
            "bad.yaml:4:21: unknown key `parametres`, did you mean `parameters`?",
        ),
    ],
)
def test_what_is_no_file_of_cases_is_told_in_one_line(text: str | bytes, mistake: str) -> None:
    assert mistakes(text) == [mistake]


def test_the_cases_of_a_policy_are_found_by_its_name(tmp_path: Path) -> None:
    assert find_cases("default").parts[-3:] == ("policies", "cases", "default.yaml")
    policy = tmp_path / "team.yaml"
    policy.write_text("version: 1\n")
    with pytest.raises(PolicyError, match=r"looked for `team.cases.yaml` and `cases/team.yaml` beside it"):
        find_cases(str(policy))
    (tmp_path / "cases").mkdir()
    for name in ("cases/team.yaml", "team.cases.yaml"):
        (tmp_path / name).write_text(HEAD + "  - {call: a}\n")
        assert find_cases(str(policy)) == tmp_path / name
