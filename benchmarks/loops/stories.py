"""
Stories of agents: loops that bring nothing, and honest work that looks like them.

A story is a list of turns, a turn a list of calls, a call (tool, arguments, result); an exception is a failure. A number is
the seconds before the next turn, `PAUSE` if none stands there. They are our own, written after what users of other agents complained of (docs/measurements.md names the threads), and know no guard.
"""

import json

from collections.abc import Iterator
from typing import Any, Final


Call = tuple[str, dict[str, Any], Any]
Story = list[list[Call] | float | str]
ROUNDS: Final = 12
PAUSE: Final = 10.0
"""Half of the recorded calls come within 2 to 8 s of the one before, nine of ten within 52 s."""
QUERIES: Final = [
    "cheap hotel shibuya tokyo may",
    "cheap hotels shibuya tokyo may",
    "budget hotel shibuya tokyo may",
    "cheap hotel in shibuya tokyo may",
    "hotel shibuya tokyo cheap may 2026",
    "cheap shibuya tokyo hotel for may",
    "affordable hotel shibuya tokyo may",
    "cheap hotel near shibuya tokyo may",
    "cheap hotel shibuya tokyo in may",
    "the cheap hotel shibuya tokyo may",
    "cheap hotel shibuya station tokyo may",
    "cheap hotel shibuya tokyo may price",
]
RUSSIAN: Final = [
    "дешёвая гостиница москва центр май",
    "дешёвые гостиницы москва центр май",
    "дешёвая гостиница в москве центр май",
    "недорогая гостиница москва центр май",
    "дешёвая гостиница москва центр в мае",
    "дешёвая гостиница центр москвы май",
    "найти дешёвая гостиница москва центр май",
    "дешёвая гостиница москва центр май 2026",
    "дешёвая гостиница рядом москва центр май",
    "дешёвая гостиница москва самый центр май",
]
CHINESE: Final = [
    "东京涩谷便宜酒店五月预订",
    "东京涩谷便宜的酒店五月预订",
    "便宜酒店东京涩谷五月预订",
    "东京涩谷便宜酒店五月份预订",
    "东京涩谷附近便宜酒店五月预订",
    "东京涩谷便宜酒店五月预订价格",
    "请问东京涩谷便宜酒店五月预订",
    "东京涩谷最便宜酒店五月预订",
    "东京涩谷便宜酒店五月在线预订",
    "东京涩谷便宜酒店五月预订推荐",
]
ARABIC: Final = [
    "فندق رخيص في دبي مايو",
    "فندق رخيص دبي مايو",
    "فنادق رخيصة في دبي مايو",
    "فندق رخيص في دبي شهر مايو",
    "أرخص فندق في دبي مايو",
    "فندق في دبي رخيص مايو",
    "فندق رخيص في دبي خلال مايو",
    "حجز فندق رخيص في دبي مايو",
    "فندق رخيص وسط دبي مايو",
    "فندق رخيص قرب دبي مايو",
    "فندق رخيص دبي في مايو",
]
NAMES: Final = ["ada", "brno", "cusco", "delft", "essen", "fargo", "ghent", "hilo", "izmir", "jena", "kyoto", "lima"]


def each(*calls: Call) -> Story:
    """
    One call a turn.
    """
    return [[call] for call in calls]


def again(*calls: Call) -> Story:
    """
    The same calls over and over.
    """
    return each(*(call for _ in range(ROUNDS) for call in calls))


def pairs(*of: tuple[Call, Call]) -> Story:
    """
    Two calls each, one after the other.
    """
    return each(*(call for pair in of for call in pair))


def clock(n: int) -> str:
    return f"2026-11-22T10:{n:02d}:{7 * n % 60:02d}Z"


def _renamed(tool: str) -> Iterator[Call]:
    for name in NAMES:
        yield tool, {"path": f"src/{name}/{name}.toml"}, FileNotFoundError(f"no such file: src/{name}/{name}.toml")


OPEN_LOOPS: Final[dict[str, Story]] = {
    "identical call, identical result": again(("search", {"q": "inn"}, ["Fuji Inn"])),
    "identical call, identical failure": again(("open_page", {"url": "x"}, ValueError("url must be absolute"))),
    "identical call, result with a clock": each(
        *(("get_weather", {"city": "Oslo"}, {"now": clock(n), "sky": "grey"}) for n in range(ROUNDS))
    ),
    "identical call, result with a request id": each(
        *(
            ("find_user", {"name": "Bo"}, {"request": f"{n:08x}-1111-4222-8333-{n * 7919:012x}", "users": [4]})
            for n in range(ROUNDS)
        )
    ),
    "ping-pong of two reads": again(("read_file", {"path": "a"}, "alpha"), ("read_file", {"path": "b"}, "beta")),
    "edit, test, edit back, test": again(
        ("edit", {"file": "a.py", "old": "1", "new": "2"}, "ok"),
        ("run_tests", {}, "1 failed: test_b"),
        ("edit", {"file": "a.py", "old": "2", "new": "1"}, "ok"),
        ("run_tests", {}, "1 failed: test_a"),
    ),
    "cycle of five": again(*((f"step_{n}", {"n": n}, f"went to {n}") for n in range(5))),
    "one error, guessed paths": each(*_renamed("read_config")),
    "one error that repeats the arguments": each(
        *(("query", {"sql": f"{n} of users"}, ValueError(f"no column '{n}' in 'users'")) for n in NAMES)
    ),
    "one server down, sibling tools": each(
        *(
            (f"crm__{verb}_{noun}", {"id": n}, ConnectionRefusedError("connection refused: crm.internal:443"))
            for n, (verb, noun) in enumerate(
                (v, o) for v in ("get", "list", "find", "read") for o in ("user", "deal", "task")
            )
        )
    ),
    "an unknown tool again and again": each(
        *(("web_browser", {"q": name}, RuntimeError("Unknown tool: web_browser")) for name in NAMES)
    ),
    "reworded query, no results": each(*(("search_hotels", {"query": q}, []) for q in QUERIES)),
    "reworded query, the same results": each(
        *(("search_docs", {"query": q}, [{"id": 7, "title": "Stay in Shibuya"}]) for q in QUERIES)
    ),
    "reworded query in Russian, no results": each(*(("search_hotels", {"query": q}, {"hotels": []}) for q in RUSSIAN)),
    "reworded query in Chinese, no results": each(*(("search_hotels", {"query": q}, []) for q in CHINESE)),
    "a clock in the arguments": each(
        *(("get_rates", {"base": "EUR", "asked_at": clock(n)}, {"USD": 1.08}) for n in range(ROUNDS))
    ),
    "a new description each time": each(
        *(
            ("bash", {"command": "ls build", "description": f"{word} the build"}, "a.out")
            for word in [
                "List",
                "Show",
                "Check",
                "Look-at",
                "See",
                "Inspect",
                "View",
                "Verify",
                "Get",
                "Read",
                "Print",
                "Browse",
            ]
        )
    ),
    "reworded query in Arabic, no results": each(*(("search_hotels", {"query": q}, []) for q in ARABIC)),
    "an edit of a text that is not there, read, and again": again(
        ("edit", {"file": "a.py", "old": "x=1", "new": "x=2"}, ValueError("the text to replace is not there")),
        ("read_file", {"path": "a.py"}, "x = 1"),
    ),
    "columns guessed": each(
        *(("run_sql", {"show": name, "of": "users"}, ValueError(f"no column `{name}`")) for name in NAMES)
    ),
    "one server down, one tool": each(
        *(("crm__get_user", {"id": n}, ConnectionRefusedError("connection refused: crm:443")) for n in range(ROUNDS))
    ),
    "three clicks in a circle": again(
        ("click", {"ref": "menu"}, "menu open"),
        ("click", {"ref": "login"}, "login"),
        ("click", {"ref": "back"}, "home"),
    ),
    "another agent asked the same again": again(("task", {"prompt": "find the bug"}, "I could not find it.")),
    "distinct calls that all come back empty": each(
        *(("search_code", {"pattern": f"{name}_{n}"}, "No matches found") for n, name in enumerate(NAMES))
    ),
}

EDITS: Final = [("edit", {"file": f"src/{name}.py", "old": "foo", "new": "bar"}, "ok") for name in NAMES]

OPEN_HONEST: Final[dict[str, Story]] = {
    "polling, progress each time": each(
        *(("check_job", {"id": 7}, {"done": f"{8 * n} %"}) for n in range(ROUNDS)), ("check_job", {"id": 7}, "done")
    ),
    "polling, nothing yet": each(*(("job_status", {"id": 7}, "pending"),) * 8, ("job_status", {"id": 7}, "done")),
    "polling with sleeps": again(("job_status", {"id": 7}, "running"), ("sleep", {"seconds": 30}, "ok"))[:10]
    + each(("job_status", {"id": 7}, "done")),
    "a file in chunks": each(
        *(("read_file", {"path": "log.txt", "offset": 100 * n}, f"lines from {n}") for n in range(ROUNDS))
    ),
    "output of a process, without arguments": each(*(("take_snapshot", {}, f"page {n}") for n in range(ROUNDS))),
    "edit and test, the same failure": pairs(
        *((edit, ("run_tests", {}, RuntimeError("1 failed: test_total"))) for edit in EDITS[:8])
    ),
    "edit and test, green each time": pairs(*((edit, ("run_tests", {}, "5 passed")) for edit in EDITS)),
    "a sweep of pages": each(
        *(("list_users", {"page": n}, {"users": [n, n + 1], "next": n + 1}) for n in range(1, 40))
    ),
    "many files edited alike": each(*EDITS),
    "a retry with backoff": each(*(("get_rates", {"base": "EUR"}, TimeoutError("timed out")),) * 2)
    + each(("get_rates", {"base": "EUR"}, {"USD": 1.08})),
    "five reads at once": [
        [("read_file", {"path": f"{name}/__init__.py"}, "") for name in NAMES[:5]],
        [("read_file", {"path": f"{name}/main.py"}, f"# {name}") for name in NAMES[:5]],
    ],
    "five searches at once, all in vain": [
        [("search_code", {"pattern": name}, "No matches found") for name in NAMES[:5]],
        *each(("search_code", {"pattern": "main"}, "src/main.py:1")),
    ],
    "fetch and save, item by item": pairs(
        *(
            (("fetch_item", {"id": n}, {"name": name}), ("save_item", {"id": n, "name": name}, "saved"))
            for n, name in enumerate(NAMES)
        )
    ),
    "similar searches that bring news": each(
        *(("search_docs", {"query": q}, [{"id": n, "title": NAMES[n]}]) for n, q in enumerate(QUERIES))
    ),
    "a file read again after each edit": pairs(
        *((edit, ("read_file", {"path": "src/main.py"}, f"version {n}")) for n, edit in enumerate(EDITS))
    ),
    "build, repair, the next error": pairs(
        *(
            (edit, ("build", {}, RuntimeError(f"undefined name {name}")))
            for edit, name in zip(EDITS, NAMES, strict=True)
        )
    ),
    "a log written line by line": each(
        *(("append_log", {"at": clock(n), "line": f"took {name}"}, "ok") for n, name in enumerate(NAMES))
    ),
    "two empty searches, then a hit": each(
        ("search_code", {"pattern": "getUserName"}, "No matches found"),
        ("search_code", {"pattern": "get_user_name"}, "No matches found"),
        ("search_code", {"pattern": "user_name"}, "src/user.py:4"),
        ("read_file", {"path": "src/user.py"}, "def user_name(): ..."),
    ),
    "a to-do list kept": each(
        *(
            ("todo_write", {"todos": [{"text": name, "done": at < n} for at, name in enumerate(NAMES)]}, "ok")
            for n in range(12)
        )
    ),
    "not found, made, found": each(
        ("get_order", {"id": 7}, FileNotFoundError("no order 7")),
        ("create_order", {"id": 7}, "ok"),
        ("get_order", {"id": 7}, {"id": 7, "state": "new"}),
    ),
    "an import that fails until the module is there": each(
        ("run_python", {"code": "import model"}, ModuleNotFoundError("No module named 'model'")),
        ("shell", {"command": "pip install model"}, "installed"),
        ("run_python", {"code": "import model"}, "ok"),
    ),
    "not found, waited for a person, found": each(
        ("read_file", {"path": "key.pem"}, FileNotFoundError("no such file: key.pem")),
        ("ask_user", {"text": "Please put key.pem here."}, "done"),
        ("read_file", {"path": "key.pem"}, "-----BEGIN"),
    ),
    "everything through one shell": pairs(
        *(
            (
                ("bash", {"command": f"sed -i s/foo/bar/ src/{name}.py"}, ""),
                ("bash", {"command": "pytest -q"}, "5 passed"),
            )
            for name in NAMES
        )
    ),
    "transactions through one tool": each(
        *(
            call
            for n in range(8)
            for call in (
                ("run_sql", {"query": "BEGIN"}, "BEGIN"),
                ("run_sql", {"query": f"call pay({n})"}, "CALL"),
                ("run_sql", {"query": "COMMIT"}, "COMMIT"),
            )
        )
    ),
    "an interpreter: not defined, defined, used": each(
        ("python", {"code": "table.head()"}, NameError("name 'table' is not defined")),
        ("python", {"code": "table = load()"}, ""),
        ("python", {"code": "table.head()"}, "a b c"),
    ),
    "waiting, by a tool of any name": each(
        *(("get_export", {"id": 9}, {"state": "pending"}),) * 6, ("get_export", {"id": 9}, {"state": "ready"})
    ),
    "waiting, by a command that sleeps": each(
        *(("bash", {"command": "sleep 30; gh run view 7"}, "build: 4 of 9 jobs done"),) * 5,
        ("bash", {"command": "sleep 30; gh run view 7"}, "build: 9 of 9 jobs done"),
    ),
    "just made, found a moment later": each(
        ("create_order", {"customer": 7}, {"id": "A1"}),
        ("get_order", {"id": "A1"}, FileNotFoundError("no order A1")),
        ("get_order", {"id": "A1"}, {"id": "A1", "state": "new"}),
    ),
    "an element of a page that was renewed": each(
        ("click", {"ref": "e12"}, LookupError("e12 not found in the present page")),
        ("get_page", {}, "[e12] Pay"),
        ("click", {"ref": "e12"}, "clicked"),
    ),
    "a write and a read at once": [
        [("write", {"path": "a"}, "ok"), ("read_file", {"path": "a"}, FileNotFoundError("no such file: a"))],
        [("read_file", {"path": "a"}, "text")],
    ],
    "page after page by the same click": pairs(
        *((("click", {"ref": "next"}, "clicked"), ("get_page", {}, f"page of {name}")) for name in NAMES)
    ),
    "files without a fault": each(*(("lint_file", {"path": f"src/{name}.py"}, []) for name in NAMES)),
    "accounts without money": each(*(("get_balance", {"user": name}, {"balance": 0}) for name in NAMES)),
    "chunks by a cursor": each(
        *(("read_chunk", {"cursor": f"c{7919 * n:08x}"}, {"text": name, "next": n}) for n, name in enumerate(NAMES))
    ),
    "orders of many, in Chinese, all sent": each(
        *(("查询订单", {"订单号": f"订单{name}号"}, {"状态": "已发货"}) for name in "甲乙丙丁戊己庚辛壬癸")
    ),
    "edits by a tool that is named like a search": pairs(
        *(
            (("search_replace", {"file": f"{name}.py"}, "done"), ("make_test", {}, "1 failed: test_total"))
            for name in NAMES[:8]
        )
    ),
    "a key pressed again and again, answered by ok": each(*(("press_key", {"key": "Down"}, "ok") for _ in range(6))),
    "a test that fails by chance, run again": each(
        ("run_tests", {"only": "test_net"}, AssertionError("1 failed: test_net")),
        ("run_tests", {"only": "test_net"}, "1 passed"),
    ),
    "the next of a queue, without arguments": each(*(("get_next_mail", {}, f"mail {name}") for name in NAMES)),
    "one form, many records": each(
        *(("create_user", {"name": name, "role": "guest", "active": True}, {"ok": True}) for name in NAMES)
    ),
}


# Failures: who guesses on, and who goes on with what a result has shown.

REQUIRED: Final = ("file", "ranges", "start", "end", "encoding")
REASONS: Final = ("too many of them", "another version of it", "not a part of it", "the wrong end of it")

FAILING_LOOPS: Final[dict[str, Story]] = {
    "orders guessed, and looks between that are not used": pairs(
        *(
            (
                ("get_order", {"id": f"#A{731 * n}"}, LookupError(f"no order #A{731 * n}")),
                ("find_user", {"name": name}, {"orders": ["#W71", "#W72"]}),
            )
            for n, name in enumerate(NAMES, 1)
        )
    ),
    "one error in JSON, with the argument": each(
        *(
            ("get_page", {"title": name}, ValueError(f'{{"error": "there is no such page", "title": "{name}"}}'))
            for name in NAMES
        )
    ),
    "skills guessed": each(*(("skill", {"run": name}, RuntimeError(f"Unknown skill: {name}")) for name in NAMES)),
}

FAILING_HONEST: Final[dict[str, Story]] = {
    "columns guessed, then those of the schema": each(
        *(("run_sql", {"show": name, "of": "users"}, ValueError(f"no column `{name}`")) for name in NAMES[:3]),
        ("describe_table", {"of": "users"}, {"columns": ["person_no", "full_name", "joined_on", "left_on"]}),
        *(
            ("run_sql", {"show": name, "of": "users"}, ValueError(f"no column `{name}`"))
            for name in ("person_no", "full_name", "joined_on")
        ),
        ("run_sql", {"show": "left_on", "of": "users"}, [["2026"]]),
    ),
    "what each error asks for, one after the other": each(
        *(
            (
                "read_part",
                dict.fromkeys(REQUIRED[:n], 31),
                TypeError(f"validation error: '{name}' is a required property"),
            )
            for n, name in enumerate(REQUIRED)
        ),
        ("read_part", dict.fromkeys(REQUIRED, 31), "text"),
    ),
    "failures of several kinds in JSON": each(
        *(
            ("ask_service", {"for": name}, ValueError(f'{{"error": "", "response": "{reason}"}}'))
            for name, reason in zip(NAMES, REASONS, strict=False)
        )
    ),
}


# Pairs, of which one field decides: what comes again and again is a loop beside an answer for each thing asked.
# A loop and its honest twin have one key. What differs is the answer, or a field of it, or of the arguments.

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


PAIRED_LOOPS: Final[dict[str, Story]] = {
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

PAIRED_HONEST: Final[dict[str, Story]] = {
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


# Times: who looks again at once, and who looks again later. Each loop has its honest twin, which differs in its
# pauses, or in what was once seen to change by itself.

HOUR: Final = 3_600.0
DAY: Final = 24 * HOUR


def apart(seconds: float, *calls: Call) -> Story:
    """
    One call a turn, *seconds* from each to the next.
    """
    return [part for call in calls for part in (seconds, [call])]


INBOX: Final[Call] = ("search_mail", {"query": "is:unread", "box": "inbox"}, [])
PRICE: Final[Call] = ("get_price", {"of": "ACME"}, {"price": 108.5})
BEFORE: Final[Call] = ("get_price", {"of": "ACME"}, {"price": 107.9})
LOG: Final[Call] = ("read_file", {"path": "server.log"}, "started\nlistening\n")
FILE: Final[Call] = ("read_file", {"path": "notes.md"}, "# Notes\nCall Bo.")
MISSING: Final[Call] = ("read_file", {"path": "export.csv"}, FileNotFoundError("no such file: export.csv"))
NEUTRAL: Final[Call] = ("alpha", {"of": 1}, "v1")
BUILD: Final[tuple[Call, Call]] = (("sync_folder", {"of": "in"}, "ok"), ("list_files", {"of": "in"}, ["a", "b"]))
LATE: Final[list[Call]] = [
    ("get_order", {"id": f"A{7919 * n}"}, LookupError(f"no such order: A{7919 * n}")) for n in range(1, 9)
]

TIMED_LOOPS: Final[dict[str, Story]] = {
    "an inbox, every 5 s": apart(5, *[INBOX] * 8),
    "a price, every 10 s": apart(10, *[PRICE] * 8),
    "a log, every 20 s": apart(20, *[LOG] * 8),
    "a file, three times in a minute": apart(15, *[FILE] * 5),
    "a tool of any name, every 30 s": apart(30, *[NEUTRAL] * 8),
    "a file that is not there, at once": apart(1, *[MISSING] * 3),
    "synchronised in vain, every 5 s": apart(5, *[call for _ in range(6) for call in BUILD]),
    "orders guessed, every 10 s": apart(10, *LATE),
    "a price that never moved, every 15 s": apart(15, *[PRICE] * 6),
    "a file the next day, then again and again": [*apart(2, FILE, FILE), DAY, [FILE], *apart(2, *[FILE] * 3)],
    "two logs by turns, every 10 s": apart(10, *[LOG, FILE] * 6),
}

TIMED_HONEST: Final[dict[str, Story]] = {
    "an inbox, every 5 minutes": apart(300, *[INBOX] * 8),
    "a price, every 2 minutes": apart(120, *[PRICE] * 8),
    "a log, every 3 minutes": apart(180, *[LOG] * 8),
    "a file, twice, and once more a day later": [*apart(15, FILE, FILE), DAY, [FILE]],
    "a tool of any name, every half hour": apart(HOUR / 2, *[NEUTRAL] * 8),
    "a file that is not there yet, each hour": apart(HOUR, *[MISSING] * 3),
    "synchronised every 10 minutes": [part for _ in range(6) for part in (600.0, [BUILD[0]], 2.0, [BUILD[1]])],
    "orders asked for as they come, every 10 minutes": apart(600, *LATE),
    "a price that moved once, every 15 s": [*each(BEFORE), *apart(15, *[PRICE] * 5)],
    "a file, day after day": apart(DAY, *[FILE] * 5),
    "two logs by turns, every 5 minutes": apart(150, *[LOG, FILE] * 6),
}

LOOPS: Final = OPEN_LOOPS | FAILING_LOOPS | PAIRED_LOOPS | TIMED_LOOPS
HONEST: Final = OPEN_HONEST | FAILING_HONEST | PAIRED_HONEST | TIMED_HONEST


# Honest work that a rule of its own protects (docs/measurements.md): none of it may be refused.


def told(tool: str, arguments: dict[str, Any], *results: Any) -> Story:
    """
    One call over and over, and what it says each time.
    """
    return each(*((tool, arguments, result) for result in results))


USER: Final = "user"
"""A message of the user, in a story."""


def asked(first: list[Call], times: int, *others: list[Call]) -> Story:
    """
    The same calls after each message of the user.
    """
    lap: Story = [first, *others, USER]
    return lap * times


WAITING: Final = ("Process still running.", "(no output yet)", "Deploying...", "45 %", "Progressing")
INSERTS: Final = [f"INSERT INTO users VALUES ({n}, '{name}')" for n, name in enumerate(NAMES)]
BUSY: Final = RuntimeError("HTTP 409: the record is locked by another request")
DOWN: Final = ConnectionError("503 Service Unavailable")

ACKNOWLEDGED: Final[list[Call]] = [
    ("press_key", {"key": "Tab"}, "ok"),
    ("scroll", {"by": 300}, {"success": True}),
    ("go_back", {}, None),
    ("undo", {}, '{"ok": true}'),
    ("roll_dice", {"sides": 6}, {"value": 4}),
    ("deposit", {"account": "a1", "amount": 20}, block({"status": "ok"})),
    ("add_to_cart", {"sku": "A-7"}, "Added to cart."),
    ("next_slide", {}, True),
    ("browser_press", {"key": "ArrowDown"}, block("Pressed ArrowDown")),
]
TWINS: Final[dict[str, Story]] = {
    **{f"acknowledged: {tool}": told(tool, arguments, *[answer] * 8) for tool, arguments, answer in ACKNOWLEDGED},
    **{f"waiting: {line}": told("get_output", {"id": "p1"}, *[line] * 8) for line in WAITING},
    **{f"waiting, by MCP: {line}": told("get_output", {"id": "p1"}, *[block(line)] * 8) for line in WAITING},
    **{f"waiting, by status: {line}": told("get_job", {"id": 7}, *[{"id": 7, "status": line}] * 8) for line in WAITING},
    "waiting, as JSON text": told("get_job", {"id": 7}, *['{"status": "in_progress"}'] * 8),
    "rows inserted one by one": [
        *each(*(("execute_sql", {"sql": sql}, []) for sql in INSERTS)),
        [("execute_sql", {"sql": "SELECT count(*) FROM users"}, [{"count": 12}])],
    ],
    "records updated": each(
        *(("update_record", {"id": n, "name": name}, "No results") for n, name in enumerate(NAMES))
    ),
    "rows inserted by a tool": each(
        *(("insert_rows", {"table": "users", "row": name}, {"rows": [], "rowCount": 1}) for name in NAMES)
    ),
    "statements that answer with no rows": each(
        *(("query", {"sql": sql}, '{"rows": [], "rowCount": 1}') for sql in INSERTS),
        *(("query", {"sql": f"SELECT * FROM t{n}"}, [{"n": n}]) for n in range(5)),
    ),
    "a conflict that passes": told("update_page", {"id": 4, "text": "Hi"}, BUSY, BUSY, "saved"),
    "a server that comes back": told("get_order", {"id": "W1"}, DOWN, DOWN, DOWN, {"id": "W1"}),
    "a server that comes back for its other tools": each(
        *(
            (f"crm__{tool}", {"id": 4}, DOWN)
            for tool in ("get_user", "list_deals", "find_task", "get_team", "get_note")
        ),
        ("crm__get_mail", {"id": 4}, {"id": 4}),
    ),
    "a lap until the lock is free": each(*[("pull_repo", {}, BUSY), ("push_repo", {}, BUSY)] * 4),
    "asked again by the user": asked([("get_price", {"of": "ACME"}, {"price": 9})], 6),
    "asked by the user, two looks each": asked(
        [("get_mail", {}, [])], 4, [("get_price", {"of": "ACME"}, {"price": 9})]
    ),
    "the time, twice a second": told("get_current_time", {}, *["2026-11-22T10:00:00Z"] * 6),
    "a count that is zero until it is not": told(
        "count_jobs", {"state": "open"}, *[[{"count": 0}]] * 6, [{"count": 1}]
    ),
    "mails with one text": told("send_mail", {"to": "bo@example.com", "text": "Hi"}, *({"id": n} for n in range(6))),
    "payments of one sum": told(
        "pay", {"to": "bo", "eur": 5}, *({"id": f"p-{n}", "status": "accepted"} for n in range(6))
    ),
    "commands that print nothing": each(*(("bash", {"command": f"touch {name}"}, "") for name in NAMES)),
    "commands that look for this and that": each(
        *(("bash", {"command": f"grep -rn {name}_total src tests docs"}, "") for name in NAMES)
    ),
    "symbols without a price": each(
        *(("get_quote", {"symbol": name.upper()}, LookupError(f"symbol {name.upper()} not found")) for name in NAMES)
    ),
    "days without an appointment": each(
        *(("list_events", {"day": f"2026-11-{n:02d}"}, {"events": []}) for n in range(1, 19))
    ),
    "links that are dead": each(
        *(("fetch_url", {"url": f"https://{n}.example/a"}, "404 page not found") for n in NAMES)
    ),
    "names that nobody has": each(*(("search_users", {"name": name}, []) for name in NAMES)),
    "hits by guests, others each time": each(
        *(
            ("search_hotels", {"city": "Oslo", "guests": n}, {"query": {"guests": n}, "results": [{"id": 7 * n}]})
            for n in range(1, 16)
        )
    ),
}
