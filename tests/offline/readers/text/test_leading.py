"""
The JSON values with which a file begins.
"""

from typing import Any

from guardrails.offline.readers.text.leading import leading_values
from tests.tables import table


@table(
    "head, values",
    [
        ('{"a": 1}', [{"a": 1}]),
        ('{"a": 1}\n{"b": 2}\n', [{"a": 1}, {"b": 2}]),
        ('{"a": 1}\n{"b": 2, "c": "dd', [{"a": 1}, {"b": 2}]),
        ('{"a": 1, "b": "cc', [{"a": 1}]),
        ('{"a": 1\n{"b": 2}\n{"c"', [{"b": 2}, {}]),
        ('{\n "a": [\n  {"b": 1},\n  {"c', [{"a": [{"b": 1}, {}]}]),
        ('[\n{"a": 1},\n{"b": 2}\n]', [[{"a": 1}, {"b": 2}]]),
        ('\ufeff{"a": 1}', [{"a": 1}]),
        ("", []),
        ("\n \n", []),
        ("7\n8", []),
        ("no JSON", []),
        ("\ud800", []),
    ],
)
def test_lines_and_documents_are_read_as_far_as_the_head_goes(head: str, values: list[Any]) -> None:
    assert leading_values(head) == values
