"""
The work of a reader grows with the file, not with its square.
"""

import json
import sys

from collections.abc import Callable, Iterator
from typing import Any

from guardrails.offline.readers import READERS, Report
from tests.tables import table


def chats(n: int) -> Iterator[Any]:
    yield {"traj": [{"role": "assistant", "tool_calls": [{"id": str(i), "function": {"name": "x"}}]} for i in range(n)]}


def spans(n: int) -> Iterator[Any]:
    of, context = "llm.output_messages.0.message.tool_calls", {"trace_id": "t", "span_id": "s"}
    made = {f"{of}.{i}.tool_call.function.name": "x" for i in range(n)}
    yield {"context": context, "attributes": {**made, "openinference.span.kind": "LLM"}}
    called = {"openinference.span.kind": "TOOL", "tool.name": "x"}
    for i in range(n):
        yield {"context": context, "attributes": {**called, "input.value": str(i)}, "start_time": 1 + i}


@table("name, write", [("openai chat", chats), ("opentelemetry spans", spans)])
def test_twice_the_calls_take_not_much_more_than_twice_the_steps(
    name: str, write: Callable[[int], Iterator[Any]]
) -> None:
    reader = next(reader for reader in READERS if reader.name == name)

    def steps(n: int) -> int:
        lines = [json.dumps(value).encode() for value in write(n)]
        return counted(lambda: sum(1 for _ in reader.calls(lines, "s", Report(), "f")))

    assert steps(1600) < 2.6 * steps(800)


def counted(act: Callable[[], int]) -> int:
    """
    Lines of Python that *act* runs.
    """
    lines = 0

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal lines
        lines += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before)
    return lines
