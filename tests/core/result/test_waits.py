"""
How long the other side asked to wait.
"""

import sqlite3

from datetime import UTC, datetime
from email.utils import format_datetime
from types import SimpleNamespace
from typing import Any

import httpx2

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.result import reading_of
from guardrails.core.result.exceptions import failure_of
from guardrails.core.result.waits import MAX_WAIT_MS, wait_in_text, wait_ms
from tests.tables import table


NOW = 1_700_000_000_000
"""Tue, 14 Nov 2023 22:13:20 GMT, in milliseconds."""


def refused(**headers: str) -> Exception:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = httpx2.Request("GET", "https://example.com")
    return httpx2.HTTPStatusError("no", request=request, response=httpx2.Response(429, headers=named, request=request))


@table(("value", "wait"), [
    ("7", 7000), ("0", 0), ("2.5", 2500), (" 3 ", 3000), (3, 3000), (0.25, 250), ("Tue, 14 Nov 2023 22:13:30 GMT", 10_000),
    ("Tuesday, 14-Nov-23 22:13:30 GMT", 10_000), ("Tue Nov 14 22:13:30 2023", 10_000), ("Tue, 14 Nov 2023 22:13:10 GMT", 0),
    ("Sun, 06 Nov 1994 08:49:37 GMT", 0), ("Fri, 14 Nov 2053 22:13:30 GMT", MAX_WAIT_MS), ("999999999", MAX_WAIT_MS), (1e300, MAX_WAIT_MS), ("-1", None),
    (-1, None), ("nan", None), (float("inf"), None), ("inf", None), ("1_000", None), ("soon", None), ("", None), ("9" * 5000, None),
    ("Tue, 99 Nov 2023 22:13:30 GMT", None), ("Tue, 14 Foo 2023 22:13:30 GMT", None), ("Tue, 14 Nov 2023 22:13:30 PST", None), (True, None), (None, None),
    ([], None),
])  # fmt: skip
def test_seconds_and_dates_become_milliseconds_and_nonsense_is_ignored(value: Any, wait: int | None) -> None:
    assert wait_ms(value, NOW) == wait


@given(st.datetimes(datetime(1970, 1, 2), datetime(2099, 1, 1)))  # noqa: DTZ001
def test_every_http_date_is_read(moment: datetime) -> None:
    at = moment.replace(microsecond=0, tzinfo=UTC)
    wait = wait_ms(format_datetime(at, usegmt=True), int(at.timestamp() * 1000) - 5000)

    assert wait == 5000


@given(st.text(max_size=80))
def test_no_text_is_too_strange(text: str) -> None:
    wait = wait_ms(text, NOW)

    assert wait is None or 0 <= wait <= MAX_WAIT_MS


def test_the_reset_of_a_limit_says_nothing_of_another_failure() -> None:
    request = httpx2.Request("GET", "https://example.com")
    answer = httpx2.Response(404, headers={"x-ratelimit-reset": "60"}, request=request)

    assert failure_of(httpx2.HTTPStatusError("no", request=request, response=answer), now_ms=NOW).retry_after_ms is None


def test_a_date_without_a_clock_says_nothing() -> None:
    assert failure_of(refused(Retry_After="Tue, 14 Nov 2023 22:13:30 GMT")).retry_after_ms is None


@table(("headers", "wait"), [
    ({"RETRY_AFTER": "4"}, 4000), ({"x_ms_retry_after_ms": "300"}, 300), ({"retry_after": "1700000030"}, 30_000), ({"retry_after": "1700000030000"}, 30_000),
    ({"retry_after": "2m"}, 120_000), ({"ratelimit": '"default";r=0;t=25'}, 25_000), ({"RateLimit": "limit=100, remaining=0, reset=25"}, 25_000),
    ({"retry_after_ms": "1500", "retry_after": "9"}, 1500), ({"retry_after_ms": "x", "retry_after": "9"}, 9000),
    ({"x_ratelimit_remaining": "0", "x_ratelimit_reset": "1700000060"}, 60_000), ({"x_ratelimit_remaining": "5", "x_ratelimit_reset": "1700000060"}, None),
    ({"x_ratelimit_remaining": "0", "x_ratelimit_reset": "60"}, 60_000), ({"x_ratelimit_reset": "1700000060"}, 60_000),
    ({"x_ratelimit_reset": "1700000060000"}, 60_000), ({"X_RATELIMIT_RESET_REQUESTS": "1s", "X_RATELIMIT_RESET_TOKENS": "6m0s"}, 360_000),
    ({"x_rate_limit_reset": "1700000060", "x_rate_limit_remaining": "0"}, 60_000), ({"ratelimit_reset": "30", "ratelimit_remaining": "0"}, 30_000),
    ({"anthropic_ratelimit_requests_remaining": "0", "anthropic_ratelimit_requests_reset": "2023-11-14T22:13:30Z"}, 10_000),
    ({"x_ratelimit_remaining": "0", "x_ratelimit_reset": "1600000000"}, 0),
    ({"x_ratelimit_remaining_requests": "0", "x_ratelimit_reset_requests": "1m30s"}, 90_000),
    ({"x_ratelimit_remaining_tokens": "0", "x_ratelimit_reset_tokens": "120ms"}, 120),
    ({"x_ratelimit_remaining_tokens": "9", "x_ratelimit_reset_tokens": "6m0s"}, None),
    ({"x_ratelimit_remaining_tokens": "0", "x_ratelimit_reset_tokens": "soon"}, None), ({}, None),
])  # fmt: skip
def test_headers_say_it_in_any_case(headers: dict[str, str], wait: int | None) -> None:
    assert failure_of(refused(**headers), now_ms=NOW).retry_after_ms == wait


@table(("attributes", "wait"), [
    ({"retry_after": 2}, 2000), ({"retry_after_ms": 1200}, 1200), ({"retry_after": None}, None),
    ({"headers": {"Retry-After": "3"}}, 3000), ({"response": {"ResponseMetadata": {"HTTPHeaders": {"retry-after": "4"}}}}, 4000),
    ({"response": {"ResponseMetadata": None}}, None), ({"response": SimpleNamespace(headers=None)}, None), ({"resp": {"retry-after": "5"}}, 5000),
    ({"headers": [("Retry-After", "3")]}, None),
])  # fmt: skip
def test_clients_carry_it_in_different_places(attributes: dict[str, Any], wait: int | None) -> None:
    exc = Exception("no")
    vars(exc).update(attributes)

    assert failure_of(exc, now_ms=NOW).retry_after_ms == wait


@table(("text", "wait"), [
    ("HTTP/1.1 429 Too Many Requests\r\nRetry-After: 17\r\nContent-Length: 0", 17_000), ("Retry after 30 seconds", 30_000),
    ("Rate limit reached. Please try again in 20s. Visit the dashboard.", 20_000), ("Please wait 2 minutes", 120_000),
    ("Wait for at least 5 min before the next request", 300_000), ("Please try again in 6m0s.", 360_000), ("try again in 120ms", 120),
    ("The limit resets at 2023-11-14T22:13:30Z.", 10_000), ("Quota exceeded, resets on Tue, 14 Nov 2023 22:13:30 GMT", 10_000),
    ("try again after 2023-11-14 22:13:30 UTC", 10_000), ('RateLimit: "default";r=0;t=25', 25_000), ("x-ms-retry-after-ms: 300", 300),
    ("retry in 1.5 seconds", 1500), ("try again in an hour", 3_600_000), ("please try again in 3 days", MAX_WAIT_MS), ("quota resets in 45s", 45_000),
    ("Retry-After: 30", 30_000), ("Retry-After: Tue, 14 Nov 2023 22:13:30 GMT", 10_000), ("Retry after 2023-11-14T22:13:30Z", 10_000),
    ("{'retry-after': '12', 'via': 'x'}", 12_000), ('{"retryDelay": "34s"}', 34_000), ("retry_after_ms=2000", 2000),
    ("x-ratelimit-reset: 1700000060", 60_000), ("x-ratelimit-reset-tokens: 6m0s", 360_000), ("Retry after 3 attempts failed", None),
    ("try again in 20 sessions", None), ("timed out after 30 seconds", None), ("waited 30 seconds", None), ("retried after 5 s", None),
    ("Lock wait 50 seconds exceeded", None), ("Try again at 10:30", None), ("try again later", None),
])  # fmt: skip
def test_a_text_asks_for_a_wait_in_words(text: str, wait: int | None) -> None:
    assert wait_in_text(text, NOW) == wait
    assert failure_of(RuntimeError(text), now_ms=NOW).retry_after_ms == wait


@given(st.text(max_size=80) | st.text(alphabet="retry after wait in0123456789.:smh- ", max_size=80))
def test_no_words_are_too_strange(text: str) -> None:
    wait = wait_in_text(text, NOW)

    assert wait is None or 0 <= wait <= MAX_WAIT_MS


def test_a_lock_of_a_database_is_worth_a_moment() -> None:
    assert reading_of(sqlite3.OperationalError("database is locked")).retry_after_ms == 250
    assert reading_of({"error": "deadlock detected, retry in 2 s"}).retry_after_ms == 2000


def test_a_wrapper_is_looked_through() -> None:
    wrapper = RuntimeError("tool failed")
    wrapper.__cause__ = refused(retry_after="6")

    assert failure_of(wrapper).retry_after_ms == 6000


@table(("result", "wait_ms"), [
    ({"status": 404, "error": "no such page", "x-ratelimit-reset": 30}, None),
    ({"status": 429, "error": "slow down", "x-ratelimit-reset": 30}, 30_000),
    ({"error": "rate limit exceeded", "x-ratelimit-reset": 30}, 30_000),
])  # fmt: skip
def test_the_end_of_a_window_is_a_wait_of_what_the_window_refused(result: Any, wait_ms: int | None) -> None:
    assert reading_of(result).retry_after_ms == wait_ms
