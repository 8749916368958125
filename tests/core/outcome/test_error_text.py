"""
Errors that are told in words.
"""

import gzip
import json
import time

from collections import Counter
from pathlib import Path

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.outcome.error_text import error_type_from_text, status_in_text
from guardrails.core.values.types import ERROR_TYPES
from tests.tables import table


RECORDED = Path(__file__).parents[4] / "shared" / "data" / "errors_and_retries.jsonl.gz"
NAMES = {"server_5xx": "server_error", "stale_state": "precondition", "user_rejected": "cancelled"}
"""What the recorded file calls otherwise."""
TRACED = 'Traceback (most recent call last):\n  File "x.py", line 1, in f\n    g()\nKeyError: 1'
GROUP = """  + Exception Group Traceback (most recent call last):
  |   File "x.py", line 1, in <module>
  | ExceptionGroup: several (2 sub-exceptions)
  | Timeout: a note
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "x.py", line 2, in f
    | ConnectionResetError: gone
    | Timeout: a note
    +---------------- 2 ----------------
    | Traceback (most recent call last):
    |   File "x.py", line 3, in g
    | asyncio.exceptions.CancelledError
    +------------------------------------
Timeout limit: 30 s"""


@table(
    ("text", "kind"),
    [
        ("Error: User not found", "not_found"),
        ("ENOENT: no such file or directory, open '/x'", "not_found"),
        ("Could not find [Foo]. Similar: []", "not_found"),
        ("Unknown tool: generate_slides", "tool_missing"),
        ("Agent type 'x' not found. Available agents: y", "tool_missing"),
        ("Error: Payment method not found", "not_found"),
        ("Input validation error: 'path' is a required property", "validation"),
        ("String to replace not found in file.", "validation"),
        ("genre must be an integer: thriller", "validation"),
        ("Error: Non-pending order cannot be modified", "validation"),
        ("File has not been read yet. Read it first before writing to it.", "precondition"),
        ("File has been modified since read, either by the user or by a linter.", "precondition"),
        ("Please use 'drawing_generateCanvas' first.", "precondition"),
        ("Tool call timed out.", "timeout"),
        ("context deadline exceeded", "timeout"),
        ("Failed to fetch https://x - status code 429", "rate_limit"),
        ("Rate limit reached for gpt-5-mini", "rate_limit"),
        ("you are likely making requests too quickly", "rate_limit"),
        ('{"message": "Not Found", "status": "404"}', "not_found"),
        ("HTTP/1.1 503", "unavailable"),
        ("request invalid, data error. status_code=500", "server_error"),
        ("401 Unauthorized", "auth"),
        ("Incorrect API key provided", "auth"),
        ("Access denied for user", "permission"),
        ("database is locked", "unavailable"),
        ("database table is locked: orders", "unavailable"),
        ("SQLITE_BUSY", "unavailable"),
        ("deadlock detected", "unavailable"),
        ("could not serialize access due to concurrent update", "unavailable"),
        ("Lock wait timeout exceeded; try restarting transaction", "unavailable"),
        ("insufficient_quota", "permission"),
        ("You exceeded your current quota, please check your plan and billing details.", "permission"),
        ("Error code: 429 - {'error': {'code': 'insufficient_quota'}}", "permission"),
        ("Your credit balance is too low", "permission"),
        ("Billing hard limit has been reached", "permission"),
        ("You exceeded your current quota. Please retry in 34s.", "rate_limit"),
        ("Quota exceeded: 60 requests per minute", "rate_limit"),
        ("HTTP 501", "validation"),
        ("This method is not implemented", "validation"),
        ("Expecting value: line 1 column 1 (char 0)", "server_error"),
        ("Unexpected token < in JSON at position 0", "server_error"),
        ("getaddrinfo ENOTFOUND example.com", "connection"),
        ("fetch failed", "connection"),
        ("File content (30000 tokens) exceeds maximum allowed tokens (25000).", "too_large"),
        ("EISDIR: illegal operation on a directory, read", "invalid_path"),
        ("The user doesn't want to proceed with this tool use.", "cancelled"),
        ("The user doesn\u2019t want to proceed with this tool use.", "cancelled"),
        ("InternalServerError: no", "server_error"),
        ("KeyError: 'x'", "code_error"),
        ('Traceback (most recent call last):\n  File "x", line 1\nTypeError: no', "code_error"),
        (f"Timeout limit: 30 s\n{TRACED}", "code_error"),
        (f"{TRACED}\nTimeout limit: 30 s", "code_error"),
        (f"Timeout limit: 30 s\n{'x' * 5_000}\n{TRACED}\n{'x' * 5_000}", "code_error"),
        (f"connection refused, trying again\n{TRACED}", "code_error"),
        (f"Exit code 1\nconnection refused, trying again\n{TRACED}", "exec_nonzero"),
        (
            f"{TRACED}\n\nDuring handling of the above exception, ...\n\n{TRACED.replace('KeyError', 'TimeoutError')}",
            "timeout",
        ),
        (
            f"{TRACED.replace('KeyError', 'TimeoutError')}\n\nDuring handling of the above exception, ...\n\n{TRACED}",
            "code_error",
        ),
        (
            f"{TRACED.replace('KeyError', 'ConnectionError')}\n\n... the direct cause ...\n\n{TRACED.replace('KeyError', 'RuntimeError')}",
            "connection",
        ),
        (GROUP, "connection"),
        ('Traceback (most recent call last):\n  File "x", line 1\nrequests.exceptions.ReadTimeout: no', "timeout"),
        ("Exit code 1\nFAIL: 2 tests failed, 1 timeout, rate limit test ok", "exec_nonzero"),
        ("Exit code 127\nbash: foo: command not found", "not_found"),
        ("Process exited with code 2\nerror: unexpected argument", "exec_nonzero"),
        ("Exit code 0", None),
        ("Here are your results", None),
        ("", None),
        (
            'Traceback (most recent call last)\n  File "a.py", line 1\nsqlite3.OperationalError: database is locked',
            "unavailable",
        ),
        (
            'Traceback (most recent call last)\n  File "a.py", line 1\nsqlite3.OperationalError: no such table: a',
            "code_error",
        ),
        ("Traceback (most recent call last)\n  File \"a.py\", line 1\nKeyError: 'database is locked'", "code_error"),
    ],
)
def test_the_words_of_an_error_tell_its_kind(text: str, kind: str | None) -> None:
    assert error_type_from_text(text) == kind


@table(
    ("text", "status"),
    [
        ("HTTP 404", 404),
        ("HTTP error! Status: 403", 403),
        ("status code: 503", 503),
        ("Request failed with status code 500", 500),
        ('"status": 429', 429),
        ("gh: Not Found (HTTP 404)", 404),
        ("429 Too Many Requests", 429),
        ("http://localhost:443/x", None),
        ("HTTP 200", None),
        ("status 4040", None),
        ("room 404", None),
    ],
)
def test_an_http_status_in_a_text_is_found(text: str, status: int | None) -> None:
    assert status_in_text(text) == status


@given(st.text())
def test_any_text_has_a_kind_of_the_closed_list_or_none(text: str) -> None:
    assert error_type_from_text(text) in {*ERROR_TYPES, None}


@table("part", ["x", "please use ", "must be ", "tool '", "exceeded ", " ", "(http ", "expected ", "no page "])
def test_the_time_for_a_megabyte_is_that_for_what_is_looked_at(part: str) -> None:
    def seconds(text: str) -> float:
        start = time.thread_time()
        error_type_from_text(text)
        return time.thread_time() - start

    error_type_from_text("warm")
    assert seconds(part * (2**20 // len(part))) < 10 * min(seconds(part * (4096 // len(part))) for _ in range(3)) + 0.05


@pytest.mark.skipif(not RECORDED.exists(), reason="the recorded errors are not here")
def test_the_recorded_errors_of_real_agents_are_told_apart() -> None:
    agreed, total = Counter[str](), Counter[str]()
    with gzip.open(RECORDED, "rt", encoding="utf-8") as lines:
        for line in lines:
            error = json.loads(line)
            kind = NAMES.get(error["error_type"], error["error_type"])
            text = "\n".join(filter(None, (error["result_head"], error["result_tail"])))
            total[kind] += 1
            agreed[kind] += (error_type_from_text(text) or "other") == kind

    shares = {kind: round(agreed[kind] / count, 2) for kind, count in total.items()}
    assert sum(agreed.values()) / sum(total.values()) > 0.975, shares
    assert all(
        shares[kind] > 0.9 for kind, count in total.items() if count > 30 and kind not in {"other", "timeout"}
    ), shares
