"""
The words for what is wrong, and the advice that follows.
"""

from guardrails.core.arguments.problems import unknown
from guardrails.core.guards.validation import advice
from guardrails.core.values.types import NextAction, Problem
from tests.tables import table


MISSING = Problem("check_in", "is required", "missing")
LATE = Problem("check_out", "check_out must be after check_in", "value")
WRONG_TYPE = Problem("rooms", "must be an integer, not a string", "type")


@table(
    ("problems", "ask_user", "action", "hint"),
    [
        ([LATE], {"check_out"}, "ask_user", "Confirm `check_out` with the user before retrying."),
        (
            [MISSING],
            set(),
            "ask_user",
            "Take `check_in` from the conversation; if it is not there, ask the user. Do not guess.",
        ),
        (
            [LATE, MISSING, WRONG_TYPE],
            {"check_out"},
            "ask_user",
            (
                "Confirm `check_out` with the user before retrying. "
                "Take `check_in` from the conversation; if it is not there, ask the user. Do not guess. Also correct `rooms`."
            ),
        ),
        (
            [Problem("", "the arguments are not valid JSON", "json")],
            {"check_out"},
            "fix_arguments",
            "Send the arguments as one valid JSON object; the user need not be asked.",
        ),
        (
            [Problem("", "a stay ends after check_in.", "value")],
            {"check_in"},
            "ask_user",
            "Confirm `check_in` with the user before retrying.",
        ),
        (
            [Problem("hotels.0.check_out", "is in the past", "value")],
            {"hotels.check_out"},
            "ask_user",
            "Confirm `hotels.0.check_out` with the user before retrying.",
        ),
    ],
)
def test_a7_says_whether_to_ask_the_user_or_to_correct(
    problems: list[Problem], ask_user: set[str], action: NextAction, hint: str
) -> None:
    assert advice(problems, frozenset(ask_user)) == (action, hint)


def test_a7_a_misspelt_name_is_no_question_to_the_user() -> None:
    misspelt = unknown(("hotels", 0, "checkIn"), ["check_in", "check_out"])
    here = Problem("hotels.0.check_in", "is required", "missing")
    elsewhere = Problem("hotels.1.check_in", "is required", "missing")

    assert advice([misspelt, here])[0] == "fix_arguments"
    assert advice([misspelt, here, elsewhere]) == (
        "ask_user",
        (
            "Take `hotels.1.check_in` from the conversation; if it is not there, ask the user. Do not guess. "
            "Also correct `hotels.0.checkIn` and `hotels.0.check_in`."
        ),
    )
