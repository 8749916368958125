"""
What it costs to keep a message of a conversation, on the disk before it returns, in units of R: most of it is the disk's.
"""

from pathlib import Path
from typing import Any

import pytest

from guardrails.agent.conversations import Conversations


@pytest.mark.parametrize("size", [400, 64_000])
def test_append(measure: Any, tmp_path: Path, size: int) -> None:
    message = {"role": "tool", "tool_call_id": "call_0", "content": "x" * size}
    with Conversations(tmp_path / "kept.db") as kept, kept.start() as chat:

        def block() -> None:
            for _ in range(5):
                chat.append(message)

        measure(block, 5)


def test_resume_of_a_thousand_messages(measure: Any, tmp_path: Path) -> None:
    with Conversations(tmp_path / "kept.db") as kept:
        with kept.start("s") as chat:
            chat.extend([{"role": "user", "content": "x" * 400}] * 1_000)

        def block() -> None:
            kept.resume("s").close()

        measure(block)
