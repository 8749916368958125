"""
A page and the last page of the same service: what differs between them decides.
"""

import json

from pathlib import Path
from typing import Any

from guardrails.core.paging import extent_of
from tests.tables import table


def lines(name: str) -> list[Any]:
    text = (Path(__file__).parent / "files" / f"{name}.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


TWINS = lines("twins")
"""Answers of public services: what both have, what the page has, what the last page has."""
KNOWN = [twin for twin in TWINS if twin["complete"] is False]
UNSURE = [twin for twin in TWINS if twin["complete"] is None]


def named(twin: Any) -> str:
    return str(twin.get("name", twin))[:60]


def complete_in_each_carrier(value: Any) -> set[bool | None]:
    text = value if isinstance(value, str) else json.dumps(value)
    carried: list[Any] = [value, text, {"content": [{"type": "text", "text": text}]}]
    if isinstance(value, dict):
        carried.append({"content": [{"type": "text", "text": text}], "structuredContent": value})
    return {extent_of(one).complete for one in carried}


@table("twin", KNOWN)
def test_a_page_is_not_complete_and_the_last_page_of_the_same_service_is(twin: dict[str, Any]) -> None:
    assert complete_in_each_carrier(twin["both"] | twin["page"]) == {False}
    assert complete_in_each_carrier(twin["both"] | twin["last"]) == {True}


@table("twin", UNSURE)
def test_of_a_page_that_cannot_be_told_from_a_whole_result_nothing_is_said(twin: dict[str, Any]) -> None:
    assert complete_in_each_carrier(twin["both"] | twin["page"]) == {None}
    assert complete_in_each_carrier(twin["both"] | twin["last"]) == {True}


@table("twin", lines("texts"))
def test_a_text_that_is_a_page_is_not_complete_and_its_last_page_is(twin: dict[str, str]) -> None:
    assert complete_in_each_carrier(twin["page"]) == {False}
    assert complete_in_each_carrier(twin["last"]) == {True}


@table("value", lines("spellings"))
def test_a_sign_of_more_is_known_by_its_words(value: Any) -> None:
    assert complete_in_each_carrier(value) == {False}


@table("value", lines("look_alikes"))
def test_a_whole_result_with_a_word_of_pages_in_it_is_complete(value: Any) -> None:
    assert complete_in_each_carrier(value) == {True}


ROUGH = ("120+", ">1000", "about 120", "~1,200", "more than 90")


@table("total", [*ROUGH, "many", -1, 1e30])
def test_of_a_total_that_cannot_be_read_nothing_is_said(total: Any) -> None:
    assert complete_in_each_carrier({"results": [1, 2], "total_count": total}) == {None}


@table("total", ROUGH)
def test_a_bare_total_that_is_not_exact_is_not_reached(total: str) -> None:
    assert complete_in_each_carrier({"results": [1, 2], "total": total}) == {None}


@table(("said", "end"), [("1-2 of 2", True), ("1-2 of 9", False), ("items 0-1/2", True), ("0-1/9", False)])
def test_a_range_says_what_is_shown_of_how_many(said: str, end: bool) -> None:
    assert complete_in_each_carrier({"items": [1, 2], "headers": {"Content-Range": said}}) == {end}
    assert complete_in_each_carrier({"items": [1, 2], "range": said}) == {end}
