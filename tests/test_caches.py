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
TIMES: Final = 40
BY_TOOL: Final = frozenset(
    {*("core.guards.duplicates._repeat", "core.values.names.look_by_name", "core.tools.tool.speaker")}
)
"""By the name of a tool, which is bounded where it comes in."""
BOUNDED: Final = {
    "core.values.pattern.pattern": "of the library's own patterns",
    "stores.redis.sha_of": "of the library's own scripts",
    "core.commands.rules.rule": "of a policy's own rules",
    "processes.sandbox._tried": "of one path",
    "core.tools.tool.finder": "of a policy's own patterns",
    "core.values.units.matcher": "of a policy's own globs",
}


def cached() -> dict[str, Callable[..., Any]]:
    found: dict[str, Callable[..., Any]] = {}
    for module in pkgutil.walk_packages(guardrails.__path__, "guardrails."):
        if ".integrations" in module.name or module.name.endswith("__main__"):
            continue
        with suppress(ImportError):
            for name, value in vars(importlib.import_module(module.name)).items():
                own = (
                    hasattr(value, "cache_info") or getattr(getattr(value, "__code__", None), "co_name", "") == "asked"
                )
                if own and hasattr(value, "__wrapped__") and value.__module__ == module.name:
                    kinds = list(getattr(value.__wrapped__, "__annotations__", {}).items())
                    if kinds and kinds[0][0] != "return" and "str" in str(kinds[0][1]):
                        found[f"{module.name}.{name}".removeprefix("guardrails.")] = value
    return found


CACHED: Final = cached()


def kept_after(act: Callable[[str], object]) -> int:
    """
    Bytes that stay after *act* of forty long texts.
    """
    act("short")
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(TIMES):
            act(f"{number:09}" * (LONG // 9))
        gc.collect()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


@table("name", sorted(CACHED.keys() - BY_TOOL - BOUNDED.keys()))
def test_a_cache_keeps_no_long_text(name: str) -> None:
    def act(text: str) -> object:
        with suppress(ValueError):
            return CACHED[name](text)
        return None

    assert kept_after(act) < KEPT


def test_the_caches_that_are_left_out_are_there() -> None:
    known = {name for name in (*BY_TOOL, *BOUNDED) if name.rpartition(".")[2] in dir(_module(name))}
    assert known == {*BY_TOOL, *BOUNDED}


def _module(name: str) -> Any:
    return importlib.import_module(f"guardrails.{name.rpartition('.')[0]}")


def test_a_session_keeps_no_long_name_of_a_tool() -> None:
    policy = Policy([Budget(max_calls=1000), Duplicates(), Loops()])
    session = policy.session("s")
    made: list[int] = []

    def act(name: str) -> object:
        def execute(tool: str, _: object) -> str:
            made.append(len(tool))
            return "ok"

        return session.call(name, {"q": 1}, execute)

    assert kept_after(act) < KEPT
    assert made[-1] == LONG // 9 * 9  # the tool itself is called by its own name


def test_a_transcript_brings_no_long_name_of_a_tool() -> None:
    line = json.dumps({"session_id": "s", "tool": "t" * LONG, "arguments": {}}).encode()
    (call,) = calls_in(line, "file", Report())
    assert len(call.tool) <= MAX_CHARS


def test_two_long_names_stay_two_and_their_ends_stay() -> None:
    one, other = (bounded_name("a" * 600 + middle + "b" * 600) for middle in "xy")
    assert one != other
    assert one.startswith("a" * 200)
    assert one.endswith("b" * 200)
    assert len(one) <= MAX_CHARS
    assert bounded_name("a" * MAX_CHARS) == "a" * MAX_CHARS
