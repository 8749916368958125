"""
What an idle session takes: packed, as a store keeps it, and in the memory of `MemoryStore`.
"""

import gc
import tracemalloc

from typing import Any

from guardrails.core.state.packing import pack
from guardrails.core.state.state import SessionState, admit, settle, touch
from guardrails.core.values.types import Outcome, ToolCall
from guardrails.stores.memory import LIVE, MemoryStore


WINDOW = 20
TOOLS = [f"tool_{n:02d}_".ljust(24, "x") for n in range(10)]
SESSIONS = 10_000
NOW = 1_800_000_000_000
MOST_PACKED = 1_536
"""Bytes; the issue's limit."""


def live(state: SessionState) -> None:
    """
    A session's calls until its window is full, each of a signature, a sketch and with a result of its own.
    """
    for n in range(WINDOW):
        touch(state, NOW + n * 1_000)
        call = ToolCall(TOOLS[n % len(TOOLS)], None, f"call_{n}", None, (n - 10) << 59 | n, sketch=n - 10 << 50 | 1)
        pending = admit(state, call, 1_000, 0, None, True, True, WINDOW)  # noqa: FBT003
        settle(state, pending, Outcome("found"), -(n << 58) | n, n + 1 << 24)


def test_packed_size_of_an_idle_session(benchmark: Any) -> None:
    state = SessionState()
    live(state)
    packed = benchmark.pedantic(pack, args=(state,), rounds=50, iterations=20)
    assert len(packed) <= MOST_PACKED
    benchmark.extra_info["note"] = f"{len(packed)} bytes (at most {MOST_PACKED})"


def test_resident_bytes_of_an_idle_session(benchmark: Any) -> None:
    sessions = SESSIONS if benchmark.enabled else 100
    store = MemoryStore()

    def fill() -> int:
        gc.collect()
        tracemalloc.start()
        for number in range(sessions):
            store.update((f"session-{number}",), lambda states: live(states[0]))
        gc.collect()
        size, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return size

    size = benchmark.pedantic(fill, rounds=1)
    assert len(store) == sessions
    note = f"{size // sessions:,} bytes each of {sessions:,} sessions, of which {LIVE:,} are kept unpacked"
    benchmark.extra_info["note"] = note
