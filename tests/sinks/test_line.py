from collections.abc import Callable

import orjson
import pytest

from guardrails.sinks import Record
from tests.sinks.conftest import written


def raises() -> Record:
    raise RuntimeError("password is hunter2")


@pytest.mark.parametrize(
    ("late", "line"),
    [
        (lambda: {"late": 1}, {"late": 1}),
        (lambda: 2**70, 2**70),
        (raises, "<RuntimeError>"),
        (len, "<TypeError>"),
    ],
)
def test_a_value_may_be_made_late(late: Callable[..., object], line: object) -> None:
    assert written({"n": 1, "value": late, "last": "x"}) == {"n": 1, "value": line, "last": "x"}


def test_a_function_in_the_arguments_is_not_called() -> None:
    called: list[int] = []
    record = written({"arguments": {"callback": lambda: called.append(1)}, "late": lambda: 1})

    assert record == {"arguments": {"callback": "<function>"}, "late": 1}
    assert called == []


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (b'{"city":"Shibuya"}', {"city": "Shibuya"}),
        (lambda: b'{"city":"Shibuya"}', {"city": "Shibuya"}),
        (orjson.Fragment(b'{"city":"Shibuya"}'), {"city": "Shibuya"}),
        (b"{not json", "{not json"),
        (b"\xff", "/w=="),
    ],
)
def test_arguments_may_be_json_already(arguments: object, line: object) -> None:
    assert written({"arguments": arguments}) == {"arguments": line}
