"""
Exceptions of Python and of the common clients.

The clients that are not installed here are stood in for by classes with the names and attributes that they document.
"""

import asyncio
import concurrent.futures
import http.client
import json
import socket
import sqlite3
import subprocess
import urllib.error

from collections.abc import Callable
from email.message import Message
from types import SimpleNamespace
from typing import Any

import httpx2
import openai

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.outcome.error_types import diagnosis_of, http_status_of
from guardrails.core.values.types import ERROR_TYPES
from tests.tables import table


REQUEST = httpx2.Request("GET", "https://example.com")


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


def grpc(name: str) -> BaseException:
    return client("_InactiveRpcError", code=lambda: SimpleNamespace(name=name, value=(1, name)))


def caused(
    exc: BaseException, cause: BaseException | None = None, context: BaseException | None = None
) -> BaseException:
    exc.__cause__, exc.__context__ = cause, context
    exc.__suppress_context__ = cause is not None
    return exc


@table(
    ("exc", "kind"),
    [
        (TimeoutError(), "timeout"),
        (concurrent.futures.TimeoutError(), "timeout"),
        (asyncio.CancelledError(), "cancelled"),
        (concurrent.futures.CancelledError(), "cancelled"),
        (KeyboardInterrupt(), "cancelled"),
        (ConnectionError(), "connection"),
        (ConnectionResetError(), "connection"),
        (BrokenPipeError(), "connection"),
        (socket.gaierror(-2, "Name or service not known"), "connection"),
        (http.client.RemoteDisconnected("closed"), "connection"),
        (http.client.IncompleteRead(b""), "connection"),
        (asyncio.IncompleteReadError(b"", 1), "connection"),
        (PermissionError(), "permission"),
        (FileNotFoundError(), "not_found"),
        (FileExistsError(), "conflict"),
        (NotADirectoryError(), "invalid_path"),
        (IsADirectoryError(), "invalid_path"),
        (OSError(28, "No space left on device"), "precondition"),
        (OSError(36, "File name too long"), "invalid_path"),
        (OSError("something"), "other"),
        (LookupError("nothing"), "not_found"),
        (KeyError("timeout"), "code_error"),
        (IndexError(), "code_error"),
        (TypeError("unsupported operand"), "code_error"),
        (TypeError("f() got an unexpected keyword argument 'a'"), "validation"),
        (TypeError("f() missing 1 required positional argument: 'a'"), "validation"),
        (ValueError("check_out must be after check_in"), "validation"),
        (ValueError("user not found"), "not_found"),
        (ValueError("invalid token at position 3"), "validation"),
        (ValueError(), "validation"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "not found"), "other"),
        (json.JSONDecodeError("Expecting value", "<html>502</html>", 0), "server_error"),
        (json.JSONDecodeError("Expecting value", "", 0), "server_error"),
        (json.JSONDecodeError("Expecting value", "{a", 0), "server_error"),
        (ZeroDivisionError(), "code_error"),
        (NotImplementedError(), "code_error"),
        (RecursionError(), "code_error"),
        (MemoryError(), "too_large"),
        (ModuleNotFoundError(), "not_found"),
        (SystemExit(2), "exec_nonzero"),
        (subprocess.CalledProcessError(1, ["ls"]), "exec_nonzero"),
        (subprocess.TimeoutExpired(["ls"], 1), "timeout"),
        (sqlite3.OperationalError("database is locked"), "unavailable"),
        (sqlite3.OperationalError("no such table: t"), "not_found"),
        (sqlite3.OperationalError('near "selec": syntax error'), "validation"),
        (sqlite3.IntegrityError("UNIQUE constraint failed: t.a"), "conflict"),
        (RuntimeError("HTTP 429 Too Many Requests"), "rate_limit"),
        (RuntimeError("it broke"), "other"),
        (Exception(), "other"),
        (BaseException(), "other"),
    ],
)
def test_d4_the_exceptions_of_python_have_a_kind(exc: BaseException, kind: str) -> None:
    assert diagnosis_of(exc)[0] == kind


@table(
    ("exc", "kind", "status"),
    [
        (httpx2.HTTPStatusError("no", request=REQUEST, response=response(404)), "not_found", 404),
        (httpx2.HTTPStatusError("no", request=REQUEST, response=response(503)), "unavailable", 503),
        (httpx2.HTTPStatusError("no", request=REQUEST, response=response(403)), "permission", 403),
        (httpx2.HTTPStatusError("no", request=REQUEST, response=response(403, retry_after="9")), "rate_limit", 403),
        (
            httpx2.HTTPStatusError("no", request=REQUEST, response=response(403, x_ratelimit_remaining="0")),
            "rate_limit",
            403,
        ),
        (httpx2.ConnectTimeout("no"), "timeout", None),
        (httpx2.ConnectError("no"), "connection", None),
        (httpx2.ReadError("no"), "connection", None),
        (httpx2.RemoteProtocolError("no"), "connection", None),
        (httpx2.UnsupportedProtocol("no"), "validation", None),
        (openai.APITimeoutError(REQUEST), "timeout", None),
        (openai.APIConnectionError(request=REQUEST), "connection", None),
        (openai.RateLimitError("no", response=response(429), body=None), "rate_limit", 429),
        (openai.RateLimitError("no", response=response(429), body={"code": "insufficient_quota"}), "permission", 429),
        (
            openai.RateLimitError(
                "You exceeded your current quota, check your billing details", response=response(429), body=None
            ),
            "permission",
            429,
        ),
        (client("ServerError", status_code=501), "validation", 501),
        (client("DeadlockDetected", sqlstate="40P01"), "unavailable", None),
        (client("LockNotAvailable"), "unavailable", None),
        (openai.AuthenticationError("no", response=response(401), body=None), "auth", 401),
        (openai.BadRequestError("no", response=response(400), body=None), "validation", 400),
        (
            openai.BadRequestError("no", response=response(400), body={"code": "context_length_exceeded"}),
            "too_large",
            400,
        ),
        (openai.InternalServerError("no", response=response(500), body=None), "server_error", 500),
        (client("OverloadedError", status_code=529), "unavailable", 529),
        (client("ConnectionError", base=OSError, response=None), "connection", None),
        (client("ReadTimeout", base=OSError), "timeout", None),
        (client("HTTPError", response=SimpleNamespace(status_code=502, headers={})), "unavailable", 502),
        (client("ClientResponseError", status=429, headers={}), "rate_limit", 429),
        (client("ContentTypeError", status=200), "server_error", None),
        (client("ClientPayloadError"), "connection", None),
        (urllib.error.HTTPError("http://x", 404, "Not Found", Message(), None), "not_found", 404),
        (urllib.error.URLError(ConnectionRefusedError()), "connection", None),
        (urllib.error.URLError(TimeoutError()), "timeout", None),
        (botocore("ThrottlingException", 400), "rate_limit", 400),
        (botocore("ExpiredToken", 400), "auth", 400),
        (botocore("NoSuchKey", 404), "not_found", 404),
        (botocore("404", 404), "not_found", 404),
        (botocore("ConditionalCheckFailedException", 400), "precondition", 400),
        (botocore("Surprise", 500), "server_error", 500),
        (client("NoCredentialsError"), "auth", None),
        (client("FailedPrecondition", code=400), "precondition", 400),
        (client("ResourceExhausted", code=429), "rate_limit", 429),
        (client("Unknown", code=500), "server_error", 500),
        (grpc("UNAVAILABLE"), "unavailable", None),
        (grpc("DEADLINE_EXCEEDED"), "timeout", None),
        (grpc("UNKNOWN"), "other", None),
        (client("McpError", error=SimpleNamespace(code=-32602, message="no")), "validation", None),
        (client("McpError", error=SimpleNamespace(code=408, message="no")), "timeout", 408),
        (client("MCPError", code=-32601), "tool_missing", None),
        (client("OperationalError", orig=sqlite3.OperationalError("database is locked")), "unavailable", None),
        (client("UniqueViolation", sqlstate="23505"), "conflict", None),
        (client("Error", pgcode="40001"), "unavailable", None),
        (client("HttpError", resp=SimpleNamespace(status="404")), "not_found", 404),
        (client("HTTPException", status_code=422), "validation", 422),
        (client("JSBridgeError", code="ECONNREFUSED"), "connection", None),
        (client("WebSocketClosed", code=1006), "other", None),
        (client("Odd", code=True), "other", None),
        (client("ToolException", "HTTP error 503 from upstream"), "unavailable", None),
    ],
)
def test_the_errors_of_the_common_clients_have_a_kind_and_a_status(
    exc: BaseException, kind: str, status: int | None
) -> None:
    assert (diagnosis_of(exc)[0], http_status_of(exc)) == (kind, status)


@table(
    ("exc", "arguments", "kind"),
    [
        (json.JSONDecodeError("Expecting value", "{a", 0), {"payload": "{a"}, "validation"),
        (json.JSONDecodeError("Expecting value", "{a", 0), {"payload": "b"}, "server_error"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no"), {"path": "a"}, "other"),
        (TypeError("f() got an unexpected keyword argument 'a'"), {"a": 1}, "validation"),
        (TypeError("f() got an unexpected keyword argument 'a'"), {"b": 1}, "code_error"),
    ],
)
def test_what_is_wrong_with_something_else_is_not_the_fault_of_the_arguments(
    exc: BaseException, arguments: dict[str, Any], kind: str
) -> None:
    assert diagnosis_of(exc, arguments)[0] == kind


GONE = ConnectionResetError("gone")


@table(
    ("exc", "kind"),
    [
        (caused(RuntimeError("tool failed"), cause=GONE), "connection"),
        (caused(client("ToolException"), cause=caused(client("RetryError"), cause=GONE)), "connection"),
        (caused(RuntimeError("tool failed"), context=GONE), "connection"),
        (caused(PermissionError(), cause=GONE), "permission"),
        (caused(Exception("HTTP 404"), context=KeyError("x")), "not_found"),
        (caused(RuntimeError("tool failed"), cause=RuntimeError("inner"), context=GONE), "other"),
        (ExceptionGroup("several", [GONE]), "connection"),
        (BaseExceptionGroup("several", [asyncio.CancelledError(), ExceptionGroup("in", [GONE])]), "connection"),
        (BaseExceptionGroup("several", [asyncio.CancelledError()]), "cancelled"),
        (client("RetryError", cause=GONE), "connection"),
    ],
)
def test_a_wrapper_that_says_nothing_is_looked_through(exc: BaseException, kind: str) -> None:
    assert diagnosis_of(exc)[0] == kind


def test_the_exception_that_told_the_kind_is_known() -> None:
    assert diagnosis_of(caused(RuntimeError("tool failed"), cause=GONE)) == ("connection", GONE)


def test_a_cycle_of_causes_ends() -> None:
    one, two = RuntimeError("one"), RuntimeError("two")
    one.__cause__, two.__cause__ = two, one

    assert diagnosis_of(one)[0] == "other"


def test_a_long_chain_is_not_followed_for_ever() -> None:
    exc: BaseException = GONE
    for _ in range(1000):
        exc = caused(RuntimeError("again"), cause=exc)

    assert diagnosis_of(exc)[0] == "other"


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


@table("make", [Hostile, Lying, lambda: caused(RuntimeError(), cause=Hostile())])
def test_an_exception_that_fails_when_looked_at_is_an_error_all_the_same(make: Callable[[], BaseException]) -> None:
    exc = make()

    assert diagnosis_of(exc)[0] == "other"
    assert http_status_of(exc) is None


ANY = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), st.binary(max_size=9))
NESTED = st.recursive(
    ANY, lambda inner: st.dictionaries(st.text(max_size=9), inner, max_size=3) | st.lists(inner), max_leaves=5
)


@given(
    st.dictionaries(
        st.sampled_from(
            ["code", "status", "status_code", "response", "headers", "error", "resp", "reason", "orig", "sqlstate"]
        ),
        NESTED,
        max_size=4,
    ),
    st.text(max_size=50),
)
def test_the_kind_is_always_one_of_the_closed_list(attributes: dict[str, Any], text: str) -> None:
    exc = client("SomethingError", text, **attributes)

    assert diagnosis_of(exc)[0] in ERROR_TYPES
    status = http_status_of(exc)
    assert status is None or 400 <= status < 600
