"""
Failures that hide in results, and their twins: honest results in which one field is another.
"""

from typing import Any

import orjson
import pytest

from pydantic import BaseModel

from guardrails import Envelope, Failed, Policy, Retryable, Success, Tool
from guardrails.core.result import Terms, reading_of
from guardrails.core.result.failures import Source
from guardrails.core.tools.tool import source_of, speaker
from tests.core.result.carriers import RESULTS, carried
from tests.tables import table


TRACED = 'Traceback (most recent call last):\n  File "x.py", line 1, in f\nTimeoutError: slow'


@table(("failure", "honest"), [
    *((case["failure"], case["honest"]) for case in RESULTS["hidden"]), (f"\n{TRACED}", f"The log says: {TRACED}"),
])  # fmt: skip
def test_a_failure_is_one_in_every_carrier_and_its_twin_in_none(failure: Any, honest: Any) -> None:
    assert {name for name, carrier in carried(failure) if reading_of(carrier).ok} == set()
    assert {name for name, carrier in carried(honest) if not reading_of(carrier).ok} == set()


@table("case", RESULTS["told"])
def test_a_failure_says_its_kind_its_words_its_status_and_its_wait(case: dict[str, Any]) -> None:
    for carrier in (case["value"], orjson.dumps(case["value"]).decode()):
        read = reading_of(carrier)
        told = [read.error_type, read.error_message, read.http_status, read.retry_after_ms]
        assert told == case["read"]


@pytest.mark.parametrize("claim", [True, False])
def test_the_articles_own_error_object_keeps_its_fields_as_claims(claim: bool) -> None:
    said = {"status": "error", "error_type": "timeout", "retryable": claim, "max_retries_remaining": 1}
    said["error_message"] = "slow"
    read = reading_of(said)
    envelope = Policy([Retryable()]).session("s").call("search", {}, lambda *_: said)

    assert (read.retryable, read.retries) == (claim, 1)
    assert (envelope.status, envelope.error_type, envelope.retryable) == ("error", "timeout", claim)
    assert (envelope.max_retries_remaining or 0) == int(claim)


def test_of_a_kind_that_is_not_known_nothing_is_advised() -> None:
    envelope = Policy.load("default").session("s").call("set_zone", {}, lambda *_: {"error": "the flux was off"})

    assert envelope.error_type == "other"
    assert {"retryable", "next_action", "next_action_hint"}.isdisjoint(envelope.to_dict())


def test_a_failure_that_is_found_keeps_what_the_tool_said() -> None:
    value = {"error": "no such user", "user": "bo"}
    text = '{"error":  "no such user"}\n'

    assert reading_of(value, arguments={"user": "bo"}).value == value
    assert reading_of(text).value == text
    assert reading_of("Error: it broke").value is None
    assert reading_of(f"Error: it broke\n{'x' * 900}").value.startswith("Error: it broke\nxx")


def test_an_echo_of_the_arguments_brings_nothing() -> None:
    value = {"error": "cannot ship there", "city": "Rome", "weight": 3}

    assert not reading_of(value, arguments={"city": "Rome", "weight": 3}).ok
    assert reading_of(value, arguments={"city": "Rome", "weight": 4}).ok
    assert reading_of("Error: it broke", arguments={"text": "say `Error: it broke`"}).ok


@table(("tool", "words", "line", "exit_code", "data"), [
    ("get_user", "own", True, True, True), ("find_user_id_by_name", "own", True, True, True), ("write_file", "own", True, True, True),
    ("run_bash", "program", False, True, True), ("python", "program", False, True, True), ("read_file", "shown", False, False, False),
    ("mcp__fs__cat", "shown", False, False, False), ("WebFetch", "shown", False, False, False),
])  # fmt: skip
def test_whose_words_a_text_is_decides(tool: str, words: str, line: bool, exit_code: bool, data: bool) -> None:
    source = source_of(Tool(name=tool))
    texts = "Error: it broke", "Exit code: 1", '{"error": "it broke"}'

    assert speaker(tool) == words
    assert [not reading_of(text, source).ok for text in texts] == [line, exit_code, data]
    assert not reading_of({"error": "it broke"}, source).ok


def test_a_failure_that_a_host_reports_has_its_kind_its_message_and_its_cost() -> None:
    read = reading_of(Failed("no room", error_type="conflict", value={"rooms": 0}, cost_usd=0.5, tokens=7))

    assert (read.error_type, read.error_message, read.value) == ("conflict", "no room", {"rooms": 0})
    assert (read.cost, read.tokens) == (500_000, 7)
    assert reading_of(Failed("HTTP 404")).error_type == "not_found"
    assert reading_of(Success({"error": "x"}, cost_usd="nonsense")).cost is None


class Answer(BaseModel):
    error: str | None = None
    rows: list[int] = []


@table(("result", "kind", "value"), [
    (Answer(error="timed out"), "timeout", Answer(error="timed out")), (Answer(error="timed out", rows=[1]), None, Answer(error="timed out", rows=[1])),
    (iter([1, 2]), None, [1, 2]), (b"Error: it broke", "other", None), (ValueError("bad date"), "validation", None),
    (Envelope.success(3), None, Envelope.success(3)), (None, None, None), (7, None, 7),
])  # fmt: skip
def test_what_an_executor_gives_back_becomes_a_value_or_a_failure(result: Any, kind: str | None, value: Any) -> None:
    # Whatever form the arguments have.
    read = reading_of(result, arguments=[{"id": 1}])

    assert (read.error_type, read.value) == (kind, value)


def test_an_iterator_that_fails_half_way_has_failed_unless_its_exception_is_passed_on() -> None:
    def rows() -> Any:
        yield 1
        raise TimeoutError("slow")

    assert reading_of(rows()).error_type == "timeout"
    with pytest.raises(TimeoutError):
        reading_of(rows(), terms=Terms(passes=(TimeoutError,)))


@table(("text", "fails"), [("429 Too Many Requests", True), ("HTTP/1.1 502 Bad Gateway", True), ("Error: it broke", False), ("404 not found is a page of this site", False)])  # fmt: skip
def test_of_what_shows_others_words_only_a_line_of_http_fails(text: str, fails: bool) -> None:
    assert reading_of(text, Source(words="shown")).ok is not fails
