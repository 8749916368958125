"""
What strangers write is not kept by caches: those count entries, and an entry may be a megabyte.
"""

import gc
import importlib
import json
import pkgutil
import tracemalloc

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import guardrails

from guardrails import Budget, Duplicates, Loops, Policy
from guardrails.core.values.names import MAX_CHARS, bounded_name
from guardrails.offline.transcripts import Report
from guardrails.offline.transcripts.files import calls_in
from tests.tables import table


LONG: Final = 200_000
KEPT: Final = 2_000_000
"""Bytes that may stay of forty such texts."""
BOUNDED: Final = {
    "core.guards.duplicates._repeat": "of a tool's name, which is bounded where it comes in",
    "core.values.names.look_by_name": "the same",
    "core.tool.speaker": "the same",
    "core.values.caches.pattern": "of the library's own patterns",
    "stores.redis.sha_of": "of the library's own scripts",
    "core.commands.rules.rule": "of a policy's own rules",
    "processes.sandbox.bubblewrap": "of four lists of folders",
    "core.tool.finder": "of a policy's own patterns",
    "core.values.units.matcher": "of a policy's own globs",
}


def cached() -> dict[str, Callable[..., Any]]:
    """
    The functions with a cache whose first argument is a text.
    """
    found: dict[str, Callable[..., Any]] = {}
    for module in pkgutil.walk_packages(guardrails.__path__, "guardrails."):
        if ".integrations" in module.name or module.name.endswith("__main__"):
            continue
        with suppress(ImportError):
            for name, value in vars(importlib.import_module(module.name)).items():
                code = getattr(value, "__code__", None)
                if hasattr(value, "cache_info") or getattr(code, "co_name", "") == "asked":
                    kinds = [*getattr(getattr(value, "__wrapped__", None), "__annotations__", {"return": 0}).items()]
                    if value.__module__ == module.name and kinds[0][0] != "return" and "str" in str(kinds[0][1]):
                        found[f"{module.name}.{name}".removeprefix("guardrails.")] = value
    return found


CACHED: Final = cached()


def kept_after(act: Callable[[str], object]) -> int:
    """
    Bytes that stay after *act* of forty long texts.
    """
    with suppress(ValueError):
        act("short")
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(40):
            with suppress(ValueError):
                act(f"{number:09}" * (LONG // 9))
        gc.collect()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


@table("name", sorted(CACHED.keys() - BOUNDED.keys()))
def test_a_cache_keeps_no_long_text(name: str) -> None:
    assert kept_after(CACHED[name]) < KEPT


def test_the_caches_that_are_left_out_are_there() -> None:
    places = [name.rpartition(".") for name in BOUNDED]
    assert [
        name for module, _, name in places if not hasattr(importlib.import_module(f"guardrails.{module}"), name)
    ] == []


def test_a_session_keeps_no_long_name_of_a_tool_and_a_transcript_brings_none() -> None:
    session = Policy([Budget(max_calls=1000), Duplicates(), Loops()]).session("s")
    made: list[int] = []
    assert kept_after(lambda name: session.call(name, {"q": 1}, lambda tool, _: made.append(len(tool)))) < KEPT
    assert made[-1] == LONG // 9 * 9, "the tool itself is called by its own name"
    line = json.dumps({"session_id": "s", "tool": "t" * LONG, "arguments": {}}).encode()
    (call,) = calls_in(line, "file", Report())
    assert len(call.tool) <= MAX_CHARS


def test_two_long_names_stay_two_and_their_ends_stay() -> None:
    one, other = (bounded_name("a" * 600 + middle + "b" * 600) for middle in "xy")
    assert one != other
    assert (one[:200], one[-200:], len(one) <= MAX_CHARS) == ("a" * 200, "b" * 200, True)
    assert bounded_name("a" * MAX_CHARS) == "a" * MAX_CHARS
