"""
The code of docs/agent-loop.md, run as it stands.
"""

import re

from pathlib import Path
from typing import Any

import pytest


GUIDE = (Path(__file__).parents[3] / "docs" / "agent-loop.md").read_text()


def test_the_blocks_run_in_order_and_show_what_the_text_says(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("openai")
    names: dict[str, Any] = {}
    printed = []
    for block in re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL):
        exec(compile(block, "agent-loop.md", "exec"), names)
        printed.append(capsys.readouterr().out.splitlines())
    registry, chat, responses, limit, cut, failed = printed
    assert registry[0] == "['book', 'fs__read', 'search_hotels']"
    assert "'city': 'Kyoto'" in registry[1]
    assert '"error_type":"tool_missing"' in registry[2].replace(" ", "")
    assert "Did you mean `search_hotels`?" in registry[2]
    assert chat[-1] == "One in each, h_1. answered 2 1 5"
    assert responses == [
        "h_1 in Kyoto.",
        "['message', 'function_call', 'function_call', 'function_call_output', 'function_call_output']",
    ]
    assert limit[0] == "I stopped after 2 turns. forced budget.max_turns none"
    assert '"limit_message": "Tool call limit reached (2). Stopping tool loop."' in limit[1]
    assert limit[2] == "5"
    assert cut == ["Nothing anywhere. 4", "I was stopped. 12"]
    said, attributes = failed
    assert said.startswith("the reply is no JSON; check the base URL (HTTP 200 from `http://127.0.0.1:")
    assert said.endswith("/v1/chat/completions`: `<html><body>Please sign in.</body></html>`)")
    assert attributes.endswith(" 200 <html><body>Please sign in.</body></html>")
