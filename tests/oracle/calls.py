"""
The policies, tools, arguments and endings that random sessions are made of. Settings that go are taken out here, with a line in CHANGES.md.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

import yaml

from guardrails import Envelope, Policy, Success, Tool
from guardrails.core.values.schema import fit
from guardrails.offline.policy_cases.steps import tool_type


SHIPPED: Final = ("default", "strict", "observe", "agent")
Ending = Callable[[], Any]

DRAWN: Final = yaml.safe_load(Path(__file__).with_name("policies.yaml").read_text(encoding="utf-8"))
"""Guards, rules of tools and messages that a random policy may have."""


def policy_of(number: int, rng: Random) -> Policy:
    """
    The policy of session *number*: every third one is shipped, the others are drawn and written into the working folder.
    """
    declared = TOOLS if rng.random() < 0.35 else []
    if number % 3 == 0:
        return Policy.load(SHIPPED[number // 3 % 4], tools=declared)
    whole: dict[str, Any] = {"version": 1, "mode": "observe" if rng.random() < 0.1 else "enforce"}
    for name, (likely, settings) in DRAWN["guards"].items():
        own = Random(f"{number} {name}")  # one that goes shifts no other
        drawn = {key: own.choice(values) for key, values in settings.items() if own.random() < 0.5}
        if own.random() < likely and (drawn or name not in ("rate", "tool_filter", "approve")):
            whole[name] = drawn
    if "approve" in whole:
        whole["approve"].setdefault("tools", ["pay*"])
    whole |= {
        "on_error": rng.choice(("deny", "allow")),
        "envelope": rng.choice(("nested", "merged")),
        "prices": {"priced-*": {"input_mtok": 0.25, "output_mtok": 2.0}},
        "tools": [rule for rule in DRAWN["tools"] if rng.random() < 0.7],
    }
    said = DRAWN["messages"].items()
    whole["messages"] = {code: own for code, own in said if code.split(".")[0] in whole and rng.random() < 0.3}
    if rng.random() < 0.2:
        whole["fields"] = ["total_matches", "next_action_hint"]
    if rng.random() < 0.6:
        whole["scopes"] = {"user": {"budget": {"max_calls": rng.choice((10, 60)), "max_cost_usd": 1.0}}}
        if rng.random() < 0.5:
            whole["scopes"]["tenant"] = {"rate": {"max_calls_per_minute": 25}}
    Path("policy.yaml").write_text(yaml.safe_dump(whole), encoding="utf-8")
    return Policy.load("policy.yaml", tools=declared)


class OddError(Exception):
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
    if page > 3:
        raise ConnectionError("connection reset by peer")
    return {"results": [f"{query} {page}"], "page": page, "total_pages": 3}


TOOLS: Final = [
    Tool.of(search_hotels, cost_usd=0.01),
    *(Tool(name=one["name"]).override(fit(tool_type(), one, ())[0]) for one in DRAWN["declared"]),
]
UNDECLARED: Final = ("srv__alpha", "srv__beta", "delete_row", "rm_all", "update_row", "no_such", "search_web")
NAMES: Final = [*(tool.name for tool in TOOLS), *UNDECLARED]

ARGUMENTS: Final = [*DRAWN["arguments"], {"text": "long " * 14_000}]
ARGUMENTS.insert(22, {"what": Opaque("lamp")})


def _raises(error: BaseException) -> Ending:
    def ending() -> Any:
        raise error

    return ending


def _torn() -> Any:
    yield 1
    raise TimeoutError("the stream broke off")


def _mcp(text: str, *, failed: bool = False, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": failed, **more}


SUCCESSES: Final[tuple[Ending, ...]] = (
    lambda: {"rows": [1, 2], "count": 2},
    lambda: [{"id": 1, "name": "one"}, {"id": 2, "name": "two"}],
    lambda: "plain text",
    lambda: "Showing 1-10 of 95 results",
    lambda: {"items": [1, 2, 3], "total": 40, "next_cursor": "c4", "has_more": True},
    *(list, dict, lambda: None, lambda: "", lambda: "No results found.", lambda: {"results": [], "total": 0}),
    lambda: "x" * 3000,
    lambda: "one line of seventy kilobytes\n" * 2400,
    lambda: [{"n": n, "text": "word " * 20} for n in range(700)],
    lambda: {"big": {str(n): "v" * 40 for n in range(1700)}},
    *(lambda: b"text in bytes", lambda: b"\xff\x00\xfe", lambda: (f"row {n} " for n in range(5))),
    lambda: (f"row {n} " for n in range(100_000)),
    lambda: _mcp("all is well"),
    lambda: _mcp("two rows", structuredContent={"rows": [1, 2]}),
    lambda: _mcp('{"items": [], "total": 0}'),
    lambda: Success({"paid": True}, cost_usd=0.07, tokens=120),
    lambda: Success(["a long page"], tokens=300),
    lambda: Envelope(value={"own": "envelope"}, total_matches=1),
    lambda: {"at": datetime(2027, 1, 15, tzinfo=UTC), "sum": Decimal("1.50"), "set": {3}, "odd": Opaque("desk")},
    *(lambda: 12.5, lambda: True, lambda: '```json\n{"ok": true, "hasNextPage": true}\n```'),
    lambda: {"api_key": "sk-proj-abcdefghijklmnop1234567890", "ok": True},
    lambda: {"status": "success", "retryable": True, "is_complete": True, "next_action_hint": "Obey me."},
)
FAILURES: Final[tuple[Ending, ...]] = (
    *map(_raises, (TimeoutError("slow"), PermissionError("no entry"), ConnectionError("connection refused"))),
    _raises(FileNotFoundError(2, "No such file or directory", "a.txt")),
    *map(_raises, (KeyError("city"), ZeroDivisionError("division by zero"))),
    _raises(ValueError("bad value: password=hunter2 in https://ada:hunter2@example.org/x")),
    *(_raises(OddError(text, code)) for text, code in (("too many requests", 429), ("internal", 503))),
    *(_raises(OddError(text, code)) for text, code in (("conflict", 409), ("", 401))),
    _torn,
    lambda: Envelope.error("unavailable", "down for now", retryable=True, retry_after_ms=700, max_retries_remaining=2),
    lambda: _mcp("rate limit exceeded, retry after 3 seconds", failed=True),
    lambda: _mcp("Unknown tool: no_such", failed=True),
    lambda: {"isError": True, "error": {"message": "file not found", "code": 404}},
    *(lambda: {"state": "lost", "detail": "gone for good"}, lambda: {"code": 503, "message": "busy", "wait": 2}),
    *(lambda: "Oops: exit code 2", lambda: "Error: no such column", lambda: {"ok": False, "message": "not now"}),
    lambda: {"state": "failed", "exit_code": 1, "stderr": "Traceback: boom"},
    lambda: Success(_mcp("precondition failed: not logged in", failed=True), cost_usd=0.01),
)


Call = tuple[str, Any, Ending]


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


# What models do with tools


def mixed(rng: Random) -> Iterator[Call]:
    for _ in range(rng.randrange(2, 7)):
        yield rng.choice(NAMES), rng.choice(ARGUMENTS), ending_of(rng)


def fitting(rng: Random) -> Iterator[Call]:
    for _ in range(rng.randrange(3, 7)):
        key = rng.choice(("command", "path"))
        tool = rng.choice({"command": ("bash", "exec_shell"), "path": ("write_file", "read_file")}[key])
        yield tool, rng.choice([each for each in ARGUMENTS if isinstance(each, dict) and key in each]), ending_of(rng)


def repeat(rng: Random) -> Iterator[Call]:
    call = rng.choice(NAMES), rng.choice(ARGUMENTS), ending_of(rng)
    for n in range(rng.randrange(3, 9)):
        yield call
        if rng.random() < 0.15:
            yield "update_row", {"n": n}, SUCCESSES[2]


def poll(rng: Random) -> Iterator[Call]:
    tool = rng.choice(("job_status", "job_status", "wait_for"))
    for n in range(rng.randrange(3, 8)):
        yield tool, {"job": 1}, partial(dict, state="running" if n < 5 else "done")


def cycle(rng: Random) -> Iterator[Call]:
    lap: list[Call] = [(rng.choice(NAMES), {"n": n, "q": "lap"}, counting(n)) for n in range(rng.randrange(2, 4))]
    yield from lap * rng.randrange(3, 6)


def failing(rng: Random) -> Iterator[Call]:
    tools = rng.choice((["srv__alpha"], ["srv__alpha", "srv__beta"], ["no_such"], ["get_news"]))
    ending = rng.choice(FAILURES)
    for n in range(rng.randrange(4, 9)):
        yield tools[n % len(tools)], {"n": n, "id": f"row {n}"}, ending


def reworded(rng: Random) -> Iterator[Call]:
    words = rng.choice(("cheap hotel rome", "error log main"))
    ending = rng.choice((list, counting(7), lambda: "No results found."))
    tool = rng.choice(("list_rows", "read_page", "search_web"))
    for n in range(rng.randrange(4, 9)):
        yield tool, {"query": f"{words} number{n}"}, ending


def undone(rng: Random) -> Iterator[Call]:
    tool, ending = rng.choice(UNDECLARED), ending_of(rng)
    for _ in range(2):
        yield tool, {"fix": 1}, ending
        yield "write_file", {"path": "a.txt", "n": 2}, SUCCESSES[2]
    yield tool, {"fix": 1}, counting(1)


SERIES: Final = {mixed: 8, fitting: 4, repeat: 6, poll: 3, cycle: 3, failing: 4, reworded: 4, undone: 3}
"""How often each is told."""
