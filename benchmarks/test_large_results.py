"""
What a result of 10 MB costs in the whole chain: the limit sets it, and not the result.
"""

from typing import Any

import pytest

from guardrails import Policy


MEGABYTE = 2**20
ROWS = [
    {"id": n, "name": f"row number {n}", "score": 0.5, "ok": True, "note": "some words that fill a row"}
    for n in range(110_000)
]
RESULTS: dict[str, Any] = {
    "64 KB of text": "x" * 65_000,
    "10 MB of text": "x" * (10 * MEGABYTE),
    "list of 10 MB": ROWS,
    "dict of 10 MB": {"results": ROWS, "total": len(ROWS)},
    "dict with a text of 10 MB": {"ok": True, "content": "x" * (10 * MEGABYTE)},
}
CALLS = 5


@pytest.mark.parametrize("name", RESULTS)
def test_chain_with(measure: Any, default: Policy, name: str) -> None:
    result = RESULTS[name]
    session = default.session("large")
    assert session.call("read", {}, lambda tool, arguments: result).ok
    pages = iter(range(10**9))

    def run() -> None:
        for _ in range(CALLS):
            session.call("read", {"page": next(pages)}, lambda tool, arguments: result).to_json()

    measure(run, CALLS)
