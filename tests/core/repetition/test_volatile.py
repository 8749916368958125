"""
Fields that differ from call to call and tell nothing; and their neighbours that are the news.
"""

import json

from typing import Any

import orjson

from guardrails.core.repetition.results import steady_hash
from guardrails.core.repetition.volatile import volatile
from guardrails.core.tools.tool_call import tool_call
from tests.tables import table


def clock(n: int) -> str:
    return f"2026-11-22T10:00:{n:02d}Z"


def uuid(n: int) -> str:
    return f"{n:08x}-1111-4222-8333-444455556666"


def same(one: Any, other: Any, tool: str = "get_stock", **arguments: Any) -> bool:
    call = tool_call(tool, arguments or {"of": "a"}, "1", None)
    return steady_hash(orjson.dumps(one), call) == steady_hash(orjson.dumps(other), call)


NO_NEWS: dict[str, Any] = {
    "pid": int,
    "query_ms": int,
    "durationMs": int,
    "duration": float,
    "elapsed": lambda n: f"{n}.5s",
    "took": int,
    "response_time": float,
    "latency_ms": int,
    "latency_p95": int,
    "elapsedSeconds": float,
    "duration_in_ms": int,
    "request_id": uuid,
    "request": uuid,
    "X-Request-Id": lambda n: f"r{n:x}0",
    "traceId": lambda n: f"{n:032x}",
    "span_id": lambda n: f"s{n}",
    "message_id": lambda n: f"m{n}",
    "now": clock,
    "timestamp": lambda n: 1_800_000_000 + n,
    "generatedAt": clock,
    "server_time": lambda n: 1_800_000_000_000 + n,
}
NEWS: dict[str, Any] = {
    "price": int,
    "count": int,
    "version": lambda n: f"1.{n}",
    "id": uuid,
    "order_id": uuid,
    "updated_at": clock,
    "updated_ms": lambda n: 1_800_000_000_000 + n,
    "expires_at": clock,
    "last_seen": clock,
    "departs": clock,
    "etag": uuid,
    "token": uuid,
    "position_ms": int,
    "remaining_ms": int,
    "retry_after_ms": int,
    "request": lambda n: f"a table for {n}",
    "span": int,
    "pids": lambda n: [n],
    "took_part": lambda n: f"{n} people",
    "took_photos": int,
    "elapsed_rounds": int,
    "latency_class": int,
    "duration_type": int,
    "pid_controller": int,
    "pid": lambda n: f"P-{n}",
    "price_us": int,
    "correlation": lambda n: f"0.{n}",
    "now": lambda n: f"page {n}",
    "uptime": int,
}
WRAPPED = {
    "an object": lambda value: value,
    "JSON text": json.dumps,
    "MCP": lambda value: {"content": [{"type": "text", "text": json.dumps(value)}], "isError": False},
    "an object of an SDK": lambda value: {
        "meta": None,
        "content": [{"type": "text", "text": json.dumps(value), "annotations": None, "meta": None}],
        "structured_content": None,
        "is_error": False,
        "result_type": "complete",
    },
    "what is about the answer": lambda value: {"data": {"stock": 4}, "meta": value},
}


@table("wrapped", WRAPPED.values())
@table("name", NO_NEWS)
def test_what_only_tells_of_the_answer_is_no_news(name: str, wrapped: Any) -> None:
    one, other = ({"place": "Oslo", "stock": 4, name: NO_NEWS[name](n)} for n in (3, 4))
    assert same(wrapped(one), wrapped(other))
    assert not same(wrapped(one), wrapped({**other, "stock": 5}))


@table("wrapped", WRAPPED.values())
@table("name", NEWS)
def test_what_may_be_asked_for_is_news(name: str, wrapped: Any) -> None:
    one, other = ({"place": "Oslo", "stock": 4, name: NEWS[name](n)} for n in (3, 4))
    assert not same(wrapped(one), wrapped(other))


@table(
    ("tool", "answer"),
    [
        ("get_stock", {"latency_ms": 0}),
        ("get_stock", {"of": "a", "up": True, "latency_ms": 0}),
        ("get_film", {"duration_minutes": 0}),
        ("start_server", {"status": "started", "pid": 0}),
        ("notify", {"ok": True, "message_id": 0}),
        ("get_latency", {"p50": 7, "latency_ms": 0}),
        ("run_benchmark", {"name": "sort", "duration_ms": 0}),
        ("get_process", {"name": "web", "pid": 0}),
        ("send_message", {"channel": "C1", "message_id": 0}),
        ("create_request", {"title": "leave", "request_id": 0}),
        ("list_things", [{"name": "web", "latency_ms": 0}]),
        ("list_runs", [{"name": "web", "took": 0}]),
        ("list_failures", [{"said": "no", "request_id": 0}, {"said": "no", "request_id": 1}]),
        ("list_traces", [{"said": "no", "trace_id": 0}]),
    ],
)
def test_what_little_else_is_beside_or_the_tool_is_named_for_is_the_news(tool: str, answer: Any) -> None:
    text = json.dumps(answer)
    assert not same(json.loads(text), json.loads(text.replace(": 0", ": 9")), tool)


def test_the_time_alone_is_the_news() -> None:
    assert not same({"now": clock(1)}, {"now": clock(2)})
    assert not same({"zone": "Oslo", "now": clock(1)}, {"zone": "Oslo", "now": clock(2)}, "get_time")


def test_a_text_that_is_a_clock_or_an_id_is_news_and_a_sentence_with_one_is_not() -> None:
    assert not same(clock(1), clock(2))
    assert not same(uuid(1), uuid(2))
    assert not same({"result": clock(1)}, {"result": clock(2)})
    assert not same(f"It is {clock(1)}.", f"It is {clock(2)}.", "current_time")
    assert not same("p50 of db1: 12 ms", "p50 of db1: 17 ms", "get_latency")
    assert same(f"Ready since {clock(1)}.", f"Ready since {clock(2)}.")
    assert same("Saved in 12 ms.", "Saved in 17 ms.", "update_note")


@table("all_rows", [False, True])
def test_the_id_of_the_request_is_no_news_in_a_list_either(all_rows: bool) -> None:
    def rows(n: int) -> list[dict[str, str]]:
        said = {"request_id": f"r{n}"}
        return [{"place": "Oslo", **(said if all_rows else {})}, {"place": "Bergen", **said}]

    assert same(rows(3), rows(4))
    assert same({"rows": rows(3)}, {"rows": rows(4)})
    assert not same(rows(3), [*rows(4), {"place": "Hamar"}])


def test_a_search_that_shows_the_same_again_is_the_same_however_long_it_took() -> None:
    def steady(tool: str, guests: int, **more: Any) -> int:
        call = tool_call(tool, {"city": "Nara", "guests": guests}, "1", None)
        return steady_hash(orjson.dumps({"took": guests, "request_id": f"r{guests}", **more}), call)

    hotels = ["Edo", "Fuji Inn"]
    assert steady("search_rooms", 2, hotels=hotels) == steady("search_rooms", 3, hotels=hotels)
    assert steady("search_rooms", 2, hotels=hotels) != steady("search_rooms", 3, hotels=[*hotels, "Nara Inn"])
    assert steady("search_rooms", 2, free=False) != steady("search_rooms", 3, free=False)
    assert steady("run_query", 2, hotels=hotels) != steady("run_query", 3, hotels=hotels)


def test_how_long_something_takes_is_an_answer_to_another_question() -> None:
    answers = [{"mode": "car", "road": "E18", "toll": 5, "duration_minutes": n} for n in (30, 40)]
    calls = [tool_call("get_route", {"to": "B", "at": clock(n)}, "1", None) for n in (1, 2)]
    one, other = (steady_hash(orjson.dumps(said), call) for said, call in zip(answers, calls, strict=True))
    assert one != other
    labelled = [tool_call("get_route", {"to": "B", "reason": clock(n)}, "1", None) for n in (1, 2)]
    one, other = (steady_hash(orjson.dumps(said), call) for said, call in zip(answers, labelled, strict=True))
    assert one == other


def test_a_name_without_its_form_is_not_volatile() -> None:
    assert volatile("took", "the bus") is None
    assert volatile("timestamp", "yesterday") is None
    assert volatile("request_id", {"of": 1}) is None
    assert volatile("pid", True) is None
    assert volatile("x" * 100 + "_ms", 1) is None
