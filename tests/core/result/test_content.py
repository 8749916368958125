"""
What a content says: that the work goes on, that it was done, nothing, or news; and what of it is news.
"""

from typing import Any

from guardrails.core.prepare import news_hash
from guardrails.core.result import Reading, reading_of
from guardrails.core.result.content import state_of
from tests.core.result.carriers import block, carried
from tests.tables import table


WAITING, NEWS, HOLLOW, DONE = 3, 2, 1, 0
HITS = [{"id": "h1", "price": 100}, {"id": "h2", "price": 120}, {"id": "h3", "price": 90}]


@table(("state", "lines"), [
    ("waiting", ["running", "Process still running.", "(no output yet)", "Deploying...", "45 %", "45% complete", "Progressing", "Waiting for approval"]),
    ("waiting", ["in_progress", "IN PROGRESS", "queued", "Status: pending", "not ready yet", "Not finished", "Job is running", "progress: 12.5 %"]),
    ("waiting", ["running (3/10)", "processing (45%)", "Выполняется...", "En cours…", "Almost there..."]),
    ("done", ["ok", "OK.", "Done", "Saved.", "Message sent", "Pressed Tab", "File was saved to disk", "Item added to cart", "success", "Successfully logged in"]),
    ("nothing", ["No results", "no matches found", "0 results", "Nothing found.", "none", "No hotels found"]),
    (None, ["not running", "No errors found", "no issues found in 3 files", "100 %", "3 results", "No table is free at 10:30", "Tokyo", "7", "not updated", "battery 80 %"]),
    (None, ["failed", "expired", "Could not be saved", "the deployment of the shop is still running in the second region", "a\nrunning", "No"]),
])  # fmt: skip
def test_a_short_line_is_read_like_the_value_of_a_status(state: str | None, lines: list[str]) -> None:
    assert {line: state_of(line) for line in lines} == dict.fromkeys(lines, state)


@table(("news", "values"), [
    (WAITING, [{"status": "running"}, {"job": {"state": "queued", "id": 7}}, {"progress": 45, "file": "a"}, {"percent": "45 %"}, {"ready": False, "id": 7}, "Deploying..."]),
    (WAITING, [{"deploy_status": "in_progress", "url": "https://x"}]),
    (NEWS, [{"status": "completed", "rows": 7}, {"price": 3}, "Tokyo", 7, HITS, [1, 2], {"rows": HITS}, {"status": "failed", "id": 7, "step": "build"}]),
    (NEWS, [{"rows": [], "rowCount": 1}, {"answer": "no"}, "a text\nof two lines", {"jobs": [{"status": "running"}, {"status": "done"}]}]),
    (HOLLOW, [[], {}, "", {"results": [], "total": 0}, {"data": {"rows": []}}, "No results", {"message": "No matches found"}, {"ok": True, "rows": []}]),
    (HOLLOW, [{"results": [], "query": "x", "page": 1, "took_ms": 3}]),
    (DONE, ["ok", True, {"success": True}, {"status": "ok"}, {"ok": True, "message": "Added to cart"}, {"id": "m_7", "status": "sent"}, {"success": True, "data": None}]),
    (DONE, [{"time": "2026-01-01T10:00:00Z"}, "10:05:33", 0, None, [{"count": 0}], {"count(*)": 0}, {"errors": []}, False, {"available": False}]),
])  # fmt: skip
def test_a_content_goes_on_or_brings_news_or_nothing_or_only_acknowledges(news: int, values: list[Any]) -> None:
    for value in values:
        carriers = [one for _, one in carried(value)] if isinstance(value, dict | str) and value else [value]
        for read in map(reading_of, carriers):
            assert read.news == news, value


def test_what_was_given_is_no_news() -> None:
    assert reading_of({"to": "bob", "status": "sent", "id": 7}, arguments={"to": "bob"}).news == 0
    assert reading_of({"to": "amy", "status": "sent", "id": 7}, arguments={"to": "bob"}).news == 2
    assert reading_of({"results": [], "city": "Rome"}, arguments={"city": "Rome"}).news == 1


def answer(guests: int, **more: Any) -> dict[str, Any]:
    said = {"query": f"hotels for {guests}", "took_ms": 10 + guests, "request_id": f"r{guests}"}
    return {**said, "guests": guests, "results": HITS, **more}


def steady(value: Any, **arguments: Any) -> int:
    return news_hash(Reading(value, arguments=arguments))


def test_the_same_hits_are_no_news_whatever_is_said_of_the_request_and_of_itself() -> None:
    asked = [
        (answer(n, progress=f"{n} of 15", count=3, searched_at=f"2026-01-01T10:00:{n}Z"), n) for n in range(10, 15)
    ]

    for carry in (lambda value: value, lambda value: {"content": [block(str(value).replace("'", '"'))]}):
        assert len({steady(carry(value), guests=n) for value, n in asked}) == 1
    assert steady(answer(3, results=HITS[:2]), guests=3) != steady(answer(3), guests=3)


@table(("one", "other", "same"), [
    ({"price": 7, "took_ms": 3}, {"price": 7, "took_ms": 9}, True), ({"price": 7, "request_id": "a1"}, {"price": 7, "request_id": "b2"}, True),
    ({"price": 7, "timestamp": 1767225600}, {"price": 7, "timestamp": 1767225660}, True),
    ({"price": 7, "usage": {"calls": 3}}, {"price": 7, "usage": {"calls": 4}}, True), ({"price": 7, "calls_left": 3}, {"price": 7, "calls_left": 2}, True),
    ({"price": 7, "tags": ["a", "b"]}, {"price": 7, "tags": ["b", "a"]}, False), ([{"a": 1}, {"a": 2}], [{"a": 2}, {"a": 1}], False),
    ({"rows": HITS, "count": 3, "page": 1}, {"rows": HITS, "count": 4, "page": 2}, True), ({"price": 7}, {"price": 8}, False),
    ({"seats_left": 3}, {"seats_left": 2}, False), ({"processed": 450, "of": 900}, {"processed": 500, "of": 900}, False),
    ({"status": "building", "rows": HITS}, {"status": "done", "rows": HITS}, False),
    ({"balance": 100, "orders": HITS}, {"balance": 90, "orders": HITS}, False), ({"time": "10:00:00"}, {"time": "10:00:01"}, False),
    ({"latency_ms": 10}, {"latency_ms": 11}, False), ("12:00:01 no new mail", "12:00:31 no new mail", False), ("line 3", "line 4", False),
])  # fmt: skip
def test_what_a_result_says_of_itself_is_left_out_and_nothing_else(one: Any, other: Any, same: bool) -> None:
    assert (steady(one) == steady(other)) is same


def test_an_answer_that_only_repeats_is_an_answer_all_the_same() -> None:
    assert steady({"amount": 5}, amount=5) != steady({"amount": 10}, amount=10)
    assert steady({"amount": 4.6}, amount=5) != steady({"amount": 9.2}, amount=10)
    assert steady('No page of "kittens"', q="kittens") != steady('No page of "puppies"', q="puppies")


def failed(text: str, **arguments: Any) -> int:
    return news_hash(reading_of(RuntimeError(text), arguments=arguments))


def test_failures_are_alike_but_for_their_digits_their_arguments_and_their_ends() -> None:
    assert failed("no column 'kittens' at 3", sql="kittens") == failed("no column 'puppies' at 14", sql="puppies")
    assert failed("HTTP 503 from the shop" + "x" * 200) == failed("HTTP 502 from the shop" + "x" * 300)
    assert failed("no such column") != failed("no such table")


def test_a_text_beside_members_that_are_null_is_all_there_is() -> None:
    assert reading_of({"output": "Process still running.", "exit_code": None}).news == WAITING
