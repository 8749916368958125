"""
Stores that may wait for a file, and the event loop of the host.
"""

import asyncio
import traceback

from typing import Any

import pytest

from guardrails import Budget, MemoryStore, Policy
from tests.hosts.driver import Asked, Say

from .base import asearching, roaming


class Waiting(MemoryStore):
    """
    A store that notes who asks it in a thread whose event loop runs.
    """

    blocks = True

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def update(self, *given: Any) -> Any:
        self._note()
        return super().update(*given)

    def forget(self, key: str) -> None:
        self._note()
        super().forget(key)

    def _note(self) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return
        frames = [one for one in traceback.extract_stack() if "/guardrails/integrations/" in one.filename]
        self.asked += [f"{one.filename}:{one.lineno} {one.name}" for one in frames[-1:]]


class EventLoops:
    """
    Beside the behaviours that a user sees: what an event loop does not wait for.
    """

    host: Any

    @pytest.mark.parametrize("stream", [False, True])
    @pytest.mark.parametrize("ending", ["answered", "silent", "failed"])
    def test_no_event_loop_waits_for_a_store(self, ending: str, stream: bool) -> None:
        def script(asked: Asked) -> Say:
            if asked.n and ending == "failed":
                raise ConnectionError("the endpoint is gone")
            if asked.off:
                return Say("Done." if ending == "answered" else "")
            return roaming(asked)

        store, policy = Waiting(), Policy([Budget(max_calls=3, max_tokens=100_000)])
        adapter = self.host.adapter(policy, store=store)
        self.host.run(adapter, [asearching([])], script, thread="t", stream=stream)
        assert store.asked == []
