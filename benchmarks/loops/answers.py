"""
Stories in pairs, of which one field decides: what comes again and again is a loop beside an answer for each thing asked.

A loop and its honest twin have one key. What differs is the answer, or a field of it, or of the arguments.
"""

import json

from typing import Any, Final

from benchmarks.loops.stories import NAMES, QUERIES, ROUNDS, Call, Story, clock, each, pairs


HOTELS: Final = [
    {"name": "Fuji Inn", "price": 120, "stars": 3},
    {"name": "Park Hotel", "price": 180, "stars": 4},
    {"name": "Shibuya Stay", "price": 95, "stars": 3},
]
PAGE: Final = (
    "The service is set up in three steps. First the database is made, then the users are added, and last the web\n"
    "server is started. Each of these steps is described on a page of its own, with the settings that it takes.\n"
)
HALF_HOURS: Final = [f"{17 + n // 2}:{30 * (n % 2):02d}" for n in range(ROUNDS)]
FLAGS: Final = [f"checkout_{name}" for name in NAMES]
RED: Final = RuntimeError("1 failed: test_total")


def block(value: Any) -> list[dict[str, str]]:
    """
    *value* as MCP carries it.
    """
    return [{"type": "text", "text": value if isinstance(value, str) else json.dumps(value)}]


def timed(n: int, **answer: Any) -> dict[str, Any]:
    """
    *answer* as a service gives it for the *n*th time, with all that tells nothing of it.
    """
    return {"request_id": f"req-{7919 * n:06x}", **answer, "took_ms": 11 + n % 7, "server_time": clock(n)}


def _asked(tool: str, key: str, values: Any, answer: Any, **more: Any) -> Story:
    """
    One question for each of *values*; *answer* is the same for all, or a function of the value and its place.
    """
    return each(
        *((tool, {key: one, **more}, answer(one, n) if callable(answer) else answer) for n, one in enumerate(values))
    )


def _same(tool: str, arguments: dict[str, Any], answer: Any, rounds: int = ROUNDS) -> Story:
    return each(*((tool, arguments, answer(n)) for n in range(rounds)))


def _replaced(counts: Any) -> Story:
    """
    Edits that say how often they replaced, and the same red test after each.
    """
    calls: list[tuple[Call, Call]] = []
    for n, count in enumerate(counts):
        edit = ("edit_file", {"path": "src/total.py", "old": f"total = {NAMES[n]}", "new": "total = 0"}, count)
        calls.append((edit, ("run_tests", {}, "1 failed: test_total")))
    return pairs(*calls)


LOOPS: Final[dict[str, Story]] = {
    "rooms by number of guests": _asked("search_hotels", "guests", range(1, 13), HOTELS, destination="Shibuya"),
    "rooms by number of guests, as JSON text": _asked(
        "search_hotels", "guests", range(1, 13), json.dumps({"hotels": HOTELS}), destination="Shibuya"
    ),
    "rooms by number of guests, as MCP carries it": _asked(
        "search_hotels", "guests", range(1, 13), block({"hotels": HOTELS}), destination="Shibuya"
    ),
    "page after page of a document": _asked("read_document", "page", range(1, 13), PAGE, name="manual"),
    "help on a topic": _asked("get_help", "topic", [f"set up {name}" for name in NAMES], PAGE),
    "tables by the half hour": _asked(
        "get_tables",
        "time",
        HALF_HOURS,
        {"tables": [{"no": 4, "seats": 2}, {"no": 9, "seats": 4}]},
        guests=2,
        room="main",
    ),
    "flags, one by one": _asked("get_flag", "flag", FLAGS, {"flags": [{"name": "checkout", "on": True}] * 2}),
    "the same question, and the time it took": _same(
        "get_stock", {"sku": "A-7"}, lambda n: timed(n, stock=4, place="Oslo")
    ),
    "the same question, and the time it took, as MCP carries it": _same(
        "get_stock", {"sku": "A-7"}, lambda n: block(timed(n, stock=4, place="Oslo"))
    ),
    "the same question, and who answered": _same(
        "get_user",
        {"id": 4},
        lambda n: {"name": "Bo", "role": "guest", "meta": {"pid": 4000 + n, "duration": 0.01 * n}},
    ),
    "a report written, and how long it took": _same(
        "get_report", {"of": "May"}, lambda n: {"rows": [[1, 2]], "elapsed": f"{n}.2s", "generatedAt": clock(n)}
    ),
    "nothing found, as JSON text": _asked("search_code", "pattern", NAMES, '{"results": [], "took_ms": 3}'),
    "nothing found, as MCP carries it": _asked("search_code", "pattern", NAMES, block([])),
    "nothing found, in text that MCP carries": _asked("search_code", "pattern", NAMES, block("No matches found")),
    "nothing found, in text": _asked("search_hotels", "query", QUERIES, "[]"),
    "edits that replace nothing": _replaced(["0 replacements"] * 10),
    "edits that replace nothing, in JSON": _replaced([{"replacements": 0}] * 10),
}

HONEST: Final[dict[str, Story]] = {
    "rooms by number of guests": _asked(
        "search_hotels",
        "guests",
        range(1, 13),
        lambda one, _: [{**hotel, "price": hotel["price"] + 10 * one} for hotel in HOTELS],
        destination="Shibuya",
    ),
    "rooms by number of guests, as JSON text": _asked(
        "search_hotels", "guests", range(1, 13), '{"available": false}', destination="Shibuya"
    ),
    "rooms by number of guests, as MCP carries it": _asked(
        "search_hotels", "guests", range(1, 13), block({"available": False}), destination="Shibuya"
    ),
    "page after page of a document": _asked(
        "read_document", "page", range(1, 13), lambda one, _: f"{one}. {PAGE}", name="manual"
    ),
    "help on a topic": _asked("get_help", "topic", [f"set up {name}" for name in NAMES], "not found"),
    "tables by the half hour": _asked("get_tables", "time", HALF_HOURS, {"free": False}, guests=2, room="main"),
    "flags, one by one": _asked("get_flag", "flag", FLAGS, {"enabled": False, "rollout": 0}, env="prod", app="shop"),
    "the same question, and the time it took": _same(
        "get_stock", {"sku": "A-7"}, lambda n: timed(n, stock=4 + n, place="Oslo")
    ),
    "the same question, and the time it took, as MCP carries it": _same(
        "get_stock", {"sku": "A-7"}, lambda n: block(timed(n, stock=4, place="Oslo", updated_at=clock(n)))
    ),
    "the same question, and who answered": _same(
        "ping_host", {"host": "db1"}, lambda n: {"host": "db1", "up": True, "latency_ms": 11 + n}
    ),
    "a report written, and how long it took": _same(
        "create_report", {"of": "May"}, lambda n: {"id": f"r-{100 + n}", "elapsed": f"{n}.2s", "generatedAt": clock(n)}
    ),
    "nothing found, as JSON text": _asked(
        "get_role", "user", NAMES, '{"admin": false, "took_ms": 3}', app="crm", env="prod"
    ),
    "nothing found, as MCP carries it": _asked("is_locked", "path", [f"src/{name}.py" for name in NAMES], block("no")),
    "nothing found, in text that MCP carries": _asked(
        "get_table", "time", HALF_HOURS, lambda one, _: block(f"No table is free at {one}"), guests=2, room="main"
    ),
    "nothing found, in text": _asked("get_health", "host", [f"web{n}.shop.example" for n in range(30)], "up"),
    "edits that replace nothing": _replaced(["0 replacements", "0 replacements", *["1 replacement"] * 8]),
    "edits that replace nothing, in JSON": _replaced([{"replacements": int(n > 1)} for n in range(10)]),
}
