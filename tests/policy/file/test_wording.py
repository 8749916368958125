"""
The words for what pydantic says.
"""

from guardrails.policy.file import expectation, suggestion, wording
from guardrails.policy.file import Node, Position, Source
from tests.tables import table


HERE = Position(Source("t", ("a",)), 1, 1)


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


def test_an_error_without_words_of_ours_keeps_its_own_in_our_style() -> None:
    said = wording("is_instance_of", "", {}, "Input should be an instance of X.", Node(HERE, "v", written="v"))

    assert said == "must be an instance of X, got `v`"
    assert expectation("is_instance_of", {}) == ""
