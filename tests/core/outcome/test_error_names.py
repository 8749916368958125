"""
Names and numbers that errors go by.
"""

import errno

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.outcome.error_names import (
    error_type_of_builtin,
    error_type_of_errno,
    error_type_of_json_rpc,
    error_type_of_name,
    error_type_of_sql_state,
    error_type_of_status,
)
from guardrails.core.values.types import ERROR_TYPES
from tests.tables import table


@table(
    ("status", "kind"),
    [
        (400, "validation"),
        (422, "validation"),
        (401, "auth"),
        (403, "permission"),
        (404, "not_found"),
        (410, "not_found"),
        (408, "timeout"),
        (409, "conflict"),
        (412, "precondition"),
        (428, "precondition"),
        (413, "too_large"),
        (429, "rate_limit"),
        (499, "cancelled"),
        (418, "validation"),
        (500, "server_error"),
        (501, "validation"),
        (505, "validation"),
        (507, "precondition"),
        (511, "auth"),
        (502, "unavailable"),
        (503, "unavailable"),
        (529, "unavailable"),
        (504, "timeout"),
        (524, "timeout"),
        (599, "timeout"),
        (200, None),
        (302, None),
        (0, None),
        (600, None),
        (-1, None),
    ],
)
def test_an_http_status_has_a_kind(status: int, kind: str | None) -> None:
    assert error_type_of_status(status) == kind


@given(st.integers(400, 599))
def test_every_error_status_has_a_kind_of_the_closed_list(status: int) -> None:
    assert error_type_of_status(status) in ERROR_TYPES


@table(
    ("name", "kind"),
    [
        ("ConnectTimeout", "timeout"),
        ("APITimeoutError", "timeout"),
        ("DEADLINE_EXCEEDED", "timeout"),
        ("RateLimitError", "rate_limit"),
        ("rate_limit_exceeded", "rate_limit"),
        ("ThrottlingException", "rate_limit"),
        ("RESOURCE_EXHAUSTED", "rate_limit"),
        ("insufficient_quota", "permission"),
        ("AuthenticationError", "auth"),
        ("invalid_api_key", "auth"),
        ("ExpiredToken", "auth"),
        ("AccessDenied", "permission"),
        ("NoSuchKey", "not_found"),
        ("DoesNotExist", "not_found"),
        ("ToolNotFoundError", "tool_missing"),
        ("FAILED_PRECONDITION", "precondition"),
        ("ALREADY_EXISTS", "conflict"),
        ("IntegrityError", "conflict"),
        ("context_length_exceeded", "too_large"),
        ("ValidationError", "validation"),
        ("INVALID_ARGUMENT", "validation"),
        ("APIResponseValidationError", "server_error"),
        ("INTERNAL", "server_error"),
        ("UNAVAILABLE", "unavailable"),
        ("overloaded_error", "unavailable"),
        ("CircuitBreakerError", "unavailable"),
        ("ClientConnectorError", "connection"),
        ("RemoteProtocolError", "connection"),
        ("gaierror", "connection"),
        ("ECONNREFUSED", "connection"),
        ("ENOENT", "not_found"),
        ("CancelledError", "cancelled"),
        ("ToolException", None),
        ("RuntimeWarning", None),
        ("UNKNOWN", None),
        ("", None),
    ],
)
def test_a_class_name_or_a_code_has_a_kind(name: str, kind: str | None) -> None:
    assert error_type_of_name(name) == kind


@table(
    ("number", "kind"),
    [
        (errno.ENOENT, "not_found"),
        (errno.EROFS, "permission"),
        (errno.ENOSPC, "precondition"),
        (errno.ENAMETOOLONG, "invalid_path"),
        (errno.EHOSTUNREACH, "connection"),
        (errno.EBUSY, "conflict"),
        (errno.EINVAL, None),
        (99_999, None),
    ],
)
def test_an_error_number_of_the_system_has_a_kind(number: int, kind: str | None) -> None:
    assert error_type_of_errno(number) == kind


@table(
    ("code", "kind"),
    [(-32602, "validation"), (-32601, "tool_missing"), (-32603, "server_error"), (408, "timeout"), (-1, None)],
)
def test_a_json_rpc_code_has_a_kind(code: int, kind: str | None) -> None:
    assert error_type_of_json_rpc(code) == kind


@table(
    ("state", "kind"),
    [
        ("08006", "connection"),
        ("28P01", "auth"),
        ("42501", "permission"),
        ("42P01", "not_found"),
        ("42601", "validation"),
        ("23505", "conflict"),
        ("40001", "unavailable"),
        ("40P01", "unavailable"),
        ("55P03", "unavailable"),
        ("40000", "conflict"),
        ("53300", "unavailable"),
        ("57014", "cancelled"),
        ("00000", None),
    ],
)
def test_an_sql_state_has_a_kind(state: str, kind: str | None) -> None:
    assert error_type_of_sql_state(state) == kind


@table(
    ("name", "kind"),
    [("TimeoutError", "timeout"), ("KeyError", "code_error"), ("Exception", None), ("RuntimeError", None)],
)
def test_a_builtin_exception_has_a_kind_unless_it_says_nothing(name: str, kind: str | None) -> None:
    assert error_type_of_builtin(name) == kind
