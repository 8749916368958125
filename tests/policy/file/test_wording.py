"""
The words for what pydantic says.
"""

from typing import Any

from guardrails.policy.file.wording import choices_of, expectation, suggestion, unknown_key, wording
from guardrails.policy.file.yaml_position import Node, Position, Source
from tests.tables import table


HERE = Position(Source("t", ("a",)), 1, 1)
SCHEMA: dict[str, Any] = {
    "properties": {
        "budget": {"properties": {"max_calls": {}, "window": {}}},
        "duplicates": {"properties": {"window": {}}},
    }
}


@table(
    ("written", "expected"),
    [
        ("budgets", ", did you mean `budget`?"),
        ("BUDGET", ", did you mean `budget`?"),
        ("max-calls", ", did you mean `max_calls`?"),
        ("zebra", ""),
        ("", ""),
    ],
)
def test_the_nearest_name_is_suggested(written: str, expected: str) -> None:
    assert suggestion(written, ["budget", "max_calls"]) == expected


def test_a_key_at_the_wrong_depth_is_recognised_wherever_it_may_stand() -> None:
    assert unknown_key(["max_calls"], SCHEMA) == "unknown key `max_calls`, did you mean `budget.max_calls`?"
    assert unknown_key(["window"], SCHEMA) == (
        "unknown key `window`, did you mean `budget.window` or `duplicates.window`?"
    )


def test_without_a_schema_an_unknown_key_is_just_unknown() -> None:
    assert unknown_key(["budget"], {}) == "unknown key `budget`"


@table(
    ("listed", "expected"),
    [
        ("'a', 'b c' or 'd'", ["a", "b c", "d"]),
        ("1, 2 or 3", ["1", "2", "3"]),
        ("'or' or True", ["or", "true"]),
        ('"it\'s" or None', ["it's", "null"]),
    ],
)
def test_listed_choices_are_read_back(listed: str, expected: list[str]) -> None:
    assert choices_of({"expected": listed}) == expected


def test_an_error_without_words_of_ours_keeps_its_own_in_our_style() -> None:
    said = wording("is_instance_of", "", {}, "Input should be an instance of X.", Node(HERE, "v", written="v"))

    assert said == "must be an instance of X, got `v`"
    assert expectation("is_instance_of", {}) == ""
