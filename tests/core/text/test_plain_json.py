import collections
import dataclasses
import io
import json
import subprocess
import sys
import threading

from typing import Any

import pytest

from guardrails.core.text.plain_json import MAX_DEPTH, plain, to_json


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


@pytest.mark.parametrize("value", [Trip("Nara"), [Trip("Nara"), 2**70], Trip("Nara", {1})])
def test_a_dataclass_hides_the_same_fields_however_it_is_written(value: object) -> None:
    assert b"hunter2" not in to_json(value)
    assert "hunter2" not in str(plain(value))


def doubled(times: int, value: Any) -> Any:
    for _ in range(times):
        value = [value, value]
    return value


def count(value: Any) -> int:
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(count, members))


@pytest.mark.parametrize(
    "value",
    [
        [0] * 10_000,
        dict.fromkeys(map(str, range(10_000))),
        [b""] * 10_000,
        doubled(MAX_DEPTH - 5, 0),
        doubled(MAX_DEPTH - 5, Trip("Nara", [1])),
        Trip("Nara", doubled(MAX_DEPTH - 5, 0)),
        [[0] * 1_000] * 1_000,
    ],
    ids=["list", "dict", "bytes", "shared lists", "shared objects", "an object of shared lists", "lists"],
)
@pytest.mark.parametrize("most", [1, 2, 1_000])
def test_a_copy_is_bounded_where_that_is_asked(value: object, most: int) -> None:
    assert most <= count(plain(value, most)) <= most + MAX_DEPTH


def test_a_copy_that_fits_its_bound_is_whole() -> None:
    value = {"a": [1, b"", {"b": 2}], "c": Trip("Nara")}
    assert plain(value, count(plain(value))) == plain(value)


@pytest.mark.system
def test_a_value_that_json_does_not_know_imports_no_numpy() -> None:
    """
    orjson would, in the middle of the first call with such a value.
    """
    code = (
        "import sys; from guardrails.core.text.plain_json import plain, to_json; from guardrails.sinks.line import to_line; "
        "plain({'a': [object()]}); to_json({1: object()}); to_line({'a': object()}); print('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
