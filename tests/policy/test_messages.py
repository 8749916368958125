"""
The codes and numbers of a policy's own wording.
"""

import ast

from pathlib import Path
from typing import Any

import guardrails.core.guards

from guardrails import Denial, Guard, Policy, PolicyError, guard
from guardrails.core.guards import GUARDS
from guardrails.core.guards.budget import ToolBudget
from guardrails.policy.check import CODES
from tests.tables import table


@guard
class Mine(Guard):
    def check(self, call: Any, state: Any, mine: Any, facts: Any) -> Denial | None:
        return Denial(code="mine.limit", message="No.", values={"limit": 3})


@guard
class Told(Mine):
    codes = {"told.limit": ("limit",)}  # noqa: RUF012


def mistakes(messages: Any, *guards: Guard) -> list[str]:
    try:
        Policy(guards, messages=messages)
    except PolicyError as error:
        return error.mistakes
    return []


@table("cls", [*GUARDS, ToolBudget])
def test_every_guard_of_the_library_tells_its_codes_and_each_begins_with_its_name(cls: type[Guard]) -> None:
    assert cls.codes is not None
    assert all(code.startswith((f"{cls.name}.", f"tools.{cls.name}.")) for code in cls.codes)


def test_every_code_that_a_guard_writes_out_is_among_them() -> None:
    paths = Path(guardrails.core.guards.__file__).parent.rglob("*.py")
    calls = [node for path in paths for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    said = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in ("Denial", "Nudge")]
    codes = [
        each for call in said for each in (*call.args[:1], *(one.value for one in call.keywords if one.arg == "code"))
    ]
    written = {code.value for code in codes if isinstance(code, ast.Constant)}
    assert len(written) > 4
    assert written <= CODES.keys()


@table(
    "messages",
    [
        {"budget.max_calls": {"message": "$used of $limit, $$5", "hint": "Stop."}},
        {"tools.rate.max_calls_per_minute": {"hint": "Wait ${wait_ms} ms."}},
        {"call.error": {"message": "$guard broke."}, "budget.error": {"hint": "Ask."}},
        {"mine.limit": {"message": "$limit"}, "mine.anything": {"hint": "$whatever"}},
        {"told.limit": {"message": "$limit"}, "call.error": {"hint": "Ask."}},
    ],
)
def test_what_a_guard_says_may_be_worded_anew(messages: Any) -> None:
    assert mistakes(messages, Mine(), Told()) == []


@table(
    ("messages", "said"),
    [
        ({"told.limt": {"message": "x"}}, "no guard says `told.limt`, did you mean `told.limit`?"),
        ({"mine": {"message": "x"}}, "no guard says `mine`"),
        ({"duplicates.window": {"hint": "$n"}}, "`$n` stands for nothing in any message"),
        ({"budget.max_calls": "No."}, "messages.budget.max_calls: not a map of keys: got `'No.'`"),
    ],
)
def test_what_no_guard_says_or_knows_is_a_mistake(messages: Any, said: str) -> None:
    found = mistakes(messages, Told())
    assert len(found) == 1
    assert said in found[0]
