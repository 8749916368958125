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
from tests.core.result.carriers import block, carried
from tests.tables import table


TRACED = 'Traceback (most recent call last):\n  File "x.py", line 1, in f\nTimeoutError: slow'


@table(("failure", "honest"), [
    ({"error": "slot taken"}, {"error": "slot taken", "slots": ["10:00"]}), ({"error": "slot taken", "slots": []}, {"error": "", "slots": []}),
    ({"error": {"message": "gone"}}, {"error": {"message": ""}}), ({"error": True, "message": "gone"}, {"error": False, "message": "gone"}),
    ({"error": ["a"]}, {"error": [], "warnings": ["a"]}), ({"error": "none of these exist"}, {"error": "none"}),
    ({"error": "out of range", "value": None}, {"error": 0.02, "value": 3.1}),
    ({"error": "sensor is off", "value": None}, {"error": "sensor drifts", "value": 21.5}),
    ({"error": "not found", "path": "/x", "timestamp": "2026"}, {"error": None, "path": "/x", "timestamp": "2026"}),
    ({"status": "error", "error": "out of memory", "id": 7}, {"status": "failed", "error": "out of memory", "id": 7}),
    ({"status": "failed", "error": "no disk"}, {"status": "completed", "error": "one row was skipped"}),
    ({"status": "error", "message": "x"}, {"status": "ok", "message": "x"}), ({"status": "failed"}, {"status": "failed", "job_id": 7}),
    ({"status": "failed"}, {"status": "failed", "steps": ["build"]}), ({"status": "denied", "reason": "policy"}, {"status": "pending", "reason": "policy"}),
    ({"code": 40013, "msg": "bad", "data": None}, {"code": 0, "msg": "ok", "data": None}),
    ({"code": 500, "message": "bad", "data": None}, {"code": "EUR", "message": "Euro", "data": None}),
    ({"code": 20001, "msg": "no such user", "data": None}, {"code": 20000, "msg": "success", "data": None}),
    ({"code": 301, "message": "limit exceeded", "data": None}, {"code": 201, "message": "a new one", "data": None}),
    ("Process exited with code 1", "Process exited with code 0"),
    ({"exit_code": 1}, {"exit_code": 0, "stdout": "Error: x"}),
    ({"returncode": 2, "stdout": "a", "stderr": "b"}, {"container": "x", "exit_code": 137, "image": "y"}),
    ({"results": [], "errors": ["timeout"]}, {"results": [1], "errors": ["timeout"]}),
    ({"errors": [{"message": "no field"}]}, {"errors": [{"message": "no field", "line": 3}]}),
    ({"data": None, "errors": [{"message": "x"}]}, {"data": {"user": 1}, "errors": [{"message": "x"}]}),
    ({"data": None, "errors": ["x"]}, {"errors": ["line 3: x"]}), ({"ok": False, "reason": "closed"}, {"ok": False, "seats": 0}),
    ({"success": False, "message": "no such user"}, {"success": False, "valid": False, "message": "expired"}),
    ({"success": False, "results": []}, {"success": False, "results": [1]}),
    ({"success": False, "error": "2 of 3", "rows": [1]}, {"success": True, "error": "2 of 3", "rows": [1]}), ({"status": 404}, {"status": 399}),
    ({"status": 500, "message": "x"}, {"status": 500, "name": "Bob"}),
    ({"status": 404, "title": "gone", "seats": 2}, {"status": 404, "title": "gone", "seats": [1]}),
    ({"status": "503", "detail": "busy"}, {"status": "busy", "detail": "503"}), ({"status": 404, "body": "<html>"}, {"status": 200, "body": "404"}),
    ({"statusCode": 429, "headers": {"a": "b"}}, {"statusCode": 204, "headers": {"a": "b"}}),
    ({"isError": True, "rows": [1]}, {"isError": False, "rows": [1]}),
    ({"errorMessage": "x", "errorType": "KeyError", "stackTrace": []}, {"errorMessage": "", "stackTrace": []}), ("Error: it broke", "ok\nError: it broke"),
    ("error: unknown option", "errors: unknown option"), ("Error: 404", "Error: 0.5"), ("Error: nothing was found", "Error: none"),
    ("Error executing tool book: no such room", "Error handling: no such room"), ("Error (409): taken", "Error"),
    ("Input validation error: `path` is required", "Mean squared error: `path` is required"), ("httpx.ReadError: gone", "ReadError"),
    ("ValueError: bad date", "See ValueError: bad date"), ("Exit code: 1", "Exit code: 0"), ("exit status 2\nmake: no rule", "The exit code is 1"),
    ("429 Too Many Requests", "429 files"), ("404 page not found", "404 results found"), ("HTTP/1.1 503 Service Unavailable", "HTTP/1.1 200 OK"),
    (f"\n{TRACED}", f"The log says: {TRACED}"),
])  # fmt: skip
def test_a_failure_is_one_in_every_carrier_and_its_twin_in_none(failure: Any, honest: Any) -> None:
    assert {name for name, carrier in carried(failure) if reading_of(carrier).ok} == set()
    assert {name for name, carrier in carried(honest) if not reading_of(carrier).ok} == set()


@table(("value", "kind", "message", "status", "wait"), [
    ({"status": 429, "error": {"message": "slow down", "retry_after": 7}}, "rate_limit", "slow down", 429, 7000),
    ({"status": 429, "error": {"message": "no", "code": "insufficient_quota"}}, "permission", "no", 429, None),
    ({"error": "busy", "retry_after_ms": 1500}, "other", "busy", None, 1500), ({"error": "busy", "retryAfterMs": 1500}, "other", "busy", None, 1500),
    ({"error": "busy: try again in 20s"}, "other", "busy: try again in 20s", None, 20_000),
    ({"status": 503, "headers": {"X-MS-Retry-After-Ms": "300"}}, "unavailable", "status 503", 503, 300),
    ({"error": {"code": -32602, "message": "no"}}, "validation", "no", None, None), ({"error": {"code": 404, "message": "no"}}, "not_found", "no", 404, None),
    ({"error": "x", "error_type": "auth"}, "auth", "x", None, None),
    ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "unavailable", "Overloaded", None, None),
    ({"exit_code": 1, "stderr": "boom"}, "exec_nonzero", "boom", None, None), ({"errors": ["a", "b"]}, "other", '["a","b"]', None, None),
    ({"isError": True, "content": [block("hm")]}, "other", "hm", None, None), ({"code": 40013, "msg": "bad", "data": []}, "other", "bad", None, None),
    ({"error": {"error_type": "timeout", "error_message": "slow", "retryable": False}}, "timeout", "slow", None, None),
    ("Error: Timeout 30000ms exceeded.", "timeout", "Error: Timeout 30000ms exceeded.", None, None),
    ({"isError": True, "content": []}, "other", "the tool reported an error and said nothing of it", None, None),
    ({"status": "error", "error_type": "rate_limit", "error_message": "slow", "retry_after_ms": 2000}, "rate_limit", "slow", None, 2000),
])  # fmt: skip
def test_a_failure_says_its_kind_its_words_its_status_and_its_wait(
    value: Any, kind: str, message: str, status: int | None, wait: int | None
) -> None:
    for carrier in (value, orjson.dumps(value).decode()):
        read = reading_of(carrier)
        assert (read.error_type, read.error_message) == (kind, message)
        assert (read.http_status, read.retry_after_ms) == (status, wait)


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


class Opaque:
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


@table(("result", "kind", "value"), [
    (Answer(error="timed out"), "timeout", Answer(error="timed out")), (Answer(error="timed out", rows=[1]), None, Answer(error="timed out", rows=[1])),
    (iter([1, 2]), None, [1, 2]), (b"Error: it broke", "other", None), (ValueError("bad date"), "validation", None),
    (Envelope.success(3), None, Envelope.success(3)), (None, None, None), (7, None, 7),
])  # fmt: skip
def test_what_an_executor_gives_back_becomes_a_value_or_a_failure(result: Any, kind: str | None, value: Any) -> None:
    # Whatever form the arguments have.
    read = reading_of(result, arguments=[{"id": 1}])

    assert (read.error_type, read.value) == (kind, value)


def test_an_object_that_cannot_be_looked_at_is_still_a_result() -> None:
    value = Opaque()

    assert reading_of(value).value is value


def test_what_can_only_be_awaited_is_a_failure_of_the_tool() -> None:
    async def answer() -> None: ...

    read = reading_of(answer())

    assert read.error_type == "code_error"
    assert "unawaited `coroutine`" in read.error_message


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


def test_claims_under_an_error_are_claims_too() -> None:
    assert reading_of({"error": {"message": "slow", "retryable": False, "max_retries_remaining": 2}}).retries == 2
