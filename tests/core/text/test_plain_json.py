import collections
import dataclasses
import io
import json
import threading

from typing import Any

import pytest

from guardrails.core.text.plain_json import plain, to_json


@dataclasses.dataclass
class Trip:
    city: str
    stops: Any = None
    _secret: str = "hunter2"


class Listing:
    def __init__(self) -> None:
        self.rows = iter([1, 2])

    def model_dump(self) -> dict[str, Any]:
        return {"rows": self.rows}


ROWS = (number for number in range(3))
FILE = io.StringIO("text")
QUEUE = collections.deque([1, 2])


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (ROWS, "<generator>"),
        ({"rows": [ROWS]}, {"rows": ["<generator>"]}),
        (FILE, "<StringIO>"),
        (Trip("Nara", ROWS), {"city": "Nara", "stops": "<generator>"}),
        (Listing(), {"rows": "<list_iterator>"}),
        (QUEUE, "<deque>"),
        (threading.Lock(), "<lock>"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_can_be_used_up_is_named_and_not_read(value: object, named: object) -> None:
    assert plain(value) == named
    assert json.loads(to_json(value)) == named


def test_nothing_was_used_up() -> None:
    for value in (ROWS, FILE, QUEUE):
        plain([value])
        to_json([value])

    assert (list(ROWS), FILE.read(), list(QUEUE)) == ([0, 1, 2], "text", [1, 2])


def test_a_copy_shares_nothing_that_can_change() -> None:
    value: dict[str, Any] = {"a": [1, {"b": bytearray(b"x")}], "trip": Trip("Nara", ["Kyoto"])}
    copy = plain(value)
    value["a"][1]["b"][0] = 0
    value["a"].append(2)
    value["trip"].stops.clear()

    assert copy == {"a": [1, {"b": "x"}], "trip": {"city": "Nara", "stops": ["Kyoto"]}}
