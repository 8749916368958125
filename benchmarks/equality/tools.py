"""
The tools of random sessions: how they are declared, what they are called with, how they end.
"""

import asyncio

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from random import Random
from typing import Any, Final

from guardrails import Envelope, FailureRule, Registry, ResultClassifier, Success, Tool


Ending = Callable[[], Any]
"""How one call of a tool ends: returns its result, or raises."""
HANG_S: Final = 0.005
"""The timeout of the tool that never ends in time."""


class OutOfMoodError(Exception):
    """
    An exception of a library that nobody knows.
    """

    def __init__(self, message: str, status_code: int) -> None:
        super().__init__(message)
        self.status_code = status_code


@dataclass(frozen=True)
class Opaque:
    """
    An object that JSON has no form for.
    """

    name: str


def search_hotels(city: str, max_price: int = 200) -> list[dict[str, Any]]:
    """Find hotels."""
    return [{"id": "h_1", "city": city, "price": max_price - 50}]


def book(hotel: str, nights: int = 1, owner: str = "") -> str:
    """Book a room."""
    if nights > 5:
        raise ValueError(f"no room for {nights} nights")
    return f"{hotel}: {nights} nights{' for ' + owner if owner else ''}"


async def asearch(query: str, page: int = 1) -> dict[str, Any]:
    """Search the web."""
    await asyncio.sleep(0)
    if page > 3:
        raise ConnectionError("connection reset by peer")
    return {"results": [f"{query} {page}"], "page": page, "total_pages": 3}


def registry() -> Registry:
    """
    Functions by name, which check arguments themselves.
    """
    return Registry([search_hotels, book])


TOOLS: Final = [
    Tool.of(search_hotels, cost_usd=0.01),
    Tool(name="read_page", read_only=True, stable=True, cost_usd=0.05),
    Tool(name="job_status", polling=True),
    Tool(name="pay", idempotent=False, cost_usd=0.2, timeout=60),
    Tool(name="list_rows", read_only=True),
    Tool(name="bash", commands=("command",), timeout=60),
    Tool(name="write_file", paths=("path",), idempotent=True),
    Tool(name="hang", timeout=HANG_S),
    Tool(name="get_news", retryable=True, idempotent=True),
    Tool(
        name="typed",
        parameters={
            "type": "object",
            "properties": {"n": {"type": "integer"}, "who": {"type": "string"}},
            "required": ["n"],
        },
        ask_user=("who",),
    ),
    Tool(
        name="judged",
        result=ResultClassifier(
            error_when=(
                FailureRule(field="code", at_least=400),
                FailureRule(field="state", equals="lost", error_type="not_found"),
            ),
            text_matches=("(?i)^oops",),
            retry_after_field="wait",
        ),
    ),
]
UNDECLARED: Final = ("srv__alpha", "srv__beta", "delete_row", "rm_all", "update_row", "no_such")

ARGUMENTS: Final[tuple[Any, ...]] = (
    {},
    {"n": 1},
    {"n": 1.0},
    {"n": "2", "who": "x"},
    {"n": 3, "city": "Rome"},
    {"city": "Rome", "max_price": "90"},
    {"q": "hotels", "page": 1},
    {"q": "hotels", "page": 2},
    {"q": "ünïcode \U0001f600", "deep": {"list": [1, [2, {"three": None}]]}},
    {"password": "hunter2", "user": "ada"},
    {"mood": "nudge"},
    {"mood": "deny"},
    {"mood": "raise"},
    {"mood": "shape", "n": 7},
    {"path": "src/app.py", "text": "x"},
    {"path": "../secret"},
    {"path": "outside/etc"},
    {"path": "/srv/shared/a"},
    {"path": "bad\0path"},
    {"command": "ls -l src"},
    {"command": "git status && ls"},
    {"command": "sudo ls"},
    {"command": "echo 'open"},
    {"command": "$TOOL --version"},
    {"command": ":(){ :|:& };:"},
    {"command": "sleep 5; cat log"},
    {"what": Opaque("lamp")},
    '{"n": 4}',
    "{broken",
    "[1, 2]",
    '{"n": 5, "n": 6}',
)


def _stream(count: int) -> Iterator[str]:
    for n in range(count):
        yield f"row {n} "


def _torn() -> Iterator[int]:
    yield 1
    raise TimeoutError("the stream broke off")


def _raises(error: Exception) -> Ending:
    def ending() -> Any:
        raise error

    return ending


def _mcp(text: str, *, failed: bool = False, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": failed, **more}


def _paged() -> dict[str, Any]:
    return {"items": [1, 2, 3], "total": 40, "next_cursor": "c4", "has_more": True}


def _told() -> Envelope:
    return Envelope.error("unavailable", "down for now", retryable=True, retry_after_ms=700, max_retries_remaining=2)


SUCCESSES: Final[tuple[Ending, ...]] = (
    lambda: {"rows": [1, 2], "count": 2},
    lambda: [{"id": 1, "name": "one"}, {"id": 2, "name": "two"}],
    lambda: "plain text",
    lambda: "Showing 1-10 of 95 results",
    _paged,
    list,
    dict,
    lambda: None,
    lambda: "",
    lambda: "No results found.",
    lambda: {"results": [], "total": 0},
    lambda: "x" * 3000,
    lambda: [{"n": n, "text": "word " * 20} for n in range(60)],
    lambda: {"big": {str(n): "v" * 40 for n in range(50)}},
    lambda: b"text in bytes",
    lambda: b"\xff\x00\xfe",
    lambda: _stream(5),
    lambda: _stream(100_000),
    lambda: _mcp("all is well"),
    lambda: _mcp("two rows", structuredContent={"rows": [1, 2]}),
    lambda: Success({"paid": True}, cost_usd=0.07, tokens=120),
    lambda: Success(["a long page"], tokens=300),
    lambda: Envelope(value={"own": "envelope"}, total_matches=1),
    lambda: {"at": datetime(2027, 1, 15, tzinfo=UTC), "sum": Decimal("1.50"), "set": {3}, "odd": Opaque("desk")},
    lambda: 12.5,
    lambda: True,
    lambda: {"api_key": "sk-proj-abcdefghijklmnop1234567890", "ok": True},
)
FAILURES: Final[tuple[Ending, ...]] = (
    _raises(TimeoutError("slow")),
    _raises(PermissionError("no entry")),
    _raises(ConnectionError("connection refused")),
    _raises(FileNotFoundError(2, "No such file or directory", "a.txt")),
    _raises(ValueError("bad value: password=hunter2 in https://ada:hunter2@example.org/x")),
    _raises(KeyError("city")),
    _raises(OutOfMoodError("too many requests", 429)),
    _raises(OutOfMoodError("internal", 503)),
    _raises(OutOfMoodError("conflict", 409)),
    _raises(OutOfMoodError("", 401)),
    _torn,
    _told,
    lambda: _mcp("rate limit exceeded, retry after 3 seconds", failed=True),
    lambda: _mcp("Unknown tool: no_such", failed=True),
    lambda: {"isError": True, "error": {"message": "file not found", "code": 404}},
    lambda: {"state": "lost", "detail": "gone for good"},
    lambda: {"code": 503, "message": "busy", "wait": 2},
    lambda: "Oops: exit code 2",
    lambda: {"state": "failed", "exit_code": 1, "stderr": "Traceback: boom"},
    lambda: Success(_mcp("precondition failed: not logged in", failed=True), cost_usd=0.01),
)


def tool_of(rng: Random) -> str:
    """
    The name of a tool, declared or not.
    """
    return rng.choice([*(tool.name for tool in TOOLS if tool.name != "hang"), *UNDECLARED])


def ending_of(rng: Random) -> Ending:
    """
    How a call may end.
    """
    return rng.choice(SUCCESSES if rng.random() < 0.6 else FAILURES)


def counting(n: int) -> Ending:
    """
    An ending with a result of its own.
    """
    return lambda: {"count": n, "rows": [n]}
