"""
Failures that hide in results, and their twins: honest results in which one field is another.
"""

import asyncio
import concurrent.futures
import http.client
import json
import socket
import sqlite3
import ssl
import subprocess
import urllib.error

from datetime import UTC, datetime
from email.message import Message
from email.utils import format_datetime
from types import SimpleNamespace
from typing import Any

import httpx2
import openai
import orjson
import pytest

from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from guardrails import Envelope, Failed, Policy, Retryable, Success, Tool
from guardrails.core.result import Terms, reading_of
from guardrails.core.result.exceptions import failure_of
from guardrails.core.result.failures import Source
from guardrails.core.result.kinds import kind_of, kind_of_text
from guardrails.core.result.waits import MAX_WAIT_MS, wait_in_text, wait_ms
from guardrails.core.tool import source_of, speaker
from guardrails.core.values.types import ERROR_TYPES
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


@table("claim", [True, False])
def test_the_articles_own_error_object_keeps_its_fields_as_claims(claim: bool) -> None:
    said = {"status": "error", "error_type": "timeout", "retryable": claim, "max_retries_remaining": 1}
    said["error_message"] = "slow"
    read = reading_of(said)
    envelope = Policy([Retryable()]).session("s").call("search", {}, lambda *_: said)

    assert (read.retryable, read.retries) == (claim, 1)
    assert (envelope.status, envelope.error_type, envelope.retryable) == ("error", "timeout", claim)
    assert (envelope.max_retries_remaining or 0) == int(claim)


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


# The kind of a failure: of a number, a name, a text, an exception; and how long the other side asked to wait


REQUEST = httpx2.Request("GET", "https://example.com")


@table(("kind", "names"), RESULTS["names"].items())
def test_a_name_a_code_or_a_number_has_a_kind(kind: str, names: str) -> None:
    known = [int(name) if name.lstrip("-").isdecimal() else name for name in names.split()]
    assert {name: kind_of(name) for name in known} == dict.fromkeys(known, None if kind == "none" else kind)


@table(("kind", "texts"), RESULTS["words"].items())
def test_the_words_of_an_error_tell_its_kind(kind: str, texts: list[str]) -> None:
    assert {text: kind_of_text(text) for text in texts} == dict.fromkeys(texts, None if kind == "none" else kind)


def client(name: str, text: str = "no", base: type[BaseException] = Exception, **attributes: Any) -> BaseException:
    exc: BaseException = type(name, (base,), {"__module__": "client"})(text)
    vars(exc).update(attributes)
    return exc


def response(status: int, **headers: str) -> httpx2.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.Response(status, headers=named, request=REQUEST)


def botocore(code: str, status: int) -> BaseException:
    answer = {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return client("ClientError", response=answer)


def caused(exc: BaseException, cause: Any = None, context: Any = None) -> BaseException:
    exc.__cause__, exc.__context__, exc.__suppress_context__ = cause, context, cause is not None
    return exc


def refusal(**headers: str) -> Exception:
    return httpx2.HTTPStatusError("no", request=REQUEST, response=response(429, **headers))


GONE = ConnectionResetError("gone")


@table(("kind", "raised"), [
    ("timeout", (TimeoutError(), concurrent.futures.TimeoutError(), client("Odd", error=SimpleNamespace(code=408)))),
    ("cancelled", (asyncio.CancelledError(), concurrent.futures.CancelledError(), KeyboardInterrupt())),
    ("connection", (ConnectionError(), BrokenPipeError(), http.client.RemoteDisconnected("closed"), client("ClientPayloadError"))),
    ("connection", (ssl.SSLCertVerificationError("certificate verify failed"), socket.gaierror(-3, "Temporary failure in name resolution"))),
    ("not_found", (socket.gaierror(-2, "Name or service not known"), FileNotFoundError(), LookupError("nothing"), ValueError("user not found"))),
    ("unavailable", (ConnectionRefusedError(), urllib.error.URLError(ConnectionRefusedError()), client("X", code="ECONNREFUSED"))),
    ("unavailable", (client("OperationalError", orig=sqlite3.OperationalError("database is locked")), client("T", "HTTP error 503"))),
    ("permission", (httpx2.HTTPStatusError("no", request=REQUEST, response=response(403, x_ratelimit_remaining="9")),)),
    ("rate_limit", (httpx2.HTTPStatusError("no", request=REQUEST, response=response(403, x_ratelimit_remaining="0")),)),
    ("permission", (PermissionError(), client("RateLimitError", "insufficient_quota", status_code=429))),
    ("conflict", (FileExistsError(), client("HTTPException", status_code=409))),
    ("invalid_path", (NotADirectoryError(), IsADirectoryError(), OSError(36, "File name too long"))),
    ("precondition", (OSError(28, "No space left on device"), botocore("ConditionalCheckFailedException", 400))),
    ("code_error", (KeyError("timeout"), IndexError(), TypeError("unsupported operand"), ZeroDivisionError())),
    ("validation", (ValueError("check_out must be after check_in"), ValueError("invalid token at position 3"), client("HTTPError", status_code=422))),
    ("validation", (TypeError("f() missing 1 required positional argument: 'a'"), client("McpError", error=SimpleNamespace(code=-32602)))),
    ("rate_limit", (botocore("ThrottlingException", 400), httpx2.HTTPStatusError("no", request=REQUEST, response=response(403, retry_after="1")))),
    ("auth", (botocore("ExpiredToken", 400), openai.AuthenticationError("no", response=response(401), body=None))),
    ("server_error", (json.JSONDecodeError("Expecting value", "<html>", 0), json.JSONDecodeError("no", "", 0), botocore("Surprise", 500))),
    ("exec_nonzero", (subprocess.CalledProcessError(2, "x"), SystemExit(1))),
    ("not_found", (urllib.error.HTTPError("http://x", 404, "Not Found", Message(), None), botocore("404", 404))),
    ("other", (OSError("something"), RuntimeError("odd"), client("WebSocketClosed", code=1006), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no"))),
    ("connection", (caused(RuntimeError("tool failed"), cause=GONE), caused(RuntimeError("tool failed"), context=GONE), client("R", cause=GONE))),
    ("connection", (BaseExceptionGroup("several", [asyncio.CancelledError(), ExceptionGroup("in", [GONE])]),)),
    ("other", (caused(RuntimeError("failed"), cause=RuntimeError("inner"), context=GONE),)),
])  # fmt: skip
def test_an_exception_has_a_kind(kind: str, raised: tuple[BaseException, ...]) -> None:
    assert [failure_of(exc).error_type for exc in raised] == [kind] * len(raised)


@table(("exc", "arguments", "kind"), [
    (json.JSONDecodeError("Expecting value", "{a", 0), {"payload": "{a"}, "validation"),
    (json.JSONDecodeError("Expecting value", "{a", 0), {"payload": "b"}, "server_error"),
    (json.JSONDecodeError("Expecting value", "", 0), {"payload": " "}, "validation"), (json.JSONDecodeError("Expecting value", "", 0), {}, "validation"),
    (json.JSONDecodeError("Expecting value", "", 0), {"payload": "b"}, "server_error"),
    (TypeError("f() got an unexpected keyword argument 'a'"), {"a": 1}, "validation"),
    (TypeError("f() got an unexpected keyword argument 'a'"), {"b": 1}, "code_error"),
])  # fmt: skip
def test_a_fault_in_something_else_is_none_of_the_arguments(exc: Exception, arguments: Any, kind: str) -> None:
    assert failure_of(exc, arguments).error_type == kind


@table(("result", "passes"), RESULTS["passes"])
def test_whether_a_failure_passes_is_said_where_its_kind_does_not(result: Any, passes: bool | None) -> None:
    assert reading_of(result).retryable is passes


def test_a_wrapper_is_looked_through_for_its_message_its_status_and_its_wait() -> None:
    cause = httpx2.HTTPStatusError("503 from upstream", request=REQUEST, response=response(503, retry_after="6"))
    read = reading_of(caused(RuntimeError("tool failed"), cause))

    assert (read.error_type, read.http_status, read.retry_after_ms) == ("unavailable", 503, 6000)
    assert read.error_message == "tool failed: 503 from upstream"
    assert reading_of(KeyError("x")).error_message == "KeyError: 'x'"


def test_a_cycle_and_a_long_chain_of_causes_end() -> None:
    one, two = RuntimeError("one"), RuntimeError("two")
    one.__cause__, two.__cause__ = two, one
    far: BaseException = GONE
    for _ in range(1000):
        far = caused(RuntimeError("again"), cause=far)

    assert failure_of(one).error_type == failure_of(far).error_type == "other"


class Hostile(Exception):
    """
    Fails at every attribute.
    """

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __str__(self) -> str:
        raise ValueError

    __repr__ = __str__


def test_an_exception_that_fails_when_looked_at_is_an_error_all_the_same() -> None:
    reads = [reading_of(exc) for exc in (Hostile(), caused(RuntimeError(), cause=Hostile()))]
    assert [(read.error_type, read.http_status) for read in reads] == [("other", None)] * 2


ANY = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.binary(max_size=9)
NESTED = ANY | st.lists(ANY, max_size=3) | st.dictionaries(st.text(max_size=9), ANY, max_size=3)
ATTRIBUTES = st.sampled_from(
    ["code", "status", "status_code", "response", "headers", "error", "resp", "reason", "retry_after", "doc"]
)


@given(st.dictionaries(ATTRIBUTES, NESTED, max_size=4), st.text(max_size=50))
def test_the_kind_is_always_one_of_the_closed_list(attributes: dict[str, Any], text: str) -> None:
    read = reading_of(client("SomethingError", text, **attributes))

    assert read.error_type in ERROR_TYPES
    assert kind_of_text(text) in {*ERROR_TYPES, None}
    assert read.http_status is None or 400 <= read.http_status < 600


def test_a_failed_command_says_what_it_wrote() -> None:
    failures = [failure_of(subprocess.CalledProcessError(2, "make", stderr=text)) for text in ("no rule", b"no rule")]
    assert [(one.error_type, "no rule" in one.error_message) for one in failures] == [("exec_nonzero", True)] * 2


# Waits


NOW = 1_700_000_000_000
"""Tue, 14 Nov 2023 22:13:20 GMT, in milliseconds."""


@table(("value", "wait"), RESULTS["seconds"])
def test_seconds_and_dates_become_milliseconds_and_nonsense_is_ignored(value: Any, wait: int | None) -> None:
    assert wait_ms(value, NOW) == wait


@given(st.datetimes(datetime(1970, 1, 2), datetime(2099, 1, 1)))  # noqa: DTZ001
def test_every_http_date_is_read(moment: datetime) -> None:
    at = moment.replace(microsecond=0, tzinfo=UTC)
    wait = wait_ms(format_datetime(at, usegmt=True), int(at.timestamp() * 1000) - 5000)

    assert wait == 5000


def test_a_date_without_a_clock_says_nothing() -> None:
    assert failure_of(refusal(Retry_After="Tue, 14 Nov 2023 22:13:30 GMT")).retry_after_ms is None


@table("case", RESULTS["headers"])
def test_headers_say_it_in_any_case(case: dict[str, Any]) -> None:
    assert failure_of(refusal(**case["headers"]), now_ms=NOW).retry_after_ms == case["wait"]


@table(("attributes", "wait"), RESULTS["clients"])
def test_clients_carry_it_in_different_places(attributes: dict[str, Any], wait: int | None) -> None:
    exc = Exception("no")
    vars(exc).update(attributes)

    assert failure_of(exc, now_ms=NOW).retry_after_ms == wait


@table("case", RESULTS["waits"])
def test_a_text_asks_for_a_wait_in_words(case: dict[str, Any]) -> None:
    assert wait_in_text(case["text"], NOW) == case["wait"]
    assert failure_of(RuntimeError(case["text"]), now_ms=NOW).retry_after_ms == case["wait"]


@given(st.text(max_size=80) | st.text(alphabet="retry after wait in0123456789.:smh- ", max_size=80))
def test_no_text_is_too_strange(text: str) -> None:
    for wait in (wait_ms(text, NOW), wait_in_text(text, NOW)):
        assert wait is None or 0 <= wait <= MAX_WAIT_MS


@table(("result", "wait_ms"), [
    ({"status": 404, "error": "no such page", "x-ratelimit-reset": 30}, None),
    ({"status": 429, "error": "slow down", "x-ratelimit-reset": 30}, 30_000),
    ({"error": "rate limit exceeded", "x-ratelimit-reset": 30}, 30_000),
])  # fmt: skip
def test_the_end_of_a_window_is_a_wait_of_what_the_window_refusal(result: Any, wait_ms: int | None) -> None:
    assert reading_of(result).retry_after_ms == wait_ms
