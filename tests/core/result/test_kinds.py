"""
The kind of a failure: of a number, a name, a text, an exception.
"""

import asyncio
import concurrent.futures
import gzip
import http.client
import json
import socket
import sqlite3
import ssl
import subprocess
import urllib.error

from collections import Counter
from collections.abc import Callable
from email.message import Message
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import openai
import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.result import reading_of
from guardrails.core.result.exceptions import failure_of
from guardrails.core.result.kinds import kind_of, kind_of_text, status_in
from guardrails.core.values.errors import INSTEAD
from guardrails.core.values.types import ERROR_TYPES
from tests.tables import table


RECORDED = Path(__file__).parents[4] / "shared" / "data" / "errors_and_retries.jsonl.gz"
NAMES = {"server_5xx": "server_error", "stale_state": "precondition", "user_rejected": "cancelled"}
"""What the recorded file calls otherwise."""
PASSING = {"rate_limit", "timeout", "server_error", "unavailable", "connection"}
TRACED = 'Traceback (most recent call last):\n  File "x.py", line 1, in f\n    g()\nKeyError: 1'
REQUEST = httpx2.Request("GET", "https://example.com")


@table(("kind", "statuses"), [
    *(("validation", (400, 418, 422, 501, 505)), ("auth", (401, 407, 511)), ("permission", (402, 403, 451))),
    *(("not_found", (404, 410)), ("timeout", (408, 504, 524)), ("conflict", (409, 423)), ("precondition", (412, 428))),
    *(("too_large", (413,)), ("rate_limit", (429,)), ("cancelled", (499,)), ("server_error", (500, 520))),
    *(("unavailable", (502, 503, 529)), ("connection", (526,)), (None, (200, 302, 0, 600, -1))),
])  # fmt: skip
def test_an_http_status_has_a_kind(kind: str | None, statuses: tuple[int, ...]) -> None:
    assert {kind_of(status) for status in statuses} == {kind}


@table(("kind", "names"), [
    ("timeout", "ConnectTimeout APITimeoutError DEADLINE_EXCEEDED ETIMEDOUT timeout"),
    ("rate_limit", "RateLimitError rate_limit_exceeded ThrottlingException RESOURCE_EXHAUSTED TooManyRequests"),
    ("auth", "AuthenticationError invalid_api_key ExpiredToken UNAUTHENTICATED NoCredentialsError"),
    ("permission", "PermissionDeniedError insufficient_quota AccessDenied Forbidden EACCES"),
    ("not_found", "NotFoundError NoSuchKey DoesNotExist ENOENT ENOTFOUND FileNotFoundError"),
    ("conflict", "ConflictError AlreadyExists IntegrityError UniqueViolation EEXIST FileExistsError"),
    ("precondition", "PreconditionFailed ConditionalCheckFailedException ENOSPC"),
    ("validation", "ValidationError InvalidArgument BadRequestError UnprocessableEntity"),
    ("unavailable", "ServiceUnavailable OverloadedError DeadlockDetected SerializationFailure ECONNREFUSED"),
    ("server_error", "InternalServerError INTERNAL APIResponseValidationError"),
    ("connection", "ConnectError RemoteDisconnected SSLError RemoteProtocolError ECONNRESET EAI_AGAIN"),
    ("cancelled", "CancelledError KeyboardInterrupt AbortError"),
    ("tool_missing", "ToolNotFoundError UnknownTool Unimplemented"),
    ("code_error", "KeyError ZeroDivisionError code_error"), (None, "EOFError Exception RuntimeError OSError Surprise Unknown E1"),
])  # fmt: skip
def test_a_name_of_a_class_or_a_code_has_a_kind(kind: str | None, names: str) -> None:
    assert {name: kind_of(name) for name in names.split()} == dict.fromkeys(names.split(), kind)


def test_a_code_of_json_rpc_has_a_kind() -> None:
    codes = {-32601: "tool_missing", -32602: "validation", -32603: "server_error", 404: "not_found", -1: None}

    assert {code: kind_of(code) for code in codes} == codes


@table(("kind", "texts"), [
    ("not_found", ("Error: User not found", "ENOENT: no such file or directory, open '/x'", "Could not find [Foo]. Similar: []")),
    ("not_found", ("Error: Payment method not found", '{"message": "Not Found", "status": "404"}', "404 page not found\nTimeout limit: 30 s")),
    ("not_found", ("credentials.json was not found", "unauthorized.py: no such file", "/var/log/timeout.log does not exist")),
    ("not_found", ("getaddrinfo ENOTFOUND example.com", "Could not resolve host: x", "[Errno -2] Name or service not known")),
    ("tool_missing", ("Unknown tool: generate_slides", "Agent type 'x' not found. Available agents: y")),
    ("validation", ("Input validation error: 'path' is a required property", "String to replace not found in file.")),
    ("validation", ("genre must be an integer: thriller", "Invalid timezone: Foo/Bar", "invalid value for 'timeout'", "HTTP 501")),
    ("validation", ("cannot fetch file:///etc/x", "Request URL has an unsupported protocol 'file://'", "timeout must be an integer")),
    ("precondition", ("File has not been read yet. Read it first.", "File has been modified since read", "Please use 'make' first.")),
    ("timeout", ("Tool call timed out.", "context deadline exceeded", "Timeout", "Connection timeout to host https://x")),
    ("rate_limit", ("status code 429", "Rate limit reached for gpt-5-mini", "Quota exceeded: 60 requests per minute")),
    ("rate_limit", ("You exceeded your current quota. Please retry in 34s.", "you are making requests too quickly")),
    ("unavailable", ("HTTP/1.1 503", "database is locked", "SQLITE_BUSY", "deadlock detected", "connection refused", "Lock wait timeout exceeded")),
    ("server_error", ("request invalid, data error. status_code=500", "Expecting value: line 1 column 1 (char 0)", "Internal Server Error")),
    ("auth", ("401 Unauthorized", "Incorrect API key provided", "authentication failed for bob")),
    ("permission", ("Access denied for user", "insufficient_quota", "Your credit balance is too low", "Billing hard limit has been reached")),
    ("connection", ("fetch failed", "certificate verify failed", "socket hang up", "Temporary failure in name resolution")),
    ("conflict", ("a user of this name already exists", "another git process seems to be running")),
    ("too_large", ("File content (30000 tokens) exceeds maximum allowed tokens (25000).",)),
    ("invalid_path", ("EISDIR: illegal operation on a directory, read",)),
    ("cancelled", ("The user doesn\u2019t want to proceed with this tool use.", "[Request interrupted by user for tool use]")),
    ("code_error", (f"Timeout limit: 30 s\n{TRACED}", f"{TRACED}\nTimeout limit: 30 s", "KeyError: 'x'")),
    ("timeout", (TRACED.replace("KeyError: 1", "requests.exceptions.ReadTimeout: no"),)),
    ("unavailable", (TRACED.replace("KeyError: 1", "sqlite3.OperationalError: database is locked"),)),
    ("exec_nonzero", ("Exit code 1\nFAIL: 2 tests failed, 1 timeout", f"Exit code 1\nconnection refused\n{TRACED}")),
    ("not_found", ("Exit code 22\ncurl: (22) The requested URL returned error: HTTP 404",)), (None, ("Exit code 0", "Here are your results", "", "room 404")),
])  # fmt: skip
def test_the_words_of_an_error_tell_its_kind(kind: str | None, texts: tuple[str, ...]) -> None:
    assert {text: kind_of_text(text) for text in texts} == dict.fromkeys(texts, kind)


@table(("text", "status"), [
    *(("HTTP 404", 404), ("HTTP error! Status: 403", 403), ('"status": 429', 429), ("gh: Not Found (HTTP 404)", 404)),
    *(("429 Too Many Requests", 429), ("http://localhost:443/x", None), ("HTTP 200", None), ("room 404", None)),
])  # fmt: skip
def test_an_http_status_in_a_text_is_found(text: str, status: int | None) -> None:
    assert status_in(text) == status


def test_what_follows_is_known_for_each_kind_that_is_not_repeated_but_the_unknown() -> None:
    assert {kind for kind in ERROR_TYPES if kind not in INSTEAD} == PASSING | {"other"}


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


GONE = ConnectionResetError("gone")


@table(("kind", "raised"), [
    ("timeout", (TimeoutError(), concurrent.futures.TimeoutError(), client("Odd", error=SimpleNamespace(code=408)))),
    ("cancelled", (asyncio.CancelledError(), concurrent.futures.CancelledError(), KeyboardInterrupt())),
    ("connection", (ConnectionError(), BrokenPipeError(), http.client.RemoteDisconnected("closed"), client("ClientPayloadError"))),
    ("connection", (ssl.SSLCertVerificationError("certificate verify failed"), socket.gaierror(-3, "Temporary failure in name resolution"))),
    ("not_found", (socket.gaierror(-2, "Name or service not known"), FileNotFoundError(), LookupError("nothing"), ValueError("user not found"))),
    ("unavailable", (ConnectionRefusedError(), urllib.error.URLError(ConnectionRefusedError()), client("X", code="ECONNREFUSED"))),
    ("unavailable", (client("OperationalError", orig=sqlite3.OperationalError("database is locked")), client("T", "HTTP error 503"))),
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


@table(("result", "passes"), [
    (ssl.SSLCertVerificationError("certificate verify failed: certificate has expired"), False),
    (RuntimeError("Quota exceeded: 1000 requests per day"), False), (RuntimeError("daily request limit reached"), None),
    (sqlite3.IntegrityError("NOT NULL constraint failed: a.b"), False), (RuntimeError("content policy violation"), False),
    (FileExistsError("x already exists"), False), ({"status": 409, "message": "edit conflict"}, True), ({"status": 423, "message": "locked"}, True),
    ({"status": 409, "message": "a user of this name already exists"}, False), (TimeoutError("slow"), None), (ConnectionResetError("gone"), None),
])  # fmt: skip
def test_whether_a_failure_passes_is_said_where_its_kind_does_not(result: Any, passes: bool | None) -> None:
    assert reading_of(result).retryable is passes


def test_a_wrapper_is_looked_through_for_its_message_and_its_status() -> None:
    cause = httpx2.HTTPStatusError("503 from upstream", request=REQUEST, response=response(503))
    read = reading_of(caused(RuntimeError("tool failed"), cause))

    assert (read.error_type, read.http_status) == ("unavailable", 503)
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


class Lying(Exception):
    """
    Has every attribute, of every kind.
    """

    def __getattr__(self, name: str) -> Any:
        return Lying()

    def __call__(self) -> Any:
        raise KeyError

    def __iter__(self) -> Any:
        raise OSError


@pytest.mark.parametrize("make", [Hostile, Lying, lambda: caused(RuntimeError(), cause=Hostile())])
def test_an_exception_that_fails_when_looked_at_is_an_error_all_the_same(make: Callable[[], BaseException]) -> None:
    read = reading_of(make())

    assert (read.error_type, read.http_status) == ("other", None)


ANY = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.binary(max_size=9)
NESTED = st.recursive(
    ANY, lambda inner: st.dictionaries(st.text(max_size=9), inner, max_size=3) | st.lists(inner), max_leaves=5
)
ATTRIBUTES = st.sampled_from("code status status_code response headers error resp reason orig retry_after doc".split())  # noqa: SIM905


@given(st.dictionaries(ATTRIBUTES, NESTED, max_size=4), st.text(max_size=50))
def test_the_kind_is_always_one_of_the_closed_list(attributes: dict[str, Any], text: str) -> None:
    exc = client("SomethingError", text, **attributes)
    status = failure_of(exc).http_status

    assert reading_of(exc).error_type in ERROR_TYPES
    assert kind_of_text(text) in {*ERROR_TYPES, None}
    assert status is None or 400 <= status < 600


@pytest.mark.skipif(not RECORDED.exists(), reason="the recorded errors are not here")
def test_the_recorded_errors_of_real_agents_are_told_apart() -> None:
    agreed, total = Counter[str](), Counter[str]()
    with gzip.open(RECORDED, "rt", encoding="utf-8") as lines:
        for error in map(json.loads, lines):
            kind = NAMES.get(error["error_type"], error["error_type"])
            told = kind_of_text("\n".join(filter(None, (error["result_head"], error["result_tail"])))) or "other"
            agreed.update({"kind": told == kind, "passing": (told in PASSING) == (kind in PASSING)})
            total["all"] += 1

    assert agreed["kind"] / total["all"] > 0.97
    assert agreed["passing"] / total["all"] > 0.996


@table("written", ["no rule to make target", b"no rule to make target"])
def test_a_failed_command_says_what_it_wrote(written: str | bytes) -> None:
    failure = failure_of(subprocess.CalledProcessError(2, "make", stderr=written))
    assert failure.error_type == "exec_nonzero"
    assert "no rule to make target" in failure.error_message
